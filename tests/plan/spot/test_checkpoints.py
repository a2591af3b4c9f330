"""Are the checkpoint formulas right: by pencil, against each other, and against simulated failures?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.plan.spot.checkpoints import (
    billed_per_work_h,
    daly_h,
    exact_h,
    intervals,
    job_h,
    one_plus_lambert,
    segment_h,
    without_checkpoints_h,
    young_h,
)

RATES = st.floats(1e-5, 5.0)
SAVES = st.floats(1e-4, 0.5)


def test_young_by_pencil():
    # 5 minutes every 24 hours: sqrt(2 x 5 x 1440) = 120 minutes.
    assert young_h(5 / 60, 1 / 24) == pytest.approx(2.0)


def test_daly_by_pencil():
    # c = 5 min, m = 1440 min: 120 (1 + sqrt(5/2880)/3 + 5/2880/9) - 5.
    assert 60 * daly_h(5 / 60, 1 / 24) == pytest.approx(120 * (1 + 0.0416667 / 3 + 0.00173611 / 9) - 5, rel=1e-6)
    assert daly_h(3.0, 1.0) == 1.0  # a checkpoint longer than twice the mean time between reclaims


def test_segment_by_pencil():
    # Rate 1 per hour, 1 hour of work, nothing else: e - 1 hours.
    assert segment_h(1.0, 0.0, 1.0) == pytest.approx(math.e - 1)
    # A wait of 1 hour after each reclaim, of which there are e - 1 on average.
    assert segment_h(1.0, 0.0, 1.0, wait_h=1.0) == pytest.approx(2 * (math.e - 1))


def test_a_job_without_checkpoints_blows_up():
    assert without_checkpoints_h(24.0, 0.5) == pytest.approx((math.exp(12.0) - 1) / 0.5)
    assert without_checkpoints_h(24.0, 0.0, restart_h=0.5) == pytest.approx(24.5)
    assert without_checkpoints_h(5000.0, 1.0) == math.inf


def test_lambert_against_scipy():
    special = pytest.importorskip("scipy.special")
    for x in (1e-12, 1e-7, 1e-3, 0.1, 1.0, 5.0, 30.0):
        expected = 1 + special.lambertw(-math.exp(-x - 1)).real
        assert one_plus_lambert(x) == pytest.approx(expected, rel=1e-6, abs=2e-8)


@given(SAVES, RATES)
def test_lambert_solves_its_equation(save, rate):
    y = one_plus_lambert(save * rate)
    assert 0 < y < 1
    assert -y - math.log1p(-y) == pytest.approx(save * rate, rel=1e-6, abs=1e-12)


@given(SAVES, RATES, st.floats(0.01, 3.0))
def test_no_interval_beats_the_exact_one(save, rate, times):
    best = billed_per_work_h(exact_h(save, rate), save, rate, 0.1)
    for other in (young_h(save, rate), times * exact_h(save, rate), daly_h(save, rate)):
        if other > 0:
            assert best <= billed_per_work_h(other, save, rate, 0.1) * (1 + 1e-9)


@given(RATES)
def test_young_and_daly_come_close_while_a_checkpoint_is_short(rate):
    found = intervals(1e-4 / rate, rate)
    assert found.young_h == pytest.approx(found.exact_h, rel=0.02)
    assert found.daly_h == pytest.approx(found.exact_h, rel=0.001)


@given(st.floats(0.5, 50.0), SAVES, st.floats(1e-5, 0.2), st.floats(0.0, 0.5), st.floats(0.0, 3.0))
def test_interruptions_only_make_a_job_longer(work, save, rate, restart, wait):
    every = exact_h(save, rate)
    assert job_h(work, every, save, rate, restart, wait) >= work + restart - 1e-9
    assert job_h(work, every, save, 2 * rate, restart, wait) >= job_h(work, every, save, rate, restart, wait) - 1e-9


def _simulated(work, every, save, rate, restart, wait, random):
    """One job, hour by hour as it happens."""
    at = done = 0.0
    fails = random.exponential(1 / rate)
    while True:
        need = restart
        clock = 0.0
        alive = True
        if fails < clock + need:
            alive = False
        clock += need
        while alive and done < work - 1e-12:
            piece = min(every, work - done)
            last = done + piece >= work - 1e-12
            clock += piece + (0.0 if last else save)
            if fails < clock:
                alive = False
            else:
                done += piece
        if alive:
            return at + clock
        at += fails + wait
        fails = random.exponential(1 / rate)


def test_the_expected_time_agrees_with_simulated_jobs():
    random = np.random.default_rng(5)
    case = {"work": 10.0, "every": 1.5, "save": 0.1, "rate": 0.3, "restart": 0.2, "wait": 0.7}
    times = [_simulated(**case, random=random) for _ in range(20_000)]
    expected = job_h(10.0, 1.5, 0.1, 0.3, 0.2, 0.7)
    assert np.mean(times) == pytest.approx(expected, rel=4 * np.std(times) / expected / math.sqrt(len(times)))
