"""In which ways can hourly demand be forecast?

Each method takes a history without holes and the number of hours ahead. Exponential smoothing and the decomposition by
season and trend are statsmodels' (extra `plan`); the others need nothing but NumPy.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping

import numpy as np

from gpuledger.plan.capacity.series import DAY, WEEK, season_of

Method = Callable[[np.ndarray, int], np.ndarray]
NAIVE = "seasonal-naive"
MEAN_OVER = 4  # seasons
DAY_WAVES, WEEK_WAVES = 4, 3
RIDGE = 1e-3
# Old hours count half as much after this many weeks.
HALF_LIFE_WEEKS = 4
# A trend is carried ahead this many times the length of the history.
CARRY = 2
# Weeks that must agree before their shape counts half.
SHRINK_WEEKS = 1


def seasonal_naive(history: np.ndarray, steps: int) -> np.ndarray:
    """The last season again."""
    return np.resize(history[-min(season_of(len(history)), len(history)) :], steps)


def last_day(history: np.ndarray, steps: int) -> np.ndarray:
    """The last day again."""
    return np.resize(history[-DAY:], steps)


def last_hour(history: np.ndarray, steps: int) -> np.ndarray:
    """The last hour for all hours ahead."""
    return np.full(steps, history[-1])


def seasonal_drift(history: np.ndarray, steps: int) -> np.ndarray:
    """The last season again, with the mean growth of the history."""
    season = season_of(len(history))
    if len(history) < 2 * season:
        return seasonal_naive(history, steps)
    slope = (history[-season:].mean() - history[:season].mean()) / max(len(history) - season, 1)
    later = season * (1 + np.arange(steps) // season)  # what is repeated is a season or more ago
    return seasonal_naive(history, steps) + slope * np.minimum(later, CARRY * len(history))


def seasonal_mean(history: np.ndarray, steps: int) -> np.ndarray:
    """The mean of the last seasons, hour by hour."""
    season = season_of(len(history))
    seasons = min(MEAN_OVER, len(history) // season)
    if not seasons:
        return np.full(steps, history.mean())
    return np.resize(history[-seasons * season :].reshape(seasons, season).mean(axis=0), steps)


def harmonic(history: np.ndarray, steps: int) -> np.ndarray:
    """Waves of the day and the week around a level, recent hours counting more; the last miss fades out."""
    n = len(history)
    known, ahead = _waves(np.arange(n), n), _waves(np.arange(n, n + steps), n)
    weight = _recency(n)
    left = known.T @ (known * weight[:, None]) + RIDGE * n * np.eye(known.shape[1])
    fitted = np.linalg.solve(left, known.T @ (history * weight))
    rest = history - known @ fitted
    memory = _memory(rest)
    return ahead @ fitted + rest[-1] * memory ** np.arange(1, steps + 1)


def trend(history: np.ndarray, steps: int) -> np.ndarray:
    """A straight line through each hour of the season, with the profile of what it leaves."""
    n, season = len(history), season_of(len(history))
    place = np.arange(n)
    phase, one = place % season, np.ones(n)
    time = place - _phase_means(place.astype(np.float64), one, phase, season)[phase]
    spread = float(time @ time)
    slope = float(time @ (history - _phase_means(history, one, phase, season)[phase])) / spread if spread else 0.0
    return profile(history - slope * (place - n), steps) + slope * _ahead(n, steps)


def profile(history: np.ndarray, steps: int) -> np.ndarray:
    """The mean of each hour of the day, and of the week as far as weeks agree; the last miss fades out."""
    n = len(history)
    place, weight = np.arange(n), _recency(n)
    days = _phase_means(history, weight, place % DAY, DAY)
    weeks = n // WEEK
    shift = np.zeros(WEEK)
    if weeks:
        shift = _phase_means(history - days[place % DAY], weight, place % WEEK, WEEK) * weeks / (weeks + SHRINK_WEEKS)
    rest = history - days[place % DAY] - shift[place % WEEK]
    ahead = np.arange(n, n + steps)
    return days[ahead % DAY] + shift[ahead % WEEK] + rest[-1] * _memory(rest) ** np.arange(1, steps + 1)


def _phase_means(values: np.ndarray, weight: np.ndarray, phase: np.ndarray, phases: int) -> np.ndarray:
    total, held = np.bincount(phase, values * weight, phases), np.bincount(phase, weight, phases)
    return np.divide(total, held, out=np.zeros(phases), where=held > 0)


def _recency(n: int) -> np.ndarray:
    found: np.ndarray = 0.5 ** ((n - 1 - np.arange(n)) / (HALF_LIFE_WEEKS * WEEK))
    return found


def _waves(hours: np.ndarray, n: int) -> np.ndarray:
    """Columns of the regression: a level, waves of the day, and of the week where the history has two."""
    waves = [(DAY, k) for k in range(1, DAY_WAVES + 1)]
    waves += [(WEEK, k) for k in range(1, WEEK_WAVES + 1)] if season_of(n) == WEEK else []
    angles = [2 * np.pi * k * hours / period for period, k in waves]
    return np.column_stack([np.ones(len(hours)), *(f(a) for a in angles for f in (np.sin, np.cos))])


def _memory(rest: np.ndarray) -> float:
    """How much of a miss is left an hour later, 0 to 0.99."""
    spread = float(rest[:-1] @ rest[:-1])
    return min(0.99, max(0.0, float(rest[1:] @ rest[:-1]) / spread)) if spread > 0 else 0.0


def level(history: np.ndarray, steps: int) -> np.ndarray:
    """Exponential smoothing without a season."""
    return _smoothed(history, steps, {"trend": None})


def holt_winters(history: np.ndarray, steps: int) -> np.ndarray:
    """Exponential smoothing with a damped trend and a season (Holt-Winters)."""
    season = season_of(len(history))
    if len(history) < 2 * season:
        return seasonal_naive(history, steps)
    more = {"trend": "add", "damped_trend": True, "seasonal": "add", "seasonal_periods": season}
    return _smoothed(history, steps, more)


def stl_ets(history: np.ndarray, steps: int) -> np.ndarray:
    """The season taken out by STL, the rest by exponential smoothing with a damped trend."""
    from statsmodels.tsa.seasonal import STL  # type: ignore[import-untyped]

    season = season_of(len(history))
    if len(history) < 2 * season:
        return seasonal_naive(history, steps)
    waves = STL(history, period=season).fit().seasonal
    rest = _smoothed(history - waves, steps, {"trend": "add", "damped_trend": True})
    return rest + np.resize(waves[-season:], steps)


def _smoothed(history: np.ndarray, steps: int, kind: Mapping[str, object]) -> np.ndarray:
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat stretch does not converge; the back-test judges what comes out
        model = ExponentialSmoothing(history, initialization_method="heuristic", **kind)
        found = np.asarray(model.fit().forecast(steps), dtype=np.float64)
    return found if np.isfinite(found).all() else seasonal_naive(history, steps)


SIMPLE: dict[str, Method] = {
    NAIVE: seasonal_naive,
    "last-day": last_day,
    "last-hour": last_hour,
    "seasonal-drift": seasonal_drift,
    "seasonal-mean": seasonal_mean,
    "profile": profile,
    "harmonic": harmonic,
    "trend": trend,
}
SMOOTHED: dict[str, Method] = {"level": level, "holt-winters": holt_winters, "stl-ets": stl_ets}


# Methods that rarely fail badly: they lead until the back-test knows better.
STEADY = ("seasonal-mean", "profile", "harmonic", "level")


def has_smoothing() -> bool:
    """Whether statsmodels (extra `plan`) is installed."""
    return importlib.util.find_spec("statsmodels") is not None


def candidates() -> dict[str, Method]:
    """The methods that can run here, simple ones first."""
    return SIMPLE | (SMOOTHED if has_smoothing() else {})


def forecasts(history: np.ndarray, steps: int) -> dict[str, np.ndarray]:
    """What each method expects; never below zero."""
    if np.ptp(history) == 0:
        return {name: np.full(steps, history[-1]) for name in candidates()}
    return {name: np.maximum(0.0, method(history, steps)) for name, method in candidates().items()}


def _ahead(hours: int, steps: int) -> np.ndarray:
    """Hours ahead that a trend is carried: no further than twice the length of the history."""
    return np.minimum(np.arange(1, steps + 1), CARRY * hours)
