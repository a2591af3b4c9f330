"""Is the fleet getting better or worse, did it change at some moment, and how far may chance move a mean?

From two days on, the mean of each hour of the day is fitted together with the slope, so that a daily cycle is neither
taken for a trend nor hides one. The interval comes from the scatter of the hours; as neighboring hours resemble each
other, n of them count as n (1 - r) / (1 + r) readings, r being the correlation of a residual with the next one. From
five days on it is at least as wide as the scatter of whole days around the line makes it (Student's t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from gpuledger.efficiency.statement import Direction, HourRow, Trend
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, count


def two_sided_p(t: float, freedom: int) -> float:
    """Probability of |T| >= |t| (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    if freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom == 1:
        inside = 2 * angle / math.pi
    elif freedom % 2:
        term = total = cosine
        for k in range(2, freedom - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = 2 / math.pi * (angle + sine * total)
    else:
        term = total = 1.0
        for k in range(1, freedom - 2, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        inside = sine * total
    return max(0.0, 1.0 - inside)


@lru_cache(maxsize=256)
def critical(freedom: int, p: float = 0.05) -> float:
    """The |t| that chance exceeds with probability p; accurate for p down to about 1e-9."""
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > p and high < 1e9:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if two_sided_p(middle, freedom) > p else (low, middle)
    return middle


SERIES = ("gpu_util_pct", "rfu_power_pct", "efficiency_gap_pp", "realized_power_tflops")
CONFIDENCE_P = 0.05
# A slope over less than a day is the time of day; a step needs some hours on both sides to be one.
MIN_POINTS = 24
MIN_SIDE = 6
# A daily cycle shows in hours that come back; the scatter of days needs some days.
CYCLE_FROM_DAYS = 2
DAYS_TELL_FROM = 5
# A block with fewer hours than this is not a day.
DAY_FROM_HOURS = 6
HOURS_PER_DAY = 24
# Below this share of the level, a difference is rounding, not a finding.
FLAT_RATIO = 1e-9
MIN_FREEDOM = 2
MAX_CORRELATION = 0.99


class _Fit(msgspec.Struct, frozen=True):
    """A line or a step: what it leaves unexplained, and how many independent readings the residuals are worth."""

    residual_ss: float
    independent: float


def trends(hours: Sequence[HourRow]) -> tuple[Trend, ...]:
    """Slope and change point of each fleet series."""
    out = []
    for series in SERIES:
        points = [
            (h.start_ms + h.hours * MS_PER_HOUR / 2, v, h.hours > 1)
            for h in hours
            if isinstance(v := getattr(h, series), float)
        ]
        folded = sum(p[2] for p in points)
        out.append(trend_of(series, [p[0] for p in points], [p[1] for p in points], folded))
    return tuple(out)


def trend_of(series: str, at_ms: Sequence[float], values: Sequence[float], folded: int = 0) -> Trend:
    """Slope per day with its 95 % interval, and the best single step of one series.

    `folded`: how many of the values are means of whole days, whose hours are gone.
    """
    readings = _readings(len(values), folded)
    if len(values) < MIN_POINTS:
        why = Unknown(f"{readings} are too few, {MIN_POINTS} are needed")
        return Trend(series, why, why, why, "not known", why, why, why, "")
    at, y = np.array(at_ms), np.array(values)
    days = (at - at[0]) / MS_PER_DAY
    x = days - days.mean()
    plain = float(x @ (y - y.mean()) / (x @ x))
    line = _fit(y - y.mean() - plain * x)
    change, before, after = _change(at_ms, y, line)
    if _is_flat(y, line.residual_ss + plain * plain * float(x @ x)):
        return Trend(series, plain, plain, plain, "flat", change, before, after, "the series does not vary")
    slope, reach, note = _slope(at, days, y, readings)
    if isinstance(reach, Unknown):
        return Trend(series, slope, reach, reach, "not known", change, before, after, note)
    low, high = slope - reach, slope + reach
    direction: Direction = "rising" if low > 0 else "falling" if high < 0 else "flat"
    return Trend(series, slope, low, high, direction, change, before, after, note)


def _readings(values: int, folded: int) -> str:
    """ "48 hours", "30 folded days", "48 hours and 30 folded days"."""
    hours, days = f"{values - folded} hours", count(folded, "folded day")
    return hours if not folded else days if values == folded else f"{hours} and {days}"


def _slope(at: np.ndarray, days: np.ndarray, y: np.ndarray, readings: str) -> tuple[float, float | Unknown, str]:
    """The slope per day, how far it may be off, and what both rest on."""
    cyclic = days[-1] >= CYCLE_FROM_DAYS
    hour = (at // MS_PER_HOUR % HOURS_PER_DAY).astype(np.int64) if cyclic else np.zeros(len(y), dtype=np.int64)
    x, left = _within(days, hour), _within(y, hour)
    if not x @ x > 0:  # no hour of the day comes back
        hour = np.zeros(len(y), dtype=np.int64)
        x, left, cyclic = _within(days, hour), _within(y, hour), False
    slope = float(x @ left / (x @ x))
    fit, groups = _fit(left - slope * x), len(set(hour.tolist()))
    # Each hour of the day takes one reading's worth of information from the residuals.
    freedom = fit.independent * (len(y) - groups + 1) / len(y) - 2
    # As if that many readings had been spread over the same time, each with the same scatter.
    error = float(np.sqrt(fit.residual_ss / (freedom * (x @ x)))) if freedom >= MIN_FREEDOM else 0.0
    reach = critical(int(freedom), CONFIDENCE_P) * error if freedom >= MIN_FREEDOM else 0.0
    block = days.astype(np.int64)
    whole = np.isin(block, np.flatnonzero(np.bincount(block) >= DAY_FROM_HOURS))
    if cyclic and len(set(block[whole].tolist())) >= DAYS_TELL_FROM:
        cycle = y - slope * days - (left - slope * x)
        level, by_days, note = _by_days(days[whole], (y - cycle)[whole], block[whole])
        return level, max(by_days, reach), note
    note = f"{readings} worth {fit.independent:.0f} independent readings"
    note += "; the mean of each hour of the day taken out" if cyclic else ""
    if days[-1] < CYCLE_FROM_DAYS:
        note += "; under two days, so a slope may be the time of day"
    return slope, reach if freedom >= MIN_FREEDOM else Unknown(f"{note}: too few for an interval"), note


def _within(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less the mean of their group."""
    return values - (np.bincount(group, weights=values) / np.maximum(np.bincount(group), 1))[group]


def _by_days(days: np.ndarray, y: np.ndarray, block: np.ndarray) -> tuple[float, float, str]:
    """The line through the means of whole days, each weighing as many hours as it has."""
    _, place = np.unique(block, return_inverse=True)
    weight = np.bincount(place).astype(np.float64)
    at, mean = (np.bincount(place, weights=v) / weight for v in (days, y))
    x = at - weight @ at / weight.sum()
    spread = float(weight @ (x * x))
    slope = float(weight @ (x * mean) / spread)
    residual = mean - weight @ mean / weight.sum() - slope * x
    freedom = len(weight) - 2
    error = float(np.sqrt(weight @ (residual * residual) / freedom / spread))
    note = f"{len(y)} hours of {len(weight)} days, the mean of each hour of the day taken out"
    return slope, critical(freedom, CONFIDENCE_P) * error, note


def _is_flat(y: np.ndarray, total_ss: float) -> bool:
    return bool(np.sqrt(total_ss / len(y)) <= FLAT_RATIO * max(1.0, float(np.abs(y).max())))


def _fit(residual: np.ndarray) -> _Fit:
    """Residuals with mean zero: their sum of squares, and the readings they are worth."""
    ss = float(residual @ residual)
    # Residuals all but zero have no correlation that means anything.
    correlation = float(residual[1:] @ residual[:-1]) / ss if ss > 1e-18 * len(residual) else 0.0
    # The estimate from a short series is too low by about (1 + 4 r) / n.
    n = len(residual)
    correlation = min(max(correlation + (1 + 4 * correlation) / n, 0.0), MAX_CORRELATION)
    if correlation <= 2 / np.sqrt(n):
        correlation = 0.0
    return _Fit(ss, n * (1 - correlation) / (1 + correlation))


def _change(
    at_ms: Sequence[float], y: np.ndarray, line: _Fit
) -> tuple[int | Unknown, float | Unknown, float | Unknown]:
    """The split with the largest sum of squares between its sides, if neither chance nor a slope explains it."""
    n = len(y)
    before_n = np.arange(MIN_SIDE, n - MIN_SIDE + 1)
    total = np.cumsum(y - y.mean())[before_n - 1]
    between = total**2 * n / (before_n * (n - before_n))
    k = int(before_n[int(np.argmax(between))])
    before, after = float(y[:k].mean()), float(y[k:].mean())
    step = _fit(np.concatenate([y[:k] - before, y[k:] - after]))
    gained, freedom = float(between.max()), step.independent - 2
    if _is_flat(y, gained):
        why = "no change: the series does not vary"
    elif step.residual_ss > line.residual_ss:
        why = "no change point: a steady slope explains the series better than one step"
    elif step.independent < 4:
        why = "no change point: too few independent readings to tell a step from chance"
    # The best of m splits is found by looking at all: each gets an m-th of the error allowed (Bonferroni).
    elif gained <= critical(int(freedom), CONFIDENCE_P / len(before_n)) ** 2 * step.residual_ss / freedom:
        why = "no change point: the best step is within chance"
    else:  # the step lies between two readings: halfway
        return round((at_ms[k - 1] + at_ms[k]) / 2), before, after
    return Unknown(why), Unknown(why), Unknown(why)
