"""Is more time ever bad? A later deadline must not cost more, and a job must not wait for nothing."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.history import Changes, Pool, PriceHistory
from gpuledger.plan.spot.belief import Belief
from gpuledger.plan.spot.build import Asked, plan_spot
from gpuledger.plan.spot.replay import ON_DEMAND, WAIT, Terms, World, replay
from gpuledger.plan.spot.rule import PlannedRule
from gpuledger.plan.spot.worlds import capacity, step_of, within

DAY, FIRST = 86_400, 1_700_000_000 // 86_400 * 86_400
NOISE = 1.02
STEP, OUTAGE = 0.5, 1.2


def _mean_usd(prices, believed, real, deadline_h, worlds=8):
    """Mean cost and hours to the end in worlds that are the same for every deadline."""
    usd, done = [], []
    terms = Terms(12.0, 1 / 60, 1 / 12, deadline_h)
    regions = ["a"] * len(prices)
    for seed in range(worlds):
        up = capacity(regions, [real] * len(prices), 800, STEP, np.random.default_rng(seed))
        world = World(STEP, np.tile(prices, (800, 1)), up, np.ones(800))
        beliefs = [Belief(p, believed, OUTAGE, "a") for p in prices]
        found = replay(world, terms, PlannedRule(world, terms, beliefs, (0.5, 0.1)))
        assert found.met
        usd.append(found.usd)
        done.append(found.finish_h)
    return np.mean(usd), np.mean(done)


@pytest.mark.parametrize("prices", [(0.4,), (0.4, 0.4), (0.3, 0.45, 0.6)])
@pytest.mark.parametrize(("believed", "real"), [(0.5, 0.5), (0.1, 0.5), (0.02, 0.02), (0.5, 0.02)])
def test_a_later_deadline_never_costs_more(prices, believed, real):
    costs = [_mean_usd(prices, believed, real, h)[0] for h in (14.0, 18.0, 36.0, 90.0, 240.0)]
    assert all(later <= NOISE * sooner for sooner, later in pairwise(costs)), costs


def test_time_to_spare_is_not_spent_on_waiting_where_prices_stay():
    soon, late = (_mean_usd((0.4,), 0.1, 0.5, h)[1] for h in (60.0, 240.0))
    assert late <= NOISE * soon


def _choice(prices, up, deadline_h):
    world = World(STEP, np.tile(prices, (80, 1)), np.tile(up, (80, 1)), np.ones(80))
    beliefs = [Belief(p, 0.05, OUTAGE, "a") for p in prices]
    rule = PlannedRule(world, Terms(12.0, 1 / 60, 1 / 12, deadline_h), beliefs, (0.5, 0.1))
    return rule.choose(0, 0.0, 0.0, WAIT)


def test_a_dear_pool_is_left_alone_while_a_cheap_one_may_come_back():
    assert _choice((0.1, 0.9), (False, True), 36.0) == WAIT
    assert _choice((0.40, 0.41), (False, True), 36.0) == 1
    assert _choice((0.1, 0.9), (True, True), 36.0) == 0
    assert _choice((0.1, 0.9), (False, False), 12.1) == ON_DEMAND


@pytest.fixture
def steady():
    """200 days of one zone at one price."""
    at = FIRST + DAY * np.arange(200, dtype=np.int64)
    pool = Pool("g5.xlarge", "us-east-1", "us-east-1a")
    return PriceHistory({pool: Changes(at, np.full(200, 1.0), np.full(200, 0.4))}, at, "a test")


def test_the_plan_of_a_later_deadline_is_as_cheap_and_as_early(steady):
    asked = Asked(
        gpu_hours=((get_gpu("a10g"), 12.0),), gpus=1, checkpoint_h=1 / 60, restart_h=1 / 12, deadline_h=30.0,
        deadline_given=True, budget_usd=None, confidence_pct=95.0, regions=(), zones=(), reclaims_per_day=12.0,
        at_s=FIRST + 199 * DAY, draws=40, seed=0, backtest=False,
    )  # fmt: skip
    plans = [plan_spot(replace(asked, deadline_h=h), steady, dt.date(2024, 7, 1)) for h in (30.0, 120.0, 480.0)]
    costs = [float(p.chosen.cost.middle_usd) for p in plans]
    assert all(later <= NOISE * sooner for sooner, later in pairwise(costs)), costs
    assert all(p.chosen.finish_h.middle < 36 for p in plans)
    assert "planned to end within 84 h" in " ".join(plans[2].assumptions)


def test_a_far_deadline_does_not_make_the_ticks_longer():
    near, far = (within(Terms(10.0, 1 / 60, 0.1, h)) for h in (20.0, 5000.0))
    assert near.deadline_h == 20.0
    assert step_of(far.deadline_h) < 0.2
