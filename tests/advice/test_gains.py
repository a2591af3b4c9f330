from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.advice import gains
from gpuledger.advice.gains import Gain, Range, gain_names, gain_of
from gpuledger.cost.statement import BUCKETS, Bucket
from gpuledger.errors import FactError, UnknownName

SHARES: dict[Bucket, Decimal] = {
    "productive": Decimal("0.2"), "stalled": Decimal("0.2"), "unrated": Decimal("0.1"), "underused": Decimal("0.1"),
    "idle": Decimal("0.1"), "idle_held": Decimal("0.2"), "unobserved": Decimal("0.1"),
}  # fmt: skip


def test_the_shares_are_of_a_whole_bill():
    assert tuple(SHARES) == BUCKETS
    assert sum(SHARES.values()) == 1


def test_a_speed_up_shortens_the_active_time():
    # Productive 0.2, stalled 0.2, unrated 0.1 and underused 0.1: 2x halves the active 0.6 of the bill.
    found = Gain("speedup", "assumed", "assumed", low=1.0, middle=2.0, high=3.0).fraction(SHARES)
    assert found == Range(Decimal("0.000000"), Decimal("0.300000"), Decimal("0.400000"))


def test_recovering_takes_a_share_of_the_buckets_named():
    gain = Gain("recovers", "assumed", "assumed", of=("idle", "idle_held"), low=0.1, middle=0.5, high=1.0)
    assert gain.fraction(SHARES) == Range(Decimal("0.030000"), Decimal("0.150000"), Decimal("0.300000"))


def test_unrated_time_may_be_stalled_at_the_bold_end_only():
    gain = Gain("recovers", "assumed", "assumed", of=("stalled",), low=0.1, middle=0.5, high=1.0)
    # Of stalled 0.2: 0.02 and 0.1; at most all of it and of the 0.1 that nobody can rate.
    assert gain.fraction(SHARES) == Range(Decimal("0.020000"), Decimal("0.100000"), Decimal("0.300000"))


def test_a_rate_is_of_the_whole_bill():
    assert Gain("rate", "assumed", "s", low=0.2, middle=0.3, high=0.4).fraction(SHARES) == Range.of(0.2, 0.3, 0.4)
    assert Gain("none", "assumed", "s", low=0.2, middle=0.3, high=0.4).fraction(SHARES) is None
    assert Gain("computed", "assumed", "s").fraction(SHARES) is None


@given(st.tuples(*[st.floats(-5, 5)] * 3))
def test_a_range_is_a_fraction_in_order(parts):
    made = Range.of(*parts)
    assert 0 <= made.low <= made.middle <= made.high <= 1


@pytest.mark.parametrize("name", gain_names())
def test_every_shipped_range_says_what_it_rests_on(name):
    gain = gain_of(name)
    assert len(gain.source) > 20
    if gain.basis == "assumed" and gain.form != "none":
        assert "assumed" in gain.source
    if gain.basis == "published":
        assert "." in gain.source or "list prices" in gain.source


@pytest.mark.parametrize(
    "broken",
    [
        Gain("speedup", "assumed", "s", low=2.0, middle=1.5, high=3.0),
        Gain("speedup", "assumed", "s", low=0.5, middle=1.5, high=3.0),
        Gain("speedup", "assumed", "s"),
        Gain("rate", "assumed", "s", low=0.5, middle=0.6, high=1.5),
        Gain("recovers", "assumed", "s", low=0.5, middle=0.6, high=0.7),
        Gain("rate", "assumed", "s", of=("idle",), low=0.5, middle=0.6, high=0.7),
        Gain("rate", "assumed", " ", low=0.5, middle=0.6, high=0.7),
        Gain("rate", "assumed", "s", low=0.5),
    ],
)
def test_a_broken_entry_is_refused(broken):
    with pytest.raises(FactError):
        gains._check(broken, "gains.toml", "x")


def test_an_unknown_rule_suggests_the_nearest():
    with pytest.raises(UnknownName, match="num_worker"):
        gain_of("num_worker")
