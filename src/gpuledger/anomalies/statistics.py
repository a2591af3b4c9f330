"""How far is a figure from the others, when did a series change, and is it chance?

All of it holds up when some of the values are wild: medians, median absolute deviations, ranks. Each function is small
enough to check with a pencil.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# The median absolute deviation of normal values times this is their standard deviation.
MAD_TO_SIGMA = 1.4826
# A median of normal values is this much less certain than their mean.
MEDIAN_TO_MEAN = 1.2533
# Values further out than this many deviations count as this far out: one wild hour does not make a change.
_CLIP = 8.0
# The first quartile of the differences of pairs of normal values times this is their standard deviation; of few values
# times this more (Croux and Rousseeuw 1992).
_PAIRED_TO_SIGMA = 2.2219
_PAIRED_SMALL = {2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}
_MOST_PAIRED = 1000
_MOST_LEFT_OUT = 64
_MOST_CARRIED = 0.9
_STEPS = 500
_HALVINGS = 30
_LOOK = 3.0
_WORTH = 2.5
_DRIFT_BETTER = 0.9  # a drift must leave this much less over than a step


def spread(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The standard deviation by the median absolute deviation; NaN is left out."""
    middle = np.nanmedian(values, axis=axis, keepdims=axis is not None)
    return np.asarray(MAD_TO_SIGMA * np.nanmedian(np.abs(values - middle), axis=axis))


def spread_by_pairs(values: np.ndarray) -> float:
    """The standard deviation by the first quartile of the differences of all pairs (Qn of Rousseeuw and Croux).

    Half of the values may be wild. Of many normal values it is as sure as the standard deviation of 82 % as many, the
    median absolute deviation only as that of 37 %; of seven it is surer too. All values are known.
    """
    found = np.sort(values)
    if len(found) > _MOST_PAIRED:
        found = found[np.linspace(0, len(found) - 1, _MOST_PAIRED).astype(int)]
    n = len(found)
    if n < 2:
        return 0.0
    apart = (found[None, :] - found[:, None])[np.triu_indices(n, 1)]
    half = n // 2 + 1
    rank = half * (half - 1) // 2
    small = _PAIRED_SMALL.get(n) or (n / (n + 1.4) if n % 2 else n / (n + 3.8))
    return float(_PAIRED_TO_SIGMA * small * np.partition(apart, rank - 1)[rank - 1])


def spread_without_each(values: np.ndarray) -> np.ndarray:
    """By value the deviation of all others; of many values one more or less does not matter, and all count."""
    if len(values) > _MOST_LEFT_OUT:
        return np.full(len(values), spread_by_pairs(values))
    return np.array([spread_by_pairs(np.delete(values, i)) for i in range(len(values))])


def normal_tail(z: float) -> float:
    """The chance of a normal value above `z`."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def student_tail(t: float, freedom: float) -> float:
    """The chance of a value above `t` of Student's distribution: few peers say less of how far apart GPUs are."""
    if t <= 0:
        return 1 - student_tail(-t, freedom) if t else 0.5
    at = np.linspace(math.atan(t / math.sqrt(freedom)), math.pi / 2, _STEPS)
    whole = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return float(whole * np.trapezoid(np.cos(at) ** (freedom - 1), at))


def student_size(chance: float, freedom: float) -> float:
    """The value that Student's distribution exceeds with this chance."""
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > chance:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > chance else (low, middle)
    return high


def poisson_tail(events: int, expected: float) -> float:
    """The chance of at least this many events where `expected` are expected."""
    if events <= 0:
        return 1.0
    term = math.exp(-expected + events * math.log(expected) - math.lgamma(events + 1)) if expected > 0 else 0.0
    total, k = 0.0, events
    while term > 1e-18 * max(total, 1e-300) and k < events + 10_000:
        total, k = total + term, k + 1
        term *= expected / k
    return min(1.0, total)


def chosen(chances: Sequence[float] | np.ndarray, share: float) -> np.ndarray:
    """Which of many tests to believe so that at most this share of those believed is chance (Benjamini-Hochberg)."""
    found = np.asarray(chances, dtype=float)
    if not len(found):
        return np.zeros(0, dtype=bool)
    order = np.argsort(found, kind="stable")
    below = found[order] <= share * np.arange(1, len(found) + 1) / len(found)
    last = np.flatnonzero(below).max(initial=-1)
    return np.asarray(found <= found[order[last]]) if last >= 0 else np.zeros(len(found), dtype=bool)


@dataclass(frozen=True)
class Change:
    """How a series got worse: from which place on, from which level to which, and the chance of that.

    A drift is level before `at` and then moves on steadily to `after` at the end; a step stays there.
    """

    at: int
    before: float
    after: float
    sigma: float
    chance: float
    drift: bool = False


