"""Which methods would have forecast this series best, and how far off would they have been?

Walk forward: from several origins each method sees only what was known then, and its misses are kept. The methods are
combined, each with a weight by how well it did at the origins before, in the last third of the hours ahead (a plan
looks far): a method that misses twice as far counts next to nothing. The skill that is reported is that of the
combination as it would have been made at each origin, so it is not flattered by hindsight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.methods import NAIVE, STEADY, forecasts
from gpuledger.plan.capacity.series import DAY, filled, season_of
from gpuledger.units import Unknown

ONE_ORIGIN = Unknown("the history is too short for a second origin")
NO_MOVEMENT = Unknown("the series does not move")
# A weight falls with this power of a method's miss; before the first origin these misses are assumed.
POWER = 8.0
STEADY_MISS, OTHER_MISS = 1.0, 1.2
FAR_FROM = 2 / 3
# An origin counts half as much as the one this many later.
HALF_LIFE_ORIGINS = 3
# The 90 % quantile of Student's t by degrees of freedom, 1 to 12.
_T90 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356)


@dataclass(frozen=True, eq=False)
class Spread:
    """How far outcomes lie from what was expected.

    `level`: how far a whole stretch may lie off, to either side; `scatter`: single hours around the stretch's level.
    """

    level: float
    scatter: np.ndarray

    def ends(self, share: float) -> tuple[float, float]:
        """Both ends of the range of one hour that holds this share of the outcomes, around what is expected."""
        if not len(self.scatter):
            return -self.level, self.level
        low, high = np.quantile(self.scatter, [(1 - share) / 2, (1 + share) / 2])
        return -float(np.hypot(self.level, min(low, 0.0))), float(np.hypot(self.level, max(high, 0.0)))


@dataclass(frozen=True, eq=False)
class Backtest:
    """Misses (actual less expected) by method: a row per origin, a column per hour ahead; NaN where unobserved.

    `scale`: the mean miss of the seasonal-naive method on the history itself, which MASE divides by. `short`: the
    history is short, so ranges are widened.
    """

    origins: tuple[int, ...]
    misses: Mapping[str, np.ndarray]
    scale: float
    short: bool = False

    @property
    def ahead_h(self) -> int:
        """Hours ahead that were checked."""
        return int(self.misses[NAIVE].shape[1])

    def weights(self, upto: int | None = None) -> dict[str, float]:
        """The weight of each method by its misses at the first origins; at all of them by default."""
        n = len(self.origins) if upto is None else upto
        each = {name: _far(np.abs(found[:n])) for name, found in self.misses.items()}
        recent = 0.5 ** (np.arange(n - 1, -1, -1) / HALF_LIFE_ORIGINS)
        seen = float(recent.sum())
        steady = [float(each[name] @ recent) for name in STEADY if name in each]
        usual = float(np.mean(steady)) / seen if n else 1.0
        if usual <= 0:
            return {name: 1 / len(each) for name in each}
        made = {}
        for name, losses in each.items():
            first = STEADY_MISS if name in STEADY else OTHER_MISS
            made[name] = ((float(losses @ recent) / usual + first) / (seen + 1)) ** -POWER
        total = sum(made.values())
        return {name: weight / total for name, weight in made.items()}

    @cached_property
    def walked(self) -> np.ndarray:
        """The misses of the combination, each origin's made by the origins before it."""
        rows = [
            sum(weight * self.misses[name][i] for name, weight in self.weights(i).items())
            for i in range(len(self.origins))
        ]
        return np.array(rows)

    def mae(self, method: str | None = None) -> float:
        """Mean absolute miss, of the combination by default, over all origins but the first where there are more."""
        found = self.walked if method is None else self.misses[method]
        return float(np.nanmean(np.abs(found[min(1, len(self.origins) - 1) :])))

    def mase(self, method: str | None = None) -> float | Unknown:
        """Mean absolute scaled error: below 1 is better than the seasonal-naive method was on the history."""
        return self.mae(method) / self.scale if self.scale > 0 else NO_MOVEMENT

    @property
    def skill(self) -> float | Unknown:
        """Share of the seasonal-naive method's miss that the combination avoids; below zero it is worse."""
        if len(self.origins) < 2:
            return ONE_ORIGIN
        naive = self.mae(NAIVE)
        return 1 - self.mae() / naive if naive > 0 else NO_MOVEMENT

    def spread(self, upto: int | None = None, method: str | None = None) -> Spread:
        """How far the combination, or a method, was off at the first origins; at all of them by default."""
        found = (self.walked if method is None else self.misses[method])[:upto]
        level = np.nanmean(found, axis=1)
        n = len(level)
        factor = capacity_facts().short_history_factor if self.short else 1.0
        rest = (found - level[:, None]).ravel()
        wide = _T90[min(n, len(_T90)) - 1] * float(np.sqrt(np.nanmean(level**2)))
        return Spread(factor * wide, factor * rest[~np.isnan(rest)])

    def coverage(self, share: float) -> float | Unknown:
        """How often the range by earlier origins held the outcome; `share` is what it promises."""
        hits, seen = 0, 0
        for i in range(1, len(self.origins)):
            low, high = self.spread(i).ends(share)
            known = self.walked[i][~np.isnan(self.walked[i])]
            hits += int(np.sum((known >= low) & (known <= high)))
            seen += len(known)
        return hits / seen if seen else ONE_ORIGIN

    def pinball(self, share: float, method: str | None = None) -> float | Unknown:
        """Mean pinball loss of both ends of the range and its middle, of the combination by default."""
        losses = []
        for i in range(1, len(self.origins)):
            missed = (self.walked if method is None else self.misses[method])[i]
            low, high = self.spread(i, method).ends(share)
            for end, tau in ((low, (1 - share) / 2), (0.0, 0.5), (high, (1 + share) / 2)):
                over = missed - end
                losses.append(np.nanmean(np.maximum(tau * over, (tau - 1) * over)))
        return float(np.mean(losses)) if losses else ONE_ORIGIN


