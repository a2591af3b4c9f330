from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.savings import ACTS_ON, Bill, Kind, Lever, Savings, combine
from gpuledger.cost.statement import BUCKETS
from gpuledger.errors import InputError
from gpuledger.units import Unknown

CENT = Decimal("0.000000001")


def bill(**dollars: int) -> Bill:
    return Bill.whole({b: Decimal(dollars.get(b, 0)) for b in BUCKETS})


def lever(name: str, kind: Kind, f: str, exclusive: str = "", headroom: int | None = None) -> Lever:
    share = Decimal(f)
    room = None if headroom is None else Decimal(headroom)
    return Lever(name, kind, share, share, share, exclusive=exclusive, headroom_usd=room)


def together(of: Bill, *levers: Lever) -> Savings:
    found = combine(of, levers)
    assert not isinstance(found, Unknown)
    return found


def test_spot_and_a_fix_compound_to_76_percent() -> None:
    found = together(bill(productive=40, stalled=60), lever("fix", "throughput", "0.4"), lever("spot", "rate", "0.6"))
    assert (found.combined_pct, found.rate_pct, found.with_rate_pct) == (40, 60, 76)
    assert found.naive_pct == 100
    assert found.cap_pct == 60


def test_two_levers_on_one_bucket_overlap() -> None:
    # Each takes half of the 60 stalled dollars: together 60 x (1 - 1/2 x 1/2) = 45, not 60.
    found = together(bill(productive=40, stalled=60), lever("a", "throughput", "0.3"), lever("b", "throughput", "0.3"))
    assert (found.combined_usd, found.naive_pct) == (45, 60)


def test_levers_on_different_buckets_add() -> None:
    found = together(
        bill(productive=50, idle=20, stalled=30), lever("off", "hours", "0.1"), lever("amp", "throughput", "0.2")
    )
    assert (found.combined_pct, found.naive_pct, found.cap_pct) == (30, 30, 50)


def test_the_one_bucket_rule_and_ours_by_pencil() -> None:
    """20, 25 and 10 % on 80 % waste: 1 - .8 x .75 x .9 = 46 %; ours keeps 1 - 2/8, 1 - 2.5/8 and 1 - 1/8 of the 80."""
    levers = [lever(n, "throughput", f) for n, f in (("a", "0.2"), ("b", "0.25"), ("c", "0.1"))]
    found = together(bill(productive=20, stalled=80), *levers)
    assert found.one_bucket_pct == 46
    assert found.combined_pct == 80 * (1 - Decimal("0.75") * Decimal("0.6875") * Decimal("0.875"))
    assert round(found.combined_pct, 1) == Decimal("43.9")


def test_in_different_buckets_ours_is_more_than_the_one_bucket_rule() -> None:
    found = together(
        bill(productive=50, idle=20, stalled=30), lever("off", "hours", "0.1"), lever("amp", "throughput", "0.2")
    )
    assert (found.one_bucket_pct, found.combined_pct) == (28, 30)


def test_the_one_bucket_rule_is_capped_by_the_waste_and_leaves_prices_out() -> None:
    of = bill(productive=70, unobserved=10, idle=20)
    found = together(of, lever("off", "hours", "0.5"), lever("spot", "rate", "0.6"))
    assert found.one_bucket_pct == 20


def test_one_lever_is_the_same_by_both_rules_and_excluded_ones_are_in_neither() -> None:
    of = bill(productive=50, idle=50)
    found = together(of, lever("mig", "hours", "0.3", "share"), lever("mps", "hours", "0.2", "share"))
    assert found.one_bucket_pct == found.combined_pct == 30


def test_a_lever_never_saves_more_than_its_buckets_hold() -> None:
    found = together(bill(productive=90, idle=10), lever("off", "hours", "0.5"))
    assert (found.combined_pct, found.cap_pct, found.naive_pct) == (10, 10, 50)
    assert found.levers[0].capped


def test_shared_underused_dollars_are_counted_once() -> None:
    # hours: 20 of 40 idle + underused, throughput: 30 of 40 stalled + underused; the 20 underused keep 1/2 x 1/4.
    found = together(
        bill(productive=40, idle=20, underused=20, stalled=20),
        lever("h", "hours", "0.2"),
        lever("t", "throughput", "0.3"),
    )
    assert found.combined_usd == 20 * Decimal("0.5") + 20 * Decimal("0.875") + 20 * Decimal("0.75")


