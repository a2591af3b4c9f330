"""Is the value of a state the least expected cost? Against plain recursion over every choice."""

from __future__ import annotations

import math
import sys
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.spot.belief import Belief, billed, interval_of, market_of
from gpuledger.plan.spot.replay import Terms
from gpuledger.plan.spot.value import IDLE_OUT, IDLE_UP, SPOT, Market, value_of

LEAST_INTERVAL = 1 / 60


def _recursion(market, work, ticks):
    """Expected dollars in ticks of one hour without overheads; a reclaim at the end of one loses next to nothing."""
    lost, back = 1 - math.exp(-market.reclaims_per_h), 1 - math.exp(-market.back_per_h)
    gone = lost * (1 - market.other_up)

    @cache
    def least(left, time, up):
        if left <= 0:
            return 0.0
        if time <= 0:
            return math.inf

        def later(then, out):
            return out * least(then, time - 1, False) + (1 - out) * least(then, time - 1, True)

        on_demand = market.on_demand_usd_h + later(left - 1, gone if up else 1 - back)
        choices = [on_demand]
        if time - 1 >= left:
            choices.append(later(left, gone if up else 1 - back))
        if up and time >= left + LEAST_INTERVAL:
            reclaimed = later(left - 1, 1 - market.other_up)
            choices.append(market.spot_usd_h + (1 - lost) * least(left - 1, time - 1, True) + lost * reclaimed)
        return min(choices)

    return least(work, ticks, True), least(work, ticks, False)


@settings(deadline=None, max_examples=40)
@given(
    st.floats(0.1, 2.9), st.floats(0.01, 1.0), st.floats(0.0, 0.9), st.floats(0.1, 3.0), st.integers(1, 4),
    st.integers(0, 5),
)  # fmt: skip
def test_value_against_recursion(spot, rate, other, back, work, slack):
    market = Market(spot, 3.0, rate, other, back, LEAST_INTERVAL)
    terms = Terms(float(work), 0.0, 0.0, float(work + slack))
    value = value_of(market, terms, 1.0)
    up, out = _recursion(market, work, work + slack)
    assert value.at(work + slack, IDLE_OUT, work) == pytest.approx(out, rel=0.03)
    assert value.at(work + slack, IDLE_UP, work) == pytest.approx(up, rel=0.03)


def test_without_slack_everything_is_on_demand():
    value = value_of(Market(1.0, 3.0, 0.1, 0.0, 1.0, 1.0), Terms(5.0, 0.0, 0.0, 5.0), 0.5)
    assert value.at(10, IDLE_UP, 5.0) == pytest.approx(15.0, rel=0.02)


def test_with_much_slack_and_no_reclaims_everything_is_spot():
    market = Market(1.0, 3.0, 1e-9, 0.0, 1.0, 5.0)
    value = value_of(market, Terms(5.0, 0.0, 0.0, 20.0), 0.5)
    assert value.at(40, IDLE_UP, 5.0) == pytest.approx(5.0, rel=0.02)
    assert value.at(40, SPOT, 5.0) == pytest.approx(5.0, rel=0.02)


def test_more_time_never_costs_more():
    market = Market(1.0, 3.0, 0.3, 0.2, 0.7, 1.0)
    value = value_of(market, Terms(6.0, 0.05, 0.2, 24.0), 0.5)
    costs = [value.at(ticks, IDLE_UP, 6.0) for ticks in range(13, 49)]
    assert all(later <= sooner + 1e-6 for sooner, later in pairwise(costs))


def test_more_zones_are_up_more_often():
    terms = Terms(10.0, 1 / 60, 0.1, 20.0)
    one = market_of([Belief(1.0, 0.2, 2.0, "a")], 3.0, terms, 0.5, 0.1)
    near = market_of([Belief(1.0, 0.2, 2.0, "a")] * 3, 3.0, terms, 0.5, 0.1)
    far = market_of([Belief(1.0, 0.2, 2.0, r) for r in "abc"], 3.0, terms, 0.5, 0.1)
    assert one.other_up == 0.0
    assert 0 < near.other_up < far.other_up < 1
    assert one.back_per_h < near.back_per_h < far.back_per_h


def test_a_pool_reclaimed_often_costs_more_per_hour_of_work():
    terms = Terms(10.0, 1 / 60, 0.1, 20.0)
    calm, wild = Belief(1.0, 0.001, 1.0), Belief(1.0, 0.5, 1.0)
    assert billed(calm, terms) < billed(wild, terms)
    assert interval_of(calm, terms) > interval_of(wild, terms)
    assert calm.after(3, 10.0).reclaims_per_h > calm.reclaims_per_h
    assert wild.after(0, 50.0).reclaims_per_h < wild.reclaims_per_h


RATES = st.lists(st.floats(1e-4, 2.0), min_size=2, max_size=8).map(tuple)


@given(RATES, st.integers(0, 5), st.floats(0.0, 100.0))
def test_a_rate_known_as_a_range_stays_in_it_and_follows_experience(rates, reclaims, hours):
    belief = Belief(1.0, 0.1, 1.0, rates=rates)
    found = belief.after(reclaims, hours).reclaims_per_h
    assert min(rates) * (1 - 1e-9) <= found <= max(rates) * (1 + 1e-9)
    assert belief.after(reclaims + 1, hours).reclaims_per_h >= found * (1 - 1e-9)
    assert belief.after(reclaims, hours + 5.0).reclaims_per_h <= found * (1 + 1e-9)


def test_before_any_experience_a_range_counts_as_its_mean():
    assert Belief(1.0, 0.1, 1.0, rates=(0.1, 0.3, 0.8)).after(0, 0.0).reclaims_per_h == pytest.approx(0.4)


TIGHT = Terms(6.0, 1 / 60, 1 / 12, 8.0)


@settings(deadline=None, max_examples=15)
@given(st.floats(0.1, 0.9), st.floats(0.01, 1.0), st.floats(0.0, 0.9))
def test_more_intervals_to_choose_from_never_cost_more(spot, rate, other):
    market = Market(spot, 1.0, rate, other, 0.8, 2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Market.__module__], "INTERVALS", 2)  # only the shortest and the longest
        few = value_of.__wrapped__(market, TIGHT, 0.25)
    many = value_of.__wrapped__(market, TIGHT, 0.25)
    # Who starts takes the interval that is best for who runs, so it may be a trace worse.
    for place in (IDLE_OUT, IDLE_UP, SPOT):
        assert many.at(32, place, TIGHT.work_h) <= few.at(32, place, TIGHT.work_h) * 1.005


def test_a_job_saves_more_often_when_little_time_is_left_to_lose():
    value = value_of(Market(0.3, 1.0, 0.05, 0.5, 0.8, 2.0), Terms(6.0, 1 / 60, 1 / 12, 24.0), 0.25)
    tight, loose = (value.interval_h(ticks, 6.0, 0.05) for ticks in (28, 96))
    assert tight < loose / 2
    assert loose == pytest.approx(2.0)
    assert value.interval_h(96, 6.0, 0.2) == pytest.approx(loose / 2)  # four times the reclaims: half the interval
