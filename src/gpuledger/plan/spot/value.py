"""What does it cost to finish the job from here, if every choice from now on is the best one?

The market is reduced to two states: some pool has capacity, or none has. While the job runs on spot, it is reclaimed
at a rate; then another pool has capacity with a probability, or all are out for a while. Time runs backwards from the
deadline tick by tick; for each amount of work left and each place the job can be in, the cheapest of waiting, spot and
on-demand is kept. Spot and waiting are only allowed where on-demand could still meet the deadline afterwards, so the
deadline does not depend on the rates being right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuledger.plan.spot.replay import Terms

Floats = NDArray[np.float64]
IDLE_OUT, IDLE_UP, SPOT, DEMAND_OUT, DEMAND_UP = range(5)
CELLS = 160
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


@lru_cache(maxsize=128)
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
    for left in range(1, ticks + 1):
        usd[left] = step.back(usd[left - 1], left * step_h)
    return Value(step_h, cell, usd)


class _Step:
    """One tick backwards."""

    def __init__(self, market: Market, terms: Terms, step_h: float, work: Floats) -> None:
        self.m, self.t, self.h, self.work = market, terms, step_h, work
        self.lost = -math.expm1(-market.reclaims_per_h * step_h)
        self.back_up = -math.expm1(-market.back_per_h * step_h)
        self.goes = self.lost * (1 - market.other_up)
        self.least = least_interval_h(terms)

    def _run(self, after: Floats, price: float, startup: float, rate: Floats | float = 1.0) -> Floats:
        """Dollars of a tick on an instance, and of all after it."""
        left = self.work - rate * (self.h - startup)
        used = np.minimum(self.h, startup + self.work / rate)
        then: Floats = price * used + np.interp(np.maximum(left, 0.0), self.work, after)
        return then

    def back(self, after: Floats, time_h: float) -> Floats:
        """The values one tick earlier."""
        t, m = self.t, self.m
        out = np.empty_like(after)
        idle_out = (1 - self.back_up) * after[IDLE_OUT] + self.back_up * after[IDLE_UP]
        idle_up = self.goes * after[IDLE_OUT] + (1 - self.goes) * after[IDLE_UP]
        demand_out = (1 - self.back_up) * after[DEMAND_OUT] + self.back_up * after[DEMAND_UP]
        demand_up = self.goes * after[DEMAND_OUT] + (1 - self.goes) * after[DEMAND_UP]
        reclaimed = (1 - m.other_up) * after[IDLE_OUT] + m.other_up * after[IDLE_UP]
        # Time that can still be lost; the interval is shorter where there is little of it.
        slack = time_h - self.h - self.work - t.restart_h
        can_wait, can_spot = slack >= 0, slack >= t.save_h + self.least
        every = np.clip(SLACK_SHARE * (slack - t.save_h), self.least, max(m.interval_h, self.least))
        rate = every / (every + t.save_h)
        # A reclaim costs half an interval of work on average.
        reclaimed = np.interp(self.work + every / 2, self.work, reclaimed)
        spot = (1 - self.lost) * after[SPOT] + self.lost * reclaimed
        on_spot = np.where(can_spot, self._run(spot, m.spot_usd_h, 0.0, rate), np.inf)
        to_spot = np.where(can_spot, self._run(spot, m.spot_usd_h, t.restart_h, rate), np.inf)
        move = t.restart_h + t.save_h
        demand_to_spot = np.where(can_spot, self._run(spot, m.spot_usd_h, move, rate), np.inf)
        for place, then in ((IDLE_OUT, demand_out), (IDLE_UP, demand_up)):
            start = self._run(then, m.on_demand_usd_h, t.restart_h)
            wait = np.where(can_wait, idle_out if place == IDLE_OUT else idle_up, np.inf)
            out[place] = np.minimum(start, wait)
        out[IDLE_UP] = np.minimum(out[IDLE_UP], to_spot)
        out[SPOT] = np.minimum(on_spot, self._run(demand_up, m.on_demand_usd_h, move))
        out[DEMAND_OUT] = self._run(demand_out, m.on_demand_usd_h, 0.0)
        out[DEMAND_UP] = np.minimum(self._run(demand_up, m.on_demand_usd_h, 0.0), demand_to_spot)
        out[:, 0] = 0.0
        return out
