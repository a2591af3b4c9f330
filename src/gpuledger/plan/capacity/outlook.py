"""What demand is expected ahead, and in which range?

The level may lie off by what the back-test saw; further ahead than it looked, that range grows with the square root of
time. Where methods that did equally well part further ahead (one carries a trend, another lets it fade), the range
holds both. Single hours scatter around the level as they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuledger.plan.capacity.backtest import Backtest, Spread, backtest
from gpuledger.plan.capacity.methods import forecasts
from gpuledger.plan.capacity.series import DAY, Series, filled, season_of

MONTH_H = 720
# The scatter as this many equally likely values.
GRID = 201
# Hours this far above or below count as nothing.
TINY = 1e-9
Z90 = 1.282


@dataclass(frozen=True)
class Covered:
    """The demand that is enough for a share of the hours of a stretch, with its range."""

    low: float
    middle: float
    high: float

    def over(self, ratio: float) -> Covered:
        """As GPUs of which this share can be used."""
        return Covered(self.low / ratio, self.middle / ratio, self.high / ratio)


@dataclass(frozen=True, eq=False)
class Outlook:
    """A series, what is expected of it hour by hour, and how far it may be off.

    `apart`: how far the methods lie apart, by their weights, at most up to each hour.
    """

    series: Series
    path: np.ndarray
    apart: np.ndarray
    spread: Spread
    tested: Backtest

    @cached_property
    def _grid(self) -> np.ndarray:
        if not len(self.spread.scatter):
            return np.zeros(1)
        return np.quantile(self.spread.scatter, (np.arange(GRID) + 0.5) / GRID)

    def growth(self, hour: int) -> float:
        """How much wider the range of the level is this many hours ahead than where it was checked."""
        return float(np.sqrt(max(1.0, hour / self.tested.ahead_h)))

    def level(self, hours: int) -> float:
        """How far the level may lie off this many hours ahead, to either side."""
        return float(np.hypot(self.spread.level * self.growth(hours), Z90 * self.apart[hours - 1]))

    def hour(self, hour: int, share: float) -> Covered:
        """What one hour ahead may be, with the range that holds this share of the outcomes."""
        wider = Spread(self.level(hour + 1), self.spread.scatter)
        low, high = wider.ends(share)
        middle = float(self.path[hour])
        return Covered(max(0.0, middle + low), middle, max(0.0, middle + high))

    def covered(self, first: int, last: int, share: float) -> Covered:
        """The demand that is enough for this share of the hours from `first` up to `last`."""
        mixed = np.maximum(0.0, self.path[first:last, None] + self._grid[None, :])
        middle, off = float(np.quantile(mixed, share)), self.level(last)
        return Covered(max(0.0, middle - off), middle, middle + off)


def look_ahead(series: Series, hours: int, growth_ratio: float | None = None) -> Outlook:
    """The forecast of a series that is long enough (`series.usable`).

    `growth_ratio`: growth per month of 30 days in place of the trend of the history.
    """
    tested = backtest(series.values)
    history = filled(series.values)
    made = forecasts(history, hours)
    weights = tested.weights()
    path = np.sum([weight * made[name] for name, weight in weights.items()], axis=0)
    apart = _apart(made, weights, path)
    if growth_ratio is not None:
        season = season_of(len(history))
        path = np.resize(path[:season], hours) * (1 + growth_ratio) ** (np.arange(1, hours + 1) / MONTH_H)
        apart = np.zeros(hours)
    path[path < TINY] = 0.0
    return Outlook(series, path, apart, tested.spread(), tested)


def _apart(made: Mapping[str, np.ndarray], weights: Mapping[str, float], path: np.ndarray) -> np.ndarray:
    """The weighted standard deviation of the methods' levels, a day at a time, never falling."""
    days = np.arange(len(path)) // DAY
    held = np.bincount(days)
    off = [w * (np.bincount(days, made[name] - path) / held) ** 2 for name, w in weights.items()]
    return np.maximum.accumulate(np.sqrt(np.sum(off, axis=0)))[days]
