from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.advice.rule import RULES, Effort, Gain, Range, advise, bash
from gpuledger.cost.statement import BUCKETS, Bucket
from gpuledger.errors import FactError

SHARES: dict[Bucket, Decimal] = {
    "productive": Decimal("0.2"), "stalled": Decimal("0.2"), "unrated": Decimal("0.1"), "underused": Decimal("0.1"),
    "idle": Decimal("0.1"), "idle_held": Decimal("0.2"), "unobserved": Decimal("0.1"),
}  # fmt: skip
SHIPPED = {
    name: gain
    for rule_name, rule in RULES
    for name, gain in {rule_name: rule.gain, **{f"{rule_name}, {v}": g for v, g in rule.gain.variants.items()}}.items()
}


def test_the_shares_are_of_a_whole_bill():
    assert tuple(SHARES) == BUCKETS
    assert sum(SHARES.values()) == 1


def test_a_speed_up_shortens_the_active_time():
    # Productive 0.2, stalled 0.2, unrated 0.1 and underused 0.1: 2x halves the active 0.6 of the bill.
    found = Gain("speedup", "assumed", "assumed", (1.0, 2.0, 3.0)).fraction(SHARES)
    assert found == Range(Decimal("0.000000"), Decimal("0.300000"), Decimal("0.400000"))


def test_recovering_takes_a_share_of_the_buckets_named():
    gain = Gain("recovers", "assumed", "assumed", (0.1, 0.5, 1.0), of=("idle", "idle_held"))
    assert gain.fraction(SHARES) == Range(Decimal("0.030000"), Decimal("0.150000"), Decimal("0.300000"))


def test_unrated_time_may_be_stalled_at_the_bold_end_only():
    gain = Gain("recovers", "assumed", "assumed", (0.1, 0.5, 1.0), of=("stalled",))
    # Of stalled 0.2: 0.02 and 0.1; at most all of it and of the 0.1 that cannot be rated.
    assert gain.fraction(SHARES) == Range(Decimal("0.020000"), Decimal("0.100000"), Decimal("0.300000"))


def test_a_rate_is_of_the_whole_bill():
    assert Gain("rate", "assumed", "s", (0.2, 0.3, 0.4)).fraction(SHARES) == Range.of(0.2, 0.3, 0.4)
    assert Gain("none", "assumed", "s", (0.2, 0.3, 0.4)).fraction(SHARES) is None
    assert Gain("computed", "assumed", "s").fraction(SHARES) is None


@given(st.tuples(*[st.floats(-5, 5)] * 3))
def test_a_range_is_a_fraction_in_order(parts):
    made = Range.of(*parts)
    assert 0 <= made.low <= made.middle <= made.high <= 1


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_range_names_what_it_rests_on(name):
    gain = SHIPPED[name]
    gain.check(name)
    assert len(gain.source) > 20
    if gain.basis == "assumed" and gain.form != "none" and "," not in name:
        assert "assumed" in gain.source
    if gain.basis == "published":
        assert "." in gain.source or "list prices" in gain.source


@pytest.mark.parametrize(
    "broken",
    [
        Gain("speedup", "assumed", "s", (2.0, 1.5, 3.0)),
        Gain("speedup", "assumed", "s", (0.5, 1.5, 3.0)),
        Gain("speedup", "assumed", "s"),
        Gain("rate", "assumed", "s", (0.5, 0.6, 1.5)),
        Gain("recovers", "assumed", "s", (0.5, 0.6, 0.7)),
        Gain("rate", "assumed", "s", (0.5, 0.6, 0.7), of=("idle",)),
        Gain("rate", "assumed", " ", (0.5, 0.6, 0.7)),
        Gain("rate", "assumed", "s", (0.5, 0.6, 0.7), variants={"v": Gain("rate", "assumed", "s", (0.7, 0.6, 0.5))}),
    ],
)
def test_a_broken_gain_is_refused_when_the_rule_registers(broken):
    with pytest.raises(FactError, match="advice rule half-done") as error:
        advise("half-done", "t", "rate", Effort("small", 1), bash("true"), broken)
    assert error.value.hint
    assert "half-done" not in dict(RULES)
