"""Which worlds could the job meet? Prices as they moved before, and capacity that comes and goes at a pool's rate.

Prices: a stretch of the past is drawn, and each pool's price of today moves as its price moved then; the same stretch
for all pools, so that they rise and fall together as they did. A pool without a price in that stretch keeps its own.
Capacity: a pool loses it at its rate and is out for a while. Half of that happens to all zones of a region at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuledger.catalog.prices.history import S_PER_H, Pool, PriceHistory
from gpuledger.catalog.prices.reclaim import facts
from gpuledger.plan.spot.pools import Candidate, Choice, rate_ends
from gpuledger.plan.spot.replay import Floats, Terms, World

SHORTEST_STEP_H = 1 / 6
MOST_TICKS = 500
LEAST_PAST_DAYS = 14
USEFUL_SLACK, USEFUL_H = 5.0, 24.0


def within(terms: Terms) -> Terms:
    """The job with no more time than it can use: five times its work and a day, so that ticks stay short.

    Prices are taken to stay where they are, so a later end than this would not make it cheaper.
    """
    useful = USEFUL_SLACK * (terms.work_h + terms.restart_h) + USEFUL_H
    return replace(terms, deadline_h=min(terms.deadline_h, useful))


def step_of(deadline_h: float) -> float:
    """Ticks of ten minutes, or longer ones where that would be too many."""
    return max(SHORTEST_STEP_H, deadline_h / MOST_TICKS)


def ticks_of(deadline_h: float, step_h: float) -> int:
    """A world goes on after the deadline, so that late jobs can be seen to finish."""
    return math.ceil((1.5 * deadline_h + 24) / step_h)


def instants(at_s: int, ticks: int, step_h: float) -> NDArray[np.int64]:
    """The start of each tick."""
    return at_s + np.floor(np.arange(ticks) * step_h * S_PER_H).astype(np.int64)


def past_prices(history: PriceHistory, choice: Choice, at_s: int, ticks: int, step_h: float) -> tuple[Floats, Floats]:
    """Spot by tick and pool, and the cheapest on-demand, as they were from an instant on; NaN without an offer."""
    at = instants(at_s, ticks, step_h)
    spot = np.column_stack([history.prices(c.pool, at)[0] * c.instances for c in choice.candidates])
    on_demand = history.prices(choice.on_demand_at, at)[1] * choice.on_demand_instances
    return spot, np.where(np.isnan(on_demand), choice.on_demand_usd_h, on_demand)


def drawn_rates(candidates: Sequence[Candidate], random: np.random.Generator) -> list[float]:
    """A reclaim rate for each pool from its range: half of the draws below the expected one, evenly on a log scale."""
    out = []
    for c in candidates:
        low, middle, high = rate_ends(c.reclaims_per_h)
        ends = (low, middle) if random.random() < 0.5 else (middle, high)
        out.append(float(ends[0] * (ends[1] / ends[0]) ** random.random()) if ends[0] > 0 else 0.0)
    return out


def capacity(
    regions: Sequence[str], rates: Sequence[float], ticks: int, step_h: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Whether each pool has capacity in each tick."""
    up = np.ones((ticks, len(rates)), dtype=bool)
    shared, outage = facts().correlation.same_region, facts().outage_hours.middle
    hours = ticks * step_h
    for region in sorted(set(regions)):
        mine = [i for i, r in enumerate(regions) if r == region]
        most = max(rates[i] for i in mine)
        for start, end in _outages(shared * most if len(mine) > 1 else 0.0, outage, hours, random):
            for i in mine:
                if random.random() < rates[i] / most:
                    _out(up, i, start, end, step_h)
        alone = 1 - shared if len(mine) > 1 else 1.0
        for i in mine:
            for start, end in _outages(alone * rates[i], outage, hours, random):
                _out(up, i, start, end, step_h)
    return up


def _outages(per_h: float, outage_h: float, hours: float, random: np.random.Generator) -> list[tuple[float, float]]:
    """Spans without capacity, from a start in the middle of things."""
    if per_h <= 0:
        return []
    out: list[tuple[float, float]] = []
    at = 0.0
    if random.random() < per_h * outage_h / (1 + per_h * outage_h):
        at = float(random.exponential(outage_h))
        out.append((0.0, at))
    while True:
        at += float(random.exponential(1 / per_h))
        if at >= hours:
            return out
        end = at + float(random.exponential(outage_h))
        out.append((at, end))
        at = end


def _out(up: NDArray[np.bool_], pool: int, start: float, end: float, step_h: float) -> None:
    up[int(start / step_h) : max(math.ceil(end / step_h), int(start / step_h) + 1), pool] = False


class DrawnWorlds:
    """Worlds for a plan: only what is known on its day is used."""

    def __init__(self, history: PriceHistory, choice: Choice, at_s: int, deadline_h: float) -> None:
        self.history, self.choice, self.at_s = history, choice, at_s
        self.step_h = step_of(deadline_h)
        self.ticks = ticks_of(deadline_h, self.step_h)
        first = max(history.first_s, min((_first(history, c.pool) for c in choice.candidates), default=at_s))
        self._from, self._to = first, at_s - int(self.ticks * self.step_h * S_PER_H)
        self.moves = self._to - self._from >= LEAST_PAST_DAYS * 24 * S_PER_H

    def draw(self, random: np.random.Generator) -> World:
        """One world."""
        found = self.choice.candidates
        now = np.array([c.spot_usd_h for c in found])
        ratio = self._ratios(random) if self.moves else np.ones((self.ticks, len(found)))
        rates = drawn_rates(found, random)
        up = capacity([c.pool.region for c in found], rates, self.ticks, self.step_h, random)
        spot = now * np.nan_to_num(ratio, nan=np.inf)
        up &= spot < self.choice.on_demand_usd_h
        return World(self.step_h, spot, up, np.full(self.ticks, self.choice.on_demand_usd_h))

    def _ratios(self, random: np.random.Generator) -> Floats:
        """How prices moved in a stretch of the past, against its start."""
        start = int(random.integers(self._from, self._to))
        at = instants(start, self.ticks, self.step_h)
        seen = self.history.observed(at)
        out = np.ones((self.ticks, len(self.choice.candidates)))
        for i, c in enumerate(self.choice.candidates):
            spot, _ = self.history.prices(c.pool, at)
            if not math.isnan(spot[0]):
                # What was not observed did not move; what was seen to be gone is gone.
                out[:, i] = np.where(seen, spot / spot[0], 1.0)
        return out


def _first(history: PriceHistory, pool: Pool) -> int:
    return int(history.changes(pool).at_s[0])