def _far(misses: np.ndarray) -> np.ndarray:
    """The mean miss of each origin in the last third of the hours ahead; in all where none of those was observed."""
    cut = int(FAR_FROM * misses.shape[1])
    rows = [row[cut:] if not np.isnan(row[cut:]).all() else row for row in misses]
    return np.array([np.nanmean(row) for row in rows])


def origins_of(hours: int) -> tuple[tuple[int, ...], int]:
    """From where the back-test looks ahead, and how far: whole days, spread over what the history allows."""
    facts = capacity_facts()
    ahead = DAY * min(max(1, int(facts.ahead_of_history_ratio * hours / DAY)), facts.longest_ahead_days)
    last = hours - ahead
    first = min(max(DAY, hours // 3), last)
    wanted = min(facts.folds, (last - first) // DAY + 1)
    return tuple(sorted({int(o) for o in np.linspace(first, last, wanted).round()})), ahead


def backtest(values: np.ndarray) -> Backtest:
    """The walk forward over a series of two days or more; origins with nothing observed around them are left out."""
    origins, ahead = origins_of(len(values))
    rows: dict[str, list[np.ndarray]] = {}
    used = []
    for origin in origins:
        actual = values[origin : origin + ahead]
        if np.isnan(actual).all() or np.isnan(values[:origin]).all():
            continue
        used.append(origin)
        for name, path in forecasts(filled(values[:origin]), ahead).items():
            rows.setdefault(name, []).append(actual - path)
    season = season_of(len(values))
    steps = np.abs(values[season:] - values[:-season])
    known = steps[~np.isnan(steps)]
    scale = float(known.mean()) if len(known) else 0.0
    short = len(values) <= capacity_facts().short_history_days * DAY
    return Backtest(tuple(used), {name: np.array(found) for name, found in rows.items()}, scale, short)