def test_a_smaller_gpu_saves_the_measured_headroom_at_most() -> None:
    found = together(bill(productive=20, stalled=80), lever("smaller", "sku", "0.7", headroom=30))
    assert found.combined_usd == 30
    with pytest.raises(InputError, match="headroom"):
        lever("smaller", "sku", "0.7")


def test_of_exclusive_levers_the_best_counts() -> None:
    found = together(
        bill(productive=50, idle=50), lever("mig", "hours", "0.3", "share"), lever("mps", "hours", "0.2", "share")
    )
    assert found.combined_pct == 30
    assert {row.name: row.chosen for row in found.levers} == {"mig": True, "mps": False}


def test_the_best_is_the_best_in_company() -> None:
    # Alone "more" saves most; beside a lever that empties the stalled bucket, "other" does.
    of = bill(productive=20, stalled=40, idle=40)
    rest = lever("fix", "throughput", "0.4")
    found = together(of, rest, lever("more", "throughput", "0.35", "x"), lever("other", "hours", "0.3", "x"))
    assert {row.name for row in found.levers if row.chosen} == {"fix", "other"}
    assert found.combined_usd == 70


def test_a_rate_for_one_scope_leaves_the_other_alone() -> None:
    of = Bill({"train": {"productive": Decimal(50)}, "serve": {"productive": Decimal(50)}})
    spot = Lever("spot", "rate", Decimal("0.6"), Decimal("0.6"), Decimal("0.6"), scopes=("train",))
    found = together(of, spot)
    assert (found.with_rate_usd, found.combined_usd, found.naive_pct) == (30, 0, 30)


def test_a_lever_on_one_scope_is_a_fraction_of_that_scope() -> None:
    of = Bill({"train": {"stalled": Decimal(80)}, "serve": {"stalled": Decimal(20)}})
    fix = Lever("fix", "throughput", Decimal("0.1"), Decimal("0.5"), Decimal("0.6"), scopes=("train",))
    found = together(of, fix)
    assert (found.combined_usd, found.cap_pct) == (40, 80)
    assert (found.combined.low_pct, found.combined.middle_pct, found.combined.high_pct) == (8, 40, 48)


@pytest.mark.parametrize("given_range", [("0.5", "0.4", "0.6"), ("-0.1", "0", "0"), ("0", "0.5", "1.1")])
def test_a_fraction_out_of_order_is_refused(given_range: tuple[str, str, str]) -> None:
    with pytest.raises(InputError, match="lever 'x'"):
        Lever("x", "hours", *(Decimal(v) for v in given_range))


def test_names_must_differ_and_scopes_must_exist() -> None:
    with pytest.raises(InputError, match="two levers"):
        combine(bill(idle=1), [lever("x", "hours", "0.1"), lever("x", "rate", "0.1")])
    with pytest.raises(InputError, match="'train'"):
        combine(bill(idle=1), [Lever("x", "hours", Decimal(0), Decimal(0), Decimal(0), scopes=("train",))])


def test_nothing_paid_nothing_saved() -> None:
    assert isinstance(combine(bill(), [lever("x", "hours", "0.1")]), Unknown)


def test_a_lever_without_dollars_to_act_on_saves_nothing() -> None:
    found = together(bill(productive=100), lever("off", "hours", "0.3"))
    assert (found.combined_pct, found.cap_pct) == (0, 0)
    assert [row.capped for row in found.levers] == [True]


def test_no_levers_save_nothing() -> None:
    found = together(bill(productive=1))
    assert (found.naive_pct, found.combined_pct, found.cap_pct, found.with_rate_pct) == (0, 0, 0, 0)


FRACTIONS = st.integers(0, 100).map(lambda n: Decimal(n).scaleb(-2))
SCOPES = ("s", "t")


@st.composite
def levers(draw: st.DrawFn, name: str) -> Lever:
    low, middle, high = sorted(draw(st.tuples(FRACTIONS, FRACTIONS, FRACTIONS)))
    kind: Kind = draw(st.sampled_from(sorted(ACTS_ON)))
    scopes = draw(st.sampled_from([(), ("s",), ("t",), ("s", "t")]))
    headroom = Decimal(draw(st.integers(0, 200))) if kind == "sku" else None
    return Lever(name, kind, low, middle, high, scopes, draw(st.sampled_from(["", "", "x", "y"])), headroom)


