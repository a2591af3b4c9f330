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
Bools = NDArray[np.bool_]
Singles = NDArray[np.float32]
IDLE_OUT, IDLE_UP, SPOT, DEMAND_OUT, DEMAND_UP = range(5)
CELLS = 160
KEPT = 128  # values in memory: 1.7 MB each at most
INTERVALS = 8  # candidates between the shortest interval and the one that would be best without a deadline
LATE = 10.0  # an hour too late costs this many hours of on-demand: never worth it
LEAST_CHECKPOINTS = 4.0  # an interval is at least this many times as long as its checkpoint
SLACK_SHARE = 0.95  # and puts at most this share of the time that can still be lost at risk


def least_interval_h(terms: Terms) -> float:
    """The shortest interval that is worth running at."""
    return max(LEAST_CHECKPOINTS * terms.save_h, 1 / 60)


def longest_interval_h(slack_h: float, terms: Terms) -> float:
    """The longest interval that can be lost, where this much time can: its checkpoint takes some, leaving too."""
    return SLACK_SHARE * (slack_h - 2 * terms.save_h)


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
    usd: Singles  # ticks left x place x work
    market: Market
    every_h: Singles  # ticks left x work

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


@lru_cache(maxsize=KEPT)
def value_of(market: Market, terms: Terms, step_h: float) -> Value:
    """The value of every state, from the deadline backwards."""
    ticks = max(math.ceil(terms.deadline_h / step_h), 1)
    most = terms.work_h + terms.restart_h + step_h
    # A tick is a whole number of cells, so that a tick of work leads from cell to cell.
    cell = step_h / math.ceil(CELLS * step_h / most)
    work = np.arange(math.ceil(most / cell) + 1, dtype=np.float64) * np.float64(cell)
    step = _Step(market, terms, step_h, work)
    usd = np.zeros((ticks + 1, 5, len(work)), dtype=np.float32)
    every = np.full((ticks + 1, len(work)), step.intervals[-1], dtype=np.float32)
    late = market.on_demand_usd_h * (work + terms.restart_h + LATE * work)
    late[0] = 0.0
    after = np.tile(late, (5, 1))
    usd[0] = after
    # Time that can still be lost, by ticks left; a job that starts has lost some already.
    slack = step_h * np.arange(ticks + 1)[:, None] - work - terms.restart_h
    needed = 2 * terms.save_h + step.least
    longest = np.maximum(SLACK_SHARE * (slack - 2 * terms.save_h), step.least)
    for left in range(1, ticks + 1):
        can = slack[left] - step.startups >= needed
        after, every[left] = step.back(after, slack[left] >= step_h, can, longest[left])
        usd[left] = after
    return Value(step_h, cell, usd, market, every)


class _Between:
    """Values between the cells of a grid, at rows of points that are known beforehand; the ends outside of it.

    `rows`: which row of values each row of points reads; its own unless given.
    """

    def __init__(self, at: Floats, cell_h: float, rows: Indices | None = None) -> None:
        cells = at.shape[1]
        where = np.clip(at / cell_h, 0.0, cells - 1.0)
        low = np.minimum(where.astype(np.intp), cells - 2)
        self.part = where - low
        self.low = low + cells * (np.arange(len(at)) if rows is None else rows)[:, None]

    def of(self, values: Floats) -> Floats:
        """The values at all points."""
        return _read(values, self.low, self.part)


def _read(values: Floats, low: Indices, part: Floats) -> Floats:
    found = values.take(low)
    above = values.take(low + 1)
    above -= found
    above *= part
    above += found
    return above


def _run_usd(work: Floats, step_h: float, startup_h: float, price: float, rates: Floats) -> Floats:
    """Dollars of a tick on an instance, at each of several rates of work."""
    return price * np.minimum(step_h, startup_h + work / rates[:, None])