def biggest_change(values: np.ndarray, noise: float, worse: int, edge: int = 3) -> Change | None:
    """The largest change of a series for the worse (`worse`: 1 up, -1 down); None where it has none.

    Of every place to cut at, the one where the means of both sides are the most deviations apart; the chance counts
    all places tried. Values that follow each other are alike, which makes changes by chance larger: the correlation of
    what the change leaves over widens the deviation. NaN is left out; places count all values.
    """
    places = np.flatnonzero(~np.isnan(values))
    n = len(places)
    if n < 2 * edge:
        return None
    found = values[places]
    rough = max(noise, float(spread(np.diff(found))) / math.sqrt(2))
    middle = float(np.median(found))
    sums = np.cumsum(np.clip(found, middle - _CLIP * rough, middle + _CLIP * rough))
    left = np.arange(edge, n - edge + 1)
    gap = (sums[-1] - sums[left - 1]) / (n - left) - sums[left - 1] / left
    scaled = worse * gap / np.sqrt(1 / left + 1 / (n - left))
    cut = int(left[int(np.argmax(scaled))])
    before, after = float(np.median(found[:cut])), float(np.median(found[cut:]))
    if worse * (after - before) <= 0:
        return None
    rest = np.concatenate([found[:cut] - before, found[cut:] - after])
    at, drifts = int(places[cut]), False
    if float(scaled.max()) > _LOOK * rough:  # else it is chance either way
        bend = best_drift(places.astype(float), found, edge)
        if worse * bend.per_place > 0 and bend.error < _DRIFT_BETTER * float(np.abs(rest).sum()):
            at, drifts, before = bend.at, True, bend.before
            rest = found - before - bend.per_place * np.maximum(places - bend.at, 0)
            after = before + bend.per_place * float(places[-1] - bend.at)
    sigma = max(noise, float(spread(rest))) * math.sqrt(_carried(rest))
    chance = min(1.0, 2 * len(left) * normal_tail(float(scaled.max()) / sigma))
    return Change(at, before, after, sigma, chance, drifts)


def may_change(values: np.ndarray, noise: float, worse: int, edge: int = 3) -> np.ndarray:
    """By row of many series whether `biggest_change` could be other than chance: a quick look at all of them."""
    known = ~np.isnan(values)
    count, n = np.cumsum(known, axis=1), known.sum(axis=1)[:, None]
    steps = np.abs(np.diff(values, axis=1))
    none = np.isnan(steps).all(axis=1)
    steps[none] = 0.0
    rough = np.maximum(noise, MAD_TO_SIGMA * np.nanmedian(steps, axis=1) / math.sqrt(2))[:, None]
    sums = np.cumsum(np.where(known, values, 0.0), axis=1)
    left, right = np.maximum(count, 1), np.maximum(n - count, 1)
    gap = (sums[:, -1:] - sums) / right - sums / left
    scaled = np.where((count >= edge) & (n - count >= edge), worse * gap / np.sqrt(1 / left + 1 / right), 0.0)
    return np.asarray(none | (scaled.max(axis=1) > _WORTH * rough[:, 0]))


def _carried(rest: np.ndarray) -> float:
    """How much less a mean is certain because neighbors are alike: (1 + r) / (1 - r), r their correlation.

    What a fit leaves over is less alike than what it was fitted to, by about (1 + 3 r) / n (Kendall).
    """
    held = np.clip(rest, *np.quantile(rest, [0.02, 0.98]))
    power = float((held * held).sum())
    if not power:
        return 1.0
    r = float((held[1:] * held[:-1]).sum()) / power
    r = min(max(r + (1 + 3 * r) / len(rest), 0.0), _MOST_CARRIED)
    return (1 + r) / (1 - r)


@dataclass(frozen=True)
class Drift:
    """A series that is level up to a place and then moves on steadily; `error`: what it leaves over, summed."""

    at: int
    before: float
    per_place: float
    error: float


def best_drift(at: np.ndarray, values: np.ndarray, edge: int = 3) -> Drift:
    """The level and the slope from a bend on that leave the least over, of every place to bend at."""
    bends = np.arange(max(1, len(values) - edge))
    ramp = np.maximum(at[None, :] - at[bends][:, None], 0.0)
    aside = ramp - ramp.mean(axis=1, keepdims=True)
    slope = (aside @ values) / np.maximum((aside * aside).sum(axis=1), 1e-12)
    level = values.mean() - slope * ramp.mean(axis=1)
    error = np.abs(values[None, :] - level[:, None] - slope[:, None] * ramp).sum(axis=1)
    best = int(np.argmin(error))
    return Drift(int(at[best]), float(level[best]), float(slope[best]), float(error[best]))


def start_of_rise(counts: np.ndarray, hours: np.ndarray, per_h: float) -> int:
    """Where a run of counts begins to exceed its rate the most, up to the end (largest likelihood ratio)."""
    events, time = np.cumsum(counts[::-1])[::-1], np.cumsum(hours[::-1])[::-1]
    expected = np.maximum(time * per_h, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(events > expected, events * np.log(events / expected) - (events - expected), 0.0)
    return int(np.argmax(gain))
