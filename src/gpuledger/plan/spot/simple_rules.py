"""Which simple rules is the planned one compared with?

on-demand       never spot
cheapest now    the cheapest spot pool of the moment, moving whenever another is cheaper; on-demand where none has any
patient         the same, waiting where no pool has capacity; never on-demand
single zone     the pool that is cheapest at the start, waiting there; never on-demand
zone, fallback  the same, on-demand from the last moment on at which it still meets the deadline
any, fallback   the cheapest spot pool of the moment, waiting, on-demand from the last moment on
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.plan.spot.replay import ON_DEMAND, WAIT, Terms, World


@dataclass(frozen=True)
class OnDemand:
    """Never spot."""

    def interval_h(self, _pool: int) -> float:
        """No checkpoints are needed."""
        return math.inf

    def choose(self, _tick: int, _saved_h: float, _unsaved_h: float, _mode: int) -> int:
        """Always the same."""
        return ON_DEMAND


@dataclass(frozen=True)
class CheapestNow:
    """The cheapest pool of the moment; below on-demand, and on-demand (or nothing, if patient) where there is none."""

    world: World
    intervals_h: Sequence[float]
    patient: bool

    def interval_h(self, pool: int) -> float:
        """As planned for the pool."""
        return self.intervals_h[pool]

    def choose(self, tick: int, _saved_h: float, _unsaved_h: float, mode: int) -> int:
        """The lowest price; the present pool among equals."""
        up, prices = self.world.up_rows[tick], self.world.spot_rows[tick]
        best, lowest = (WAIT, math.inf) if self.patient else (ON_DEMAND, self.world.on_demand_row[tick])
        for pool, price in enumerate(prices):
            if up[pool] and (price < lowest or (price == lowest and pool == mode)):
                best, lowest = pool, price
        return best


@dataclass(frozen=True)
class WithFallback:
    """A patient rule that goes on-demand at the last moment, and stays there."""

    rule: CheapestNow
    terms: Terms

    def interval_h(self, pool: int) -> float:
        """As planned for the pool."""
        return self.rule.interval_h(pool)

    def choose(self, tick: int, saved_h: float, unsaved_h: float, mode: int) -> int:
        """As the rule, while time can be lost."""
        if mode == ON_DEMAND or last_moment(self.terms, self.rule.world.step_h, tick, saved_h):
            return ON_DEMAND
        return self.rule.choose(tick, saved_h, unsaved_h, mode)


def last_moment(terms: Terms, step_h: float, tick: int, saved_h: float) -> bool:
    """Whether a reclaim in the next tick would be one too many."""
    return terms.deadline_h - (tick + 1) * step_h < terms.work_h - saved_h + terms.restart_h + terms.save_h


@dataclass(frozen=True)
class SingleZone:
    """One pool for all of the job, with or without on-demand at the last moment."""

    world: World
    terms: Terms
    pool: int
    every_h: float
    fallback: bool

    def interval_h(self, _pool: int) -> float:
        """As planned for the pool."""
        return self.every_h

    def choose(self, tick: int, saved_h: float, _unsaved_h: float, mode: int) -> int:
        """Stay, wait, or leave when no more time can be lost."""
        if mode == ON_DEMAND:
            return ON_DEMAND
        if self.fallback and last_moment(self.terms, self.world.step_h, tick, saved_h):
            return ON_DEMAND
        return self.pool if self.world.up_rows[tick][self.pool] else WAIT


def simple_rules(
    world: World, terms: Terms, intervals_h: Sequence[float]
) -> dict[str, Callable[[], OnDemand | CheapestNow | SingleZone | WithFallback]]:
    """All simple rules by name, for a world and a job."""
    first = np.where(world.up[0], world.spot[0], np.inf)
    pool = int(np.argmin(first if np.isfinite(first).any() else world.spot[0]))
    every = intervals_h[pool]
    return {
        "on-demand": OnDemand,
        "cheapest now": lambda: CheapestNow(world, intervals_h, patient=False),
        "patient": lambda: CheapestNow(world, intervals_h, patient=True),
        "single zone": lambda: SingleZone(world, terms, pool, every, fallback=False),
        "zone, fallback": lambda: SingleZone(world, terms, pool, every, fallback=True),
        "any, fallback": lambda: WithFallback(CheapestNow(world, intervals_h, patient=True), terms),
    }
