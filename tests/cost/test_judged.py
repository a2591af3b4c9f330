"""Are dollars shown as known only where they are?"""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.cost.judged import (
    NO_PRICE,
    at_least,
    known_buckets,
    known_parts,
    known_productive,
    known_waste,
    money_json,
    open_usd,
)
from gpuledger.cost.statement import BUCKETS, Dollars, Times
from gpuledger.units import Unknown

amounts = st.one_of(st.just(Decimal(0)), st.decimals(0, 10**6, places=2))
bills = st.builds(Dollars, *([amounts] * len(BUCKETS)))
times = st.builds(Times, *([st.integers(0, 10**9)] * len(BUCKETS)))


@given(bills)
def test_waste_is_unknown_exactly_where_nothing_is_judged(dollars: Dollars) -> None:
    found = known_waste(dollars)
    judged = dollars.paid_usd - open_usd(dollars)
    assert isinstance(found, Unknown) == bool(dollars.paid_usd and not judged)
    if not isinstance(found, Unknown):
        assert found == dollars.waste_usd
    else:
        assert at_least(dollars)


@given(bills)
def test_productive_dollars_are_theirs_or_unknown(dollars: Dollars) -> None:
    found = known_productive(dollars)
    if isinstance(found, Unknown):
        assert not dollars.productive_usd
        assert not dollars.stalled_usd
        assert open_usd(dollars)
    else:
        assert found == dollars.productive_usd


@given(bills, times, st.sampled_from([0.0, 2.5]))
def test_buckets_without_a_price_are_unknown_and_the_rest_is_the_bill(
    dollars: Dollars, spent: Times, unpriced_h: float
) -> None:
    found = known_buckets(dollars, spent, unpriced_h)
    known = {b: usd for b, usd in found.items() if not isinstance(usd, Unknown)}
    assert sum(known.values()) == dollars.paid_usd
    for bucket in found.keys() - known.keys():
        assert not dollars.each()[bucket]
        if found[bucket] is NO_PRICE:
            assert unpriced_h
            assert spent.each()[bucket]


@given(st.one_of(bills, times))
def test_a_part_is_unknown_exactly_where_no_evidence_divides_the_whole(amounts: Dollars | Times) -> None:
    each, found = amounts.each(), known_parts(amounts)
    unknown = {b for b, part in found.items() if isinstance(part, Unknown)}
    assert sum(each[b] for b in found.keys() - unknown) == amounts.paid
    rated, seen = each["productive"] or each["stalled"], amounts.paid - each["unobserved"]
    if amounts.paid and not seen:
        assert unknown == set(BUCKETS) - {"unobserved"}
    elif each["unrated"] and not rated:
        assert unknown == {"productive", "stalled"}
    else:
        assert not unknown
    # A waste that is known has all of its parts known, or is a least.
    if not isinstance(known_waste(amounts), Unknown) and "stalled" in unknown:
        assert amounts.waste


@given(bills, times)
def test_json_has_no_share_of_waste_that_is_unknown(dollars: Dollars, spent: Times) -> None:
    made = money_json(dollars, spent)
    assert isinstance(made["waste_usd"], Unknown) == isinstance(made["waste_pct"], Unknown)


def test_without_a_price_all_of_it_is_unknown() -> None:
    why = Unknown("no price")
    assert known_waste(why) is known_productive(why) is why
    assert not at_least(why)
