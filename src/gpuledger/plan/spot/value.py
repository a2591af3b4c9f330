"""What does it cost to finish the job from here, if every choice from now on is the best one?

The market is reduced to two states: some pool has capacity, or none has. While the job runs on spot, it is reclaimed
at a rate; then another pool has capacity with a probability, or all are out for a while. Time runs backwards from the
deadline tick by tick; for each amount of work left and each place the job can be in, the cheapest of waiting, spot and
on-demand is kept, and on spot the best interval between checkpoints: lost work costs time, and time that is left may
save hours of on-demand. Spot and waiting are only allowed where on-demand could still meet the deadline afterwards, so
the deadline does not depend on the rates being right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuledger.plan.spot.replay import Terms

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
IDLE_OUT, IDLE_UP, SPOT, DEMAND_OUT, DEMAND_UP = range(5)
PLACES = ((IDLE_OUT, IDLE_UP), (DEMAND_OUT, DEMAND_UP))
CELLS = 160
INTERVALS = 8  # candidates between the shortest interval and the one that would be best without a deadline
LATE = 10.0  # an hour too late costs this many hours of on-demand: never worth it
LEAST_CHECKPOINTS = 4.0  # an interval is at least this many times as long as its checkpoint
SLACK_SHARE = 0.75  # and puts at most this share of the time that can still be lost at risk


def least_interval_h(terms: Terms) -> float:
    """The shortest interval that is worth running at."""
    return max(LEAST_CHECKPOINTS * terms.save_h, 1 / 60)


@dataclass(frozen=True)
class Market:
    """The market in two states; dollars per hour for the whole job."""

    spot_usd_h: float
    on_demand_usd_h: float
    reclaims_per_h: float
    other_up: float
    back_per_h: float
    interval_h: float


@dataclass(frozen=True)
class Value:
    """Expected dollars to the end by ticks left, place and work left."""

    step_h: float
    cell_h: float
    usd: Floats  # ticks left x place x work
    market: Market
    every_h: Floats  # ticks left x work

    def at(self, ticks_left: int, place: int, work_h: float) -> float:
        """Expected dollars, between two amounts of work in proportion."""
        if work_h <= 0:
            return 0.0
        row = self.usd[max(0, min(ticks_left, len(self.usd) - 1)), place]
        where = work_h / self.cell_h
        low = int(where)
        if low >= len(row) - 1:
            return float(row[-1] + (where - len(row) + 1) * (row[-1] - row[-2]))
        return float(row[low] + (where - low) * (row[low + 1] - row[low]))

    def interval_h(self, ticks_left: int, work_h: float, reclaims_per_h: float) -> float:
        """Hours of work between checkpoints on spot, for a pool with this reclaim rate (Young: as 1 / sqrt(rate))."""
        row = self.every_h[max(0, min(ticks_left, len(self.every_h) - 1))]
        found = float(row[max(0, min(round(work_h / self.cell_h), len(row) - 1))])
        return found * math.sqrt(self.market.reclaims_per_h / reclaims_per_h)


@lru_cache(maxsize=64)
def value_of(market: Market, terms: Terms, step_h: float) -> Value:
    """The value of every state, from the deadline backwards."""
    ticks = max(math.ceil(terms.deadline_h / step_h), 1)
    most = terms.work_h + terms.restart_h + step_h
    # A tick is a whole number of cells, so that a tick of work leads from cell to cell.
    cell = step_h / math.ceil(CELLS * step_h / most)
    work = np.arange(math.ceil(most / cell) + 1, dtype=np.float64) * np.float64(cell)
    usd = np.zeros((ticks + 1, 5, len(work)))
    late = market.on_demand_usd_h * (work + terms.restart_h + LATE * work)
    late[0] = 0.0
    usd[0] = late
    step = _Step(market, terms, step_h, work)
    every = np.full((ticks + 1, len(work)), step.intervals[-1])
    for left in range(1, ticks + 1):
        usd[left], every[left] = step.back(usd[left - 1], left * step_h)
    return Value(step_h, cell, usd, market, every)


class _Between:
    """Values between the cells of a grid, at rows of points that are known beforehand; the ends outside of it."""

    def __init__(self, at: Floats, cell_h: float) -> None:
        rows, cells = at.shape
        where = np.clip(at / cell_h, 0.0, cells - 1.0)
        low = np.minimum(where.astype(np.intp), cells - 2)
        self._part = where - low
        self._low = low
        self._flat = low + cells * np.arange(rows)[:, None]

    def of(self, values: Floats) -> Floats:
        """One row of values at every row of points."""
        found = values[self._low]
        return found + self._part * (values[self._low + 1] - found)

    def each(self, rows: Floats) -> Floats:
        """Each row of values at its own row of points."""
        flat = rows.ravel()
        found = flat[self._flat]
        return found + self._part * (flat[self._flat + 1] - found)

    def best(self, rows: Floats, row: Indices, column: Indices) -> Floats:
        """As each, of one row for every column."""
        flat, at = rows.ravel(), self._flat[row, column]
        found = flat[at]
        return found + self._part[row, column] * (flat[at + 1] - found)


class _Run:
    """A tick on an instance, at each of several rates of work: what it costs, and what is left then."""

    def __init__(self, work: Floats, step_h: float, startup_h: float, price: float, rates: Floats) -> None:
        rate = rates[:, None]
        self.usd = price * np.minimum(step_h, startup_h + work / rate)
        self.then = _Between(work - rate * (step_h - startup_h), float(work[1]))


class _Step:
    """One tick backwards."""

    def __init__(self, market: Market, terms: Terms, step_h: float, work: Floats) -> None:
        self.m, self.t, self.h, self.work = market, terms, step_h, work
        self.lost = -math.expm1(-market.reclaims_per_h * step_h)
        self.back_up = -math.expm1(-market.back_per_h * step_h)
        self.goes = self.lost * (1 - market.other_up)
        self.least = least_interval_h(terms)
        self.intervals = np.geomspace(self.least, max(market.interval_h, self.least), INTERVALS)
        rates = self.intervals / (self.intervals + terms.save_h)
        startups = (0.0, terms.restart_h, terms.restart_h + terms.save_h)
        self._spot = [_Run(work, step_h, s, market.spot_usd_h, rates) for s in startups]
        self._demand = [_Run(work, step_h, s, market.on_demand_usd_h, np.ones(1)) for s in startups]
        # A reclaim costs half an interval of work on average.
        self._redo = _Between(work + self.intervals[:, None] / 2, float(work[1]))
        self._each = np.arange(len(work))

    def back(self, after: Floats, time_h: float) -> tuple[Floats, Floats]:
        """The values one tick earlier, and the best interval on spot."""
        out = np.empty_like(after)
        idle_out, demand_out = ((1 - self.back_up) * after[o] + self.back_up * after[u] for o, u in PLACES)
        idle_up, demand_up = (self.goes * after[o] + (1 - self.goes) * after[u] for o, u in PLACES)
        # Time that can still be lost.
        slack = time_h - self.h - self.work - self.t.restart_h
        (on_spot, to_spot, demand_to_spot), every = self._on_spot(after, slack)
        on_demand, to_demand, moved = range(3)
        for place, then, wait in ((IDLE_OUT, demand_out, idle_out), (IDLE_UP, demand_up, idle_up)):
            start = self._on_demand(to_demand, then)
            out[place] = np.minimum(start, np.where(slack >= 0, wait, np.inf))
        out[IDLE_UP] = np.minimum(out[IDLE_UP], to_spot)
        out[SPOT] = np.minimum(on_spot, self._on_demand(moved, demand_up))
        out[DEMAND_OUT] = self._on_demand(on_demand, demand_out)
        out[DEMAND_UP] = np.minimum(self._on_demand(on_demand, demand_up), demand_to_spot)
        out[:, 0] = 0.0
        return out, every

    def _on_demand(self, startup: int, then: Floats) -> Floats:
        """Dollars of a tick on demand and of all after it."""
        run = self._demand[startup]
        return (run.usd + run.then.of(then))[0]

    def _on_spot(self, after: Floats, slack: Floats) -> tuple[list[Floats], Floats]:
        """Dollars from here on at the best interval (running already, started, moved there), and that interval."""
        up = self.m.other_up
        reclaimed = (1 - up) * after[IDLE_OUT] + up * after[IDLE_UP]
        then = (1 - self.lost) * after[SPOT] + self.lost * self._redo.of(reclaimed)
        can = slack >= self.t.save_h + self.least
        most = np.maximum(SLACK_SHARE * (slack - self.t.save_h), self.least)
        running = self._spot[0]
        usd = np.where(self.intervals[:, None] <= most, running.usd + running.then.each(then), np.inf)
        best = usd.argmin(axis=0)
        ways = [usd[best, self._each]]
        ways += [run.usd[best, self._each] + run.then.best(then, best, self._each) for run in self._spot[1:]]
        return [np.where(can, way, np.inf) for way in ways], self.intervals[best]