BILLS = st.fixed_dictionaries(
    {s: st.fixed_dictionaries({b: st.integers(0, 100).map(Decimal) for b in BUCKETS}) for s in SCOPES}
).map(Bill)
SETS = st.integers(0, 5).flatmap(lambda n: st.tuples(*(levers(f"lever {i}") for i in range(n))))


def paid(of: Bill) -> Decimal:
    return sum((v for s in of.scopes.values() for v in s.values()), Decimal(0))


@given(BILLS, SETS)
def test_never_above_the_waste_before_rates_nor_above_the_bill_after(of: Bill, made: tuple[Lever, ...]) -> None:
    found = combine(of, made)
    if isinstance(found, Unknown):
        assert not paid(of)
        return
    waste = sum(
        (v for s in of.scopes.values() for b, v in s.items() if b not in {"productive", "unobserved"}), Decimal(0)
    )
    assert 0 <= found.combined_pct <= found.cap_pct <= waste * 100 / paid(of) + CENT
    assert found.combined_pct <= found.with_rate_pct <= 100
    assert found.with_rate_pct <= found.naive_pct + CENT
    for spread in (found.combined, found.with_rate):
        assert spread.low_pct <= spread.middle_pct <= spread.high_pct
    assert found.with_rate_usd <= paid(of)


@given(BILLS, SETS, st.randoms(use_true_random=False))
def test_order_does_not_matter(of: Bill, made: tuple[Lever, ...], chance: random.Random) -> None:
    shuffled = list(made)
    chance.shuffle(shuffled)
    assert combine(of, made) == combine(of, shuffled)


@given(BILLS, SETS, levers("one more"))
def test_one_more_lever_never_lowers_the_figure(of: Bill, made: tuple[Lever, ...], more: Lever) -> None:
    before, after = combine(of, made), combine(of, [*made, more])
    if not isinstance(before, Unknown) and not isinstance(after, Unknown):
        assert after.with_rate_pct >= before.with_rate_pct
        assert after.naive_pct >= before.naive_pct


@given(BILLS, SETS, levers("this"), FRACTIONS)
def test_a_stronger_lever_never_lowers_the_figure(of: Bill, made: tuple[Lever, ...], one: Lever, more: Decimal) -> None:
    stronger = Lever(
        one.name, one.kind, one.low, max(one.middle, more), Decimal(1), one.scopes, one.exclusive, one.headroom_usd
    )
    before, after = combine(of, [*made, one]), combine(of, [*made, stronger])
    if not isinstance(before, Unknown) and not isinstance(after, Unknown):
        assert after.with_rate_pct >= before.with_rate_pct


@given(BILLS, SETS)
def test_exclusive_levers_are_never_both_counted(of: Bill, made: tuple[Lever, ...]) -> None:
    found = combine(of, made)
    if not isinstance(found, Unknown):
        chosen = [one.exclusive for one in made for row in found.levers if row.name == one.name and row.chosen]
        for name in set(chosen) - {""}:
            assert chosen.count(name) == 1


@given(st.integers(1, 100), FRACTIONS, FRACTIONS)
def test_one_fix_and_one_rate_multiply(stalled: int, fix: Decimal, rate: Decimal) -> None:
    of = bill(stalled=stalled)
    found = together(of, lever("fix", "throughput", str(fix)), lever("rate", "rate", str(rate)))
    assert abs(found.with_rate_pct - 100 * (1 - (1 - fix) * (1 - rate))) < CENT


def test_unrated_dollars_count_at_the_high_end_of_faster_work_alone() -> None:
    # 10 of the 30 claimed dollars are stalled; the other 20 may be among the 60 that could not be rated.
    of = bill(productive=30, stalled=10, unrated=60)
    found = together(of, lever("faster", "throughput", "0.3"))
    assert (found.combined.low_pct, found.combined.middle_pct, found.combined.high_pct) == (10, 10, 30)
    assert found.cap_pct == 10
    for kind, room in (("hours", None), ("sku", 100)):
        other = together(of, lever("other", kind, "0.3", headroom=room))
        assert other.combined.high_pct == (10 if kind == "sku" else 0)
