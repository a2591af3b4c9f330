"""Does a replay cost what a pencil says, and does the planned rule keep every deadline?"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.spot.backtest import PLANNED, run_rules
from gpuledger.plan.spot.belief import Belief
from gpuledger.plan.spot.clairvoyant import least_usd
from gpuledger.plan.spot.replay import ON_DEMAND, WAIT, Terms, World, replay
from gpuledger.plan.spot.rule import StartOverRule
from gpuledger.plan.spot.simple_rules import OnDemand, SingleZone


def world(up, price=1.0, on_demand=3.0, step=1.0):
    capacity = np.array(up, dtype=bool).reshape(len(up), -1)
    return World(step, np.full(capacity.shape, price), capacity, np.full(len(capacity), on_demand))


def zone(w, terms, every=math.inf, fallback=False):
    return SingleZone(w, terms, 0, every, fallback)


def test_on_demand_costs_work_and_restart():
    terms = Terms(5.0, 0.0, 0.5, 10.0)
    found = replay(world([1] * 12), terms, OnDemand())
    assert (found.usd, found.finish_h, found.met) == (pytest.approx(16.5), pytest.approx(5.5), True)


def test_spot_pays_for_checkpoints_and_the_restart():
    terms, w = Terms(4.0, 0.25, 0.5, 10.0), world([1] * 12)
    found = replay(w, terms, zone(w, terms, every=1.0))
    # 0.5 to start, 4 of work, 3 checkpoints (none after the last hour).
    assert found.finish_h == pytest.approx(5.25)
    assert found.usd == pytest.approx(5.25)


def test_a_reclaim_loses_what_is_not_saved():
    terms, w = Terms(4.0, 0.0, 0.0, 20.0), world([1, 1, 1, 0, 1, 1, 1, 1, 1, 1])
    saved_each_two = replay(w, terms, zone(w, terms, every=2.0))
    # 3 hours, of which 2 are saved; an hour without capacity; 2 more.
    assert (saved_each_two.finish_h, saved_each_two.usd, saved_each_two.reclaims) == (6.0, 5.0, 1)
    never = replay(w, Terms(4.0, None, 0.0, 20.0), zone(w, terms))
    assert (never.finish_h, never.usd) == (8.0, 7.0)


def test_what_is_left_when_the_world_ends_is_bought_on_demand():
    terms, w = Terms(4.0, 0.0, 0.5, 3.0), world([0, 0, 0])
    found = replay(w, terms, zone(w, terms))
    assert (found.usd, found.finish_h, found.met) == (13.5, 7.5, False)


def test_the_fallback_keeps_the_deadline():
    terms, w = Terms(4.0, 0.0, 0.0, 6.0), world([0] * 12)
    found = replay(w, terms, zone(w, terms, fallback=True))
    assert found.met
    assert found.on_demand_h == pytest.approx(4.0)


def test_moving_saves_first_and_starts_anew():
    class Moves:
        def interval_h(self, _pool):
            return math.inf

        def choose(self, tick, _saved, _unsaved, _mode):
            return 0 if tick < 2 else ON_DEMAND

    found = replay(world([1] * 9), Terms(4.0, 0.25, 0.5, 20.0), Moves())
    # 2 ticks give 1.5 of work; then 0.25 to save, 0.5 to start, 2.5 of work.
    assert found.finish_h == pytest.approx(5.25)
    assert found.usd == pytest.approx(2 * 1.0 + 3.25 * 3.0)
    assert found.moves == 2


WORLDS = st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=40, max_size=40)


@settings(deadline=None, max_examples=60)
@given(
    WORLDS,
    st.floats(1.0, 8.0),
    st.floats(0.0, 6.0),
    st.floats(0.0, 0.3),
    st.floats(0.0, 1.5),
    st.floats(0.001, 2.0),
    st.sampled_from([0.25, 0.5, 1.0]),
)
def test_the_planned_rule_never_misses_and_nobody_beats_the_bound(up, work, slack, save, restart, rate, step):
    w = world(up, step=step)
    terms = Terms(work, save, restart, work + restart + slack)
    beliefs = [Belief(1.0, rate, 1.0, "a"), Belief(1.0, rate / 2, 2.0, "b")]
    found = run_rules(w, terms, beliefs)
    assert found[PLANNED].met
    assert found["zone, fallback"].met
    assert found["any, fallback"].met
    bound = least_usd(w, terms)
    for outcome in found.values():
        if outcome.met:
            assert outcome.usd >= bound - 1e-6


@settings(deadline=None, max_examples=60)
@given(st.lists(st.booleans(), min_size=60, max_size=60), st.floats(0.5, 6.0), st.floats(0.0, 20.0))
def test_a_job_that_cannot_save_keeps_its_deadline_too(up, work, slack):
    w = world(up, step=0.5)
    terms = Terms(work, None, 0.25, work + 0.25 + slack)
    rule = StartOverRule(w, terms, [Belief(1.0, 0.1, 1.0)])
    assert replay(w, terms, rule).met


def _brute(w, terms):
    """Least dollars over every schedule, for worlds without overhead."""
    modes = [WAIT, ON_DEMAND, *range(w.spot.shape[1])]
    ticks = int(terms.deadline_h)
    best = math.inf
    for path in itertools.product(modes, repeat=ticks):
        if any(m >= 0 and not w.up[k, m] for k, m in enumerate(path)):
            continue
        if sum(m != WAIT for m in path) < terms.work_h:
            continue
        usd = sum(w.on_demand[k] if m == ON_DEMAND else w.spot[k, m] for k, m in enumerate(path) if m != WAIT)
        best = min(best, float(usd))
    return best


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 2))
def test_the_bound_is_the_optimum_where_starting_is_free(seed, work, slack):
    random = np.random.default_rng(seed)
    ticks = work + slack
    w = World(
        1.0, random.uniform(0.5, 2.0, (ticks, 2)), random.random((ticks, 2)) < 0.6, random.uniform(2.0, 3.0, ticks)
    )
    terms = Terms(float(work), 0.0, 0.0, float(ticks))
    optimum = _brute(w, terms)
    assert least_usd(w, terms) <= optimum + 1e-9
    assert least_usd(w, terms) == pytest.approx(optimum, rel=0.02)


def test_the_bound_by_pencil():
    # 3 hours of work in 4: spot at 1 for two of them, on-demand at 3 for the third, starts of half an hour each.
    w, terms = world([1, 1, 0, 0]), Terms(3.0, 0.0, 0.5, 4.0)
    # Spot gives 1.5 in 2 h for 2; on-demand 1.5 in 2 h for 6; or on-demand alone, 3.5 h for 10.5.
    assert least_usd(w, terms) <= 8.0 + 1e-9
    assert least_usd(w, terms) >= 7.5
