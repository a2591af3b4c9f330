"""Do the queues that a plan is compared with do what their names say?"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger.plan.batching.arrivals import on_arrival
from gpuledger.plan.batching.grid import choose_step, make_grid
from gpuledger.plan.batching.policies import Policy, run_policy
from gpuledger.plan.batching.price_windows import PriceWindow
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN

START_MS = 1_794_787_200_000


def starts(jobs, pools, policy):
    grid = make_grid(jobs, pools, START_MS, MS_PER_HOUR, 0)
    chosen = run_policy(grid, policy).chosen
    return {grid.tasks[i].job.id: (c.start, grid.lanes[c.lane].pool.name) for i, c in chosen.items()}


@pytest.fixture
def queue(job):
    """Big blocks the pool for one of its halves; small could overtake wide."""
    return [job("big", 6, 4, 0, 99), job("wide", 8, 1, 0, 99), job("small", 1, 1, 0, 99), job("urgent", 8, 1, 1, 6)]


def test_nobody_overtakes_in_fifo(queue, pool):
    found = starts(queue, [pool()], Policy.FIFO)
    assert [found[n][0] for n in ("big", "wide", "small", "urgent")] == [0, 4, 5, 6]


def test_best_fit_lets_small_jobs_through(queue, pool):
    found = starts(queue, [pool()], Policy.BEST_FIT)
    assert [found[n][0] for n in ("big", "wide", "small", "urgent")] == [0, 4, 0, 5]


def test_the_earliest_deadline_goes_first(queue, pool):
    found = starts(queue, [pool()], Policy.EDF)
    assert [found[n][0] for n in ("big", "wide", "small", "urgent")] == [0, 5, 0, 4]


def test_best_fit_takes_the_pool_it_fills_and_fifo_the_cheaper_one(job, pool):
    pools = [pool("cheap", 8, "1"), pool("snug", 2, "3")]
    jobs = [job("a", 2, 1)]
    assert starts(jobs, pools, Policy.BEST_FIT)["a"][1] == "snug"
    assert starts(jobs, pools, Policy.FIFO)["a"][1] == "cheap"


def test_a_step_is_as_long_as_rounding_and_deadlines_allow(job, pool):
    assert choose_step([job("a", 1, 5)], [pool()], START_MS) == 60 * MS_PER_MIN
    assert choose_step([job("a", 1, 1.5)], [pool()], START_MS) == 30 * MS_PER_MIN
    # From 00:10 on and due an hour later: no grid of an hour has such a start.
    assert choose_step([job("a", 1, 1, 1 / 6, 7 / 6)], [pool()], START_MS) == 10 * MS_PER_MIN


def test_a_job_that_waits_for_a_cheap_hour_gives_way_to_one_that_cannot(job, pool):
    night = PriceWindow(Decimal(1), 20 * 60, 23 * 60)
    jobs = [job("patient", 1, 3, 0, 48), job("urgent", 1, 3, 18, 22)]
    grid = make_grid(jobs, [pool(gpus=1, windows=(night,))], START_MS, MS_PER_HOUR, 0)
    found, _ = on_arrival(grid, 0.0, lambda _n: None)  # without work for choosing again together
    assert found.fits()
    assert (found.chosen[1].start, found.score().missed) == (19, 0)
    assert found.chosen[0].start == 44  # the night after


def test_jobs_that_wait_give_way_at_once_and_not_at_the_next_full_hour(job, pool):
    later = PriceWindow(Decimal(1), 2 * 60, 12 * 60)
    jobs = [job("patient", 1, 1, 0, 12), job("urgent", 1, 2.5, 1 / 6, 3.2)]
    grid = make_grid(jobs, [pool(gpus=1, windows=(later,))], START_MS, 10 * MS_PER_MIN, 0)
    found, _ = on_arrival(grid, 0.0, lambda _n: None)
    assert found.fits()
    assert (found.chosen[1].start, found.chosen[0].start, found.score().missed) == (4, 19, 0)