class _Step:
    """One tick backwards."""

    def __init__(self, market: Market, terms: Terms, step_h: float, work: Floats) -> None:
        cell = float(work[1])
        self.lost = -math.expm1(-market.reclaims_per_h * step_h)
        back_up = -math.expm1(-market.back_per_h * step_h)
        goes = self.lost * (1 - market.other_up)
        # What may have become of the market after a tick: idle and on demand, each out or up; and after a reclaim.
        self._mix = np.zeros((5, 5))
        for row, (out, up), down in zip(
            range(4), ((IDLE_OUT, IDLE_UP), (IDLE_OUT, IDLE_UP), (DEMAND_OUT, DEMAND_UP), (DEMAND_OUT, DEMAND_UP)),
            (1 - back_up, goes, 1 - back_up, goes), strict=True,
        ):  # fmt: skip
            self._mix[row, out], self._mix[row, up] = down, 1 - down
        self._mix[4, IDLE_OUT], self._mix[4, IDLE_UP] = 1 - market.other_up, market.other_up
        self.least = least_interval_h(terms)
        self.intervals = np.geomspace(self.least, max(market.interval_h, self.least), INTERVALS)
        rates = self.intervals / (self.intervals + terms.save_h)
        starts, moved = terms.restart_h, terms.restart_h + terms.save_h
        self.startups = np.array([[0.0], [starts], [moved]])  # before spot does work: running, from nothing, on demand
        # On demand from each place, in their order: the startup, and whether spot is up then.
        demand = [(starts, 0), (starts, 1), (moved, 1), (0.0, 0), (0.0, 1)]
        one = np.ones(1)
        self._demand_usd = np.concatenate([_run_usd(work, step_h, s, market.on_demand_usd_h, one) for s, _ in demand])
        self._demand = _Between(
            np.stack([work - (step_h - s) for s, _ in demand]), cell, np.array([up for _, up in demand])
        )
        # Spot, by interval: running already, then started from nothing and from on demand.
        spent = [step_h - s for s in (0.0, starts, moved)]
        usd = [_run_usd(work, step_h, step_h - s, market.spot_usd_h, rates) for s in spent]
        then = [_Between(work - rates[:, None] * s, cell) for s in spent]
        self._usd, self._then = usd[0], then[0]
        self._start_usd = np.stack(usd[1:])
        self._start_low, self._start_part = (np.stack([getattr(t, n) for t in then[1:]]) for n in ("low", "part"))
        # A reclaim costs half an interval of work on average.
        same = np.zeros(INTERVALS, dtype=np.intp)
        self._redo = _Between(work + self.intervals[:, None] / 2, cell, same)
        self._each = np.arange(len(work))
        self._starts = np.arange(2)[:, None] * (INTERVALS * len(work)) + self._each

    def back(self, after: Floats, wait: Bools, can: Bools, longest: Floats) -> tuple[Floats, Floats]:
        """The values one tick earlier, and the best interval on spot, unless the slack asks for a shorter one.

        `wait`, `can`: the work left with which waiting and spot (running, started from nothing, from on demand) are
        safe; `longest`: the longest interval then.
        """
        mixed = self._mix @ after
        out = self._demand.of(mixed[2:4])
        out += self._demand_usd
        np.minimum(out[: IDLE_UP + 1], mixed[:2], out=out[: IDLE_UP + 1], where=wait)
        then = self._redo.of(mixed[4])
        then *= self.lost
        then += (1 - self.lost) * after[SPOT]
        usd = self._then.of(then)
        usd += self._usd
        usd[self.intervals[:, None] > longest] = np.inf
        best = usd.argmin(axis=0)
        at = best * len(self._each)
        np.minimum(out[SPOT], usd.take(at + self._each), out=out[SPOT], where=can[0])
        at = self._starts + at
        started = _read(then, self._start_low.take(at), self._start_part.take(at))
        started += self._start_usd.take(at)
        np.minimum(out[IDLE_UP], started[0], out=out[IDLE_UP], where=can[1])
        np.minimum(out[DEMAND_UP], started[1], out=out[DEMAND_UP], where=can[2])
        out[:, 0] = 0.0
        # Where the deadline keeps the interval short: as long as the slack allows, up to the next candidate.
        above = self.intervals.take(np.minimum(best + 1, INTERVALS - 1))
        return out, np.where(above > longest, above, self.intervals.take(best))
