"""Do forecasts follow season and trend, beat the naive one, and hold their laws?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.capacity import methods
from gpuledger.plan.capacity.backtest import backtest, origins_of
from gpuledger.plan.capacity.methods import NAIVE, candidates, forecasts
from gpuledger.plan.capacity.outlook import look_ahead
from gpuledger.plan.capacity.series import DAY, WEEK, Series, filled, usable
from gpuledger.units import MS_PER_HOUR, Unknown


def wave(hours: int, *, noise: float = 1.0, slope: float = 0.0, seed: int = 1) -> np.ndarray:
    t = np.arange(hours)
    made = 40 + slope * t + 10 * np.sin(2 * np.pi * t / DAY) + np.random.default_rng(seed).normal(0, noise, hours)
    return np.maximum(0, made)


def outlook(values, hours=4 * WEEK, **more):
    return look_ahead(Series("a", 0, np.asarray(values, dtype=float)), hours, **more)


def test_the_naive_forecast_repeats_the_last_day_and_from_two_weeks_on_the_last_week():
    days = np.arange(3 * DAY, dtype=float)
    assert methods.seasonal_naive(days, 30).tolist() == [*range(48, 72), *range(48, 54)]
    weeks = np.arange(2 * WEEK, dtype=float)
    assert methods.seasonal_naive(weeks, 2).tolist() == [WEEK, WEEK + 1]


def test_a_drift_by_pencil():
    """One GPU more per hour: the line goes on, hour by hour and day by day."""
    line = np.arange(4 * DAY, dtype=float)
    assert methods.seasonal_drift(line, 2 * DAY).tolist() == list(range(96, 144))


@pytest.mark.parametrize("name", ["trend", "seasonal-drift"])
def test_a_straight_line_is_carried_on_but_no_further_than_twice_the_history(name):
    line = np.arange(3 * DAY, dtype=float) / 10
    path = candidates()[name](line, 10 * DAY)
    day = path[:DAY].mean() - line[-DAY:].mean()
    assert day == pytest.approx(DAY / 10, rel=0.3)
    assert path[-DAY:].mean() == pytest.approx(path[-2 * DAY : -DAY].mean())


def test_every_method_finds_a_clean_season_again():
    t = np.arange(3 * WEEK + 2 * DAY)
    clean = 40 + 10 * np.sin(2 * np.pi * t / DAY)
    for name, path in forecasts(clean[: 3 * WEEK], 2 * DAY).items():
        if name not in {"level", "last-hour"}:
            assert path == pytest.approx(clean[3 * WEEK :], abs=0.5), name


@settings(max_examples=6, deadline=None)
@given(st.lists(st.floats(0, 1e4), min_size=2 * DAY, max_size=2 * DAY + 30), st.integers(1, 200))
def test_no_forecast_is_ever_negative_or_not_a_number(values, steps):
    for path in forecasts(np.array(values), steps).values():
        assert len(path) == steps
        assert np.isfinite(path).all()
        assert (path >= 0).all()


@pytest.fixture(scope="module")
def three_weeks():
    """Three noisy weeks, and how well they were forecast from week to week."""
    values = wave(3 * WEEK, noise=4.0)
    return values, backtest(values)


def test_noise_around_a_season_is_forecast_better_than_by_repeating_it(three_weeks):
    _, test = three_weeks
    assert test.skill > 0.15
    assert 0.65 < test.coverage(0.8) <= 1
    assert test.pinball(0.8) < test.pinball(0.8, NAIVE)
    assert sum(test.weights().values()) == pytest.approx(1)


def test_the_walk_forward_never_looks_ahead(three_weeks):
    """What comes after an origin's stretch changes neither its misses nor the weights before it."""
    values, one = three_weeks
    changed = values.copy()
    changed[-DAY:] = 500
    other = backtest(changed)
    untouched = [i for i, o in enumerate(one.origins) if o + one.ahead_h <= len(values) - DAY]
    assert untouched
    for i in untouched:
        assert np.array_equal(one.walked[i], other.walked[i])


@given(st.integers(2 * DAY, 200 * DAY))
def test_origins_leave_a_day_to_learn_from_and_all_of_the_stretch_to_check(hours):
    origins, ahead = origins_of(hours)
    assert ahead >= DAY
    assert min(origins) >= min(DAY, hours - ahead)
    assert max(origins) + ahead <= hours


def test_the_range_never_narrows_further_ahead():
    found = outlook(wave(3 * WEEK, noise=3.0), 8 * WEEK)
    widths = [found.hour(h, 0.8).high - found.path[h] for h in range(0, 8 * WEEK, 7)]
    assert all(b >= a - 1e-9 for a, b in pairwise(widths))
    levels = [found.level(h) for h in range(1, 8 * WEEK, 11)]
    assert levels == sorted(levels)


@pytest.fixture(scope="module")
def noisy():
    return outlook(wave(8 * DAY, noise=3.0), WEEK)


@given(st.floats(0.5, 0.9), st.floats(0.91, 1.0))
def test_covering_more_hours_never_needs_less(noisy, less, more):
    found = noisy
    assert found.covered(0, WEEK, less).middle <= found.covered(0, WEEK, more).middle
    ends = found.covered(0, WEEK, more)
    assert 0 <= ends.low <= ends.middle <= ends.high


def test_a_flat_demand_stays_flat_without_a_range():
    found = outlook([7.0] * (3 * DAY)).covered(0, WEEK, 0.95)
    assert (found.low, found.middle, found.high) == pytest.approx((7, 7, 7))


def test_growth_as_given_replaces_the_trend():
    found = outlook([10.0] * (3 * DAY), 720, growth_ratio=0.2)
    assert found.path[-1] == pytest.approx(12)
    assert outlook([10.0] * (3 * DAY), 720, growth_ratio=0.0).path[-1] == pytest.approx(10)


def test_gaps_are_filled_to_fit_but_never_scored():
    values = wave(2 * WEEK)
    values[30:40] = np.nan
    full = filled(values)
    assert not np.isnan(full).any()
    assert np.array_equal(full[40:], values[40:])
    assert full[30:40] == pytest.approx(40 + 10 * np.sin(2 * np.pi * np.arange(30, 40) / DAY), abs=3)
    late = wave(2 * WEEK)
    late[-5:] = np.nan
    assert np.isnan(backtest(late).misses[NAIVE][-1][-5:]).all()


def test_too_short_or_too_sparse_a_history_is_refused_with_a_reason():
    short = usable(Series("a", 0, np.ones(47)))
    assert isinstance(short, Unknown)
    assert "47 observed hours" in short.why
    sparse = np.full(10 * DAY, np.nan)
    sparse[:30] = sparse[-30:] = 1.0
    assert isinstance(usable(Series("a", 0, sparse)), Unknown)
    trimmed = usable(Series("a", 0, np.concatenate([[np.nan] * 5, np.ones(50), [np.nan] * 3])))
    assert (trimmed.start_ms, len(trimmed.values)) == (5 * MS_PER_HOUR, 50)


def test_without_statsmodels_the_simple_methods_still_forecast(monkeypatch):
    monkeypatch.setattr(methods, "has_smoothing", lambda: False)
    assert set(forecasts(wave(3 * DAY), 5)) == set(methods.SIMPLE)
    assert backtest(wave(2 * WEEK, noise=4.0)).skill > 0


def test_two_days_are_enough_for_a_forecast_without_a_known_skill():
    found = outlook(wave(2 * DAY), DAY)
    assert isinstance(found.tested.skill, Unknown)
    ends = found.covered(0, DAY, 0.95)
    assert ends.low < ends.middle < ends.high
