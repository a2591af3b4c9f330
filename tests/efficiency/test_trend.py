"""Is Student's t the one of the tables?"""

from __future__ import annotations

import numpy as np
import pytest

from gpuledger.efficiency.statement import Trend
from gpuledger.efficiency.trend import critical, trend_of, two_sided_p
from gpuledger.units import MS_PER_HOUR, Unknown


@pytest.mark.parametrize(
    ("freedom", "p", "t"),
    [(1, 0.05, 12.706), (2, 0.05, 4.303), (3, 0.01, 5.841), (10, 0.05, 2.228), (30, 0.001, 3.646), (500, 0.05, 1.965)],
)
def test_printed_tables(freedom: int, p: float, t: float) -> None:
    assert critical(freedom, p) == pytest.approx(t, abs=6e-4)
    assert two_sided_p(t, freedom) == pytest.approx(p, rel=2e-3)


def test_no_freedom_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="degree"):
        two_sided_p(1.0, 0)


def test_nothing_is_certain_at_zero() -> None:
    assert two_sided_p(0.0, 7) == 1.0


HOURS = 168


def trend(values: np.ndarray) -> Trend:
    at = [(i + 0.5) * MS_PER_HOUR for i in range(len(values))]
    return trend_of("rfu_power_pct", at, values.tolist())


def noise(seed: int, n: int = HOURS) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, n)


def autocorrelated(seed: int, r: float, n: int = HOURS) -> np.ndarray:
    out = noise(seed, n)
    for i in range(1, n):
        out[i] += r * out[i - 1]
    return out


def test_a_slope_is_per_day() -> None:
    found = trend(60 + 0.1 * np.arange(HOURS) + noise(1))
    assert found.slope_per_day == pytest.approx(2.4, abs=0.15)
    assert found.slope_low < 2.4 < found.slope_high  # type: ignore[operator]
    assert found.direction == "rising"
    assert trend(60 - 0.1 * np.arange(HOURS) + noise(1)).direction == "falling"


def test_least_squares_by_hand() -> None:
    """With white residuals the interval is the textbook one."""
    y = np.arange(24.0) / 24 + np.tile([0.5, -0.5], 12)
    x = np.arange(24) / 24
    slope, intercept = np.polyfit(x, y, 1)
    left = y - slope * x - intercept
    error = np.sqrt(left @ left / 22 / ((x - x.mean()) @ (x - x.mean())))
    found = trend(y)
    assert found.slope_per_day == pytest.approx(slope)
    assert found.slope_high == pytest.approx(slope + 2.0739 * error, rel=1e-4)
    assert found.slope_low == pytest.approx(slope - 2.0739 * error, rel=1e-4)


def test_a_steady_slope_is_no_change_point() -> None:
    found = trend(60 + 0.1 * np.arange(HOURS) + noise(2))
    assert isinstance(found.change_at_ms, Unknown)
    assert "slope" in found.change_at_ms.why


def test_a_step_is_found_where_it_is() -> None:
    values = np.where(np.arange(HOURS) < 100, 66.0, 58.0) + noise(3)
    found = trend(values)
    assert found.change_at_ms == pytest.approx(100 * MS_PER_HOUR, abs=MS_PER_HOUR)
    assert found.before == pytest.approx(66, abs=0.4)
    assert found.after == pytest.approx(58, abs=0.4)


def test_noise_is_flat_most_of_the_time() -> None:
    rng = range(200)
    sloped = sum(trend(60 + noise(s)).direction != "flat" for s in rng)
    stepped = sum(not isinstance(trend(60 + noise(s)).change_at_ms, Unknown) for s in rng)
    assert sloped <= 0.10 * 200  # 5 % by design
    assert stepped <= 0.06 * 200


def test_hours_that_follow_each_other_are_not_independent() -> None:
    """Slow swings look like slopes: with the correlation left out, over half of these would be called trends."""
    wrong = sum(trend(60 + autocorrelated(s, 0.9)).direction not in ("flat", "not known") for s in range(100))
    assert wrong <= 20
    assert "168 hours worth 1" not in trend(60 + autocorrelated(1, 0.9)).note.replace("worth 1 ", "")


def daily(seed: int, slope: float, n: int = HOURS, swing: float = 15.0, r: float = 0.5) -> np.ndarray:
    """A level of 60, so many points a day, a daily cycle, and noise that lasts for some hours."""
    t = np.arange(n)
    return 60 + slope * t / 24 + swing * np.sin(2 * np.pi * t / 24) + 2 * autocorrelated(seed, r, n)


@pytest.mark.parametrize(("hours", "least"), [(HOURS, 0.99), (120, 0.99), (72, 0.95)])
def test_a_fall_shows_under_a_daily_cycle(hours: int, least: float) -> None:
    """4 points a day under a cycle of 15 points up and down."""
    found = [trend(daily(s, -4.0, hours)) for s in range(100)]
    assert sum(f.direction == "falling" for f in found) >= least * 100
    inside = sum(f.slope_low <= -4 <= f.slope_high for f in found)  # type: ignore[operator]
    assert inside >= 90
    assert "hour of the day taken out" in found[0].note


@pytest.mark.parametrize(("swing", "r"), [(0.0, 0.0), (0.0, 0.5), (15.0, 0.0), (15.0, 0.5), (15.0, 0.9)])
@pytest.mark.parametrize("hours", [96, HOURS])
def test_a_daily_cycle_alone_is_no_trend(hours: int, swing: float, r: float) -> None:
    """Chance allows 5 of 100; with 200 series more than 18 would come by chance once in 200 times."""
    wrong = sum(trend(daily(s, 0.0, hours, swing, r)).direction in {"rising", "falling"} for s in range(200))
    assert wrong <= 18


def test_missing_hours_hide_neither_trend_nor_cycle() -> None:
    """40 % of the hours lost at random, and one whole day: the slope is still found, and none is made up."""

    def thinned(seed: int, slope: float) -> Trend:
        rng = np.random.default_rng(1000 + seed)
        keep = (rng.random(HOURS) > 0.4) & (np.arange(HOURS) // 24 != 3)
        at = (np.arange(HOURS) + 0.5)[keep] * MS_PER_HOUR
        return trend_of("rfu_power_pct", at.tolist(), daily(seed, slope)[keep].tolist())

    assert sum(thinned(s, -4.0).direction == "falling" for s in range(100)) >= 97
    assert sum(thinned(s, 0.0).direction in {"rising", "falling"} for s in range(200)) <= 18


def test_hours_that_never_come_back_have_no_cycle_to_take_out() -> None:
    """One reading a day, each at another hour: a plain line."""
    at = [(25 * i + 0.5) * MS_PER_HOUR for i in range(24)]
    found = trend_of("rfu_power_pct", at, (60 - np.arange(24) * 25 / 24 + 0.1 * noise(7, 24)).tolist())
    assert found.direction == "falling"
    assert found.slope_per_day == pytest.approx(-1.0, abs=0.05)


def test_a_series_that_does_not_vary() -> None:
    found = trend(np.full(HOURS, 60.0))
    assert (found.direction, found.slope_per_day) == ("flat", pytest.approx(0))
    assert isinstance(found.change_at_ms, Unknown)


def test_too_few_hours_say_so() -> None:
    found = trend(noise(4, 20))
    assert isinstance(found.slope_per_day, Unknown)
    assert "20 hours" in found.slope_per_day.why
    assert found.direction == "not known"


def test_under_two_days_may_be_the_time_of_day() -> None:
    assert "time of day" in trend(noise(5, 30)).note
    assert "time of day" not in trend(noise(5, 72)).note
