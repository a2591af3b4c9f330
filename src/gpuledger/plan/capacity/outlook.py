"""What demand is expected ahead, and in which range?

The level may lie off by what the back-test saw; further ahead than it looked, that range grows with the square root of
time. Single hours scatter around the level as they did.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuledger.plan.capacity.backtest import Backtest, Spread, backtest
from gpuledger.plan.capacity.methods import forecasts
from gpuledger.plan.capacity.series import Series, filled, season_of

MONTH_H = 720
# The scatter as this many equally likely values.
GRID = 201
# Hours this far above or below count as nothing.
TINY = 1e-9


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
    """A series, what is expected of it hour by hour, and how far it may be off."""

    series: Series
    path: np.ndarray
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

    def hour(self, hour: int, share: float) -> Covered:
        """What one hour ahead may be, with the range that holds this share of the outcomes."""
        wider = Spread(self.spread.level * self.growth(hour + 1), self.spread.scatter)
        low, high = wider.ends(share)
        middle = float(self.path[hour])
        return Covered(max(0.0, middle + low), middle, max(0.0, middle + high))

    def covered(self, first: int, last: int, share: float) -> Covered:
        """The demand that is enough for this share of the hours from `first` up to `last`."""
        mixed = np.maximum(0.0, self.path[first:last, None] + self._grid[None, :])
        middle, off = float(np.quantile(mixed, share)), self.spread.level * self.growth(last)
        return Covered(max(0.0, middle - off), middle, middle + off)


def look_ahead(series: Series, hours: int, growth_ratio: float | None = None) -> Outlook:
    """The forecast of a series that is long enough (`series.usable`).

    `growth_ratio`: growth per month of 30 days in place of the trend of the history.
    """
    tested = backtest(series.values)
    history = filled(series.values)
    made = forecasts(history, hours)
    path = np.sum([weight * made[name] for name, weight in tested.weights().items()], axis=0)
    if growth_ratio is not None:
        season = season_of(len(history))
        path = np.resize(path[:season], hours) * (1 + growth_ratio) ** (np.arange(1, hours + 1) / MONTH_H)
    path[path < TINY] = 0.0
    return Outlook(series, path, tested.spread(), tested)
