"""What does a rule of choosing pools cost, and when is the job done, in a world whose prices and capacity are given?

A world has ticks of equal length. In each tick a pool has a price and either has capacity or not; a pool that loses its
capacity reclaims the job that runs in it, and work since its last checkpoint is lost. On-demand never loses capacity.
Starting anywhere takes the restart time, which is paid; moving away on purpose saves the state first. The same replay
rates a plan (worlds drawn from what is known), tests it on the past, and compares it with simple rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

WAIT, ON_DEMAND = -1, -2
SMALL = 1e-9
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Terms:
    """The job: hours of work, how long a checkpoint and a restart take, hours until it must be done.

    `checkpoint_h` is None where it cannot save its state.
    """

    work_h: float
    checkpoint_h: float | None
    restart_h: float
    deadline_h: float

    @property
    def save_h(self) -> float:
        """How long saving takes before the job moves."""
        return self.checkpoint_h or 0.0


@dataclass(frozen=True)
class World:
    """Prices in dollars per hour for the whole job, and capacity, by tick and pool."""

    step_h: float
    spot: Floats
    up: NDArray[np.bool_]
    on_demand: Floats
    spot_rows: Sequence[Sequence[float]] = field(init=False, repr=False)
    up_rows: Sequence[Sequence[bool]] = field(init=False, repr=False)
    on_demand_row: Sequence[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Plain lists: the replay reads one number at a time.
        object.__setattr__(self, "spot_rows", self.spot.tolist())
        object.__setattr__(self, "up_rows", self.up.tolist())
        object.__setattr__(self, "on_demand_row", self.on_demand.tolist())

    @property
    def ticks(self) -> int:
        """How many ticks it has."""
        return len(self.on_demand_row)

    def only(self, pools: Sequence[int]) -> World:
        """The same world with some of its pools."""
        at = list(pools)
        return World(self.step_h, self.spot[:, at], self.up[:, at], self.on_demand)


class Rule(Protocol):
    """Where to run in the next tick, from what is known at its start."""

    def interval_h(self, pool: int) -> float:
        """Hours of work between checkpoints in a pool."""

    def choose(self, tick: int, saved_h: float, unsaved_h: float, mode: int) -> int:
        """A pool that has capacity, ON_DEMAND or WAIT."""


@dataclass(frozen=True)
class Outcome:
    """What a replay cost, when the job was done, and how it got there."""

    usd: float
    finish_h: float
    met: bool
    reclaims: int
    moves: int
    spot_h: float
    on_demand_h: float


@dataclass
class _Run:
    """A job on its way."""

    terms: Terms
    saved: float = 0.0
    unsaved: float = 0.0
    mode: int = WAIT
    startup: float = 0.0
    saving: float = 0.0
    usd: float = 0.0
    reclaims: int = 0
    moves: int = 0
    spot_h: float = 0.0
    on_demand_h: float = 0.0

    @property
    def left(self) -> float:
        return self.terms.work_h - self.saved - self.unsaved

    def reclaimed(self) -> None:
        self.unsaved, self.saving, self.mode = 0.0, 0.0, WAIT
        self.reclaims += 1

    def move(self, to: int, price_before: float) -> None:
        """Save, then start elsewhere; a job that cannot save starts over."""
        extra = 0.0
        if self.mode != WAIT:
            if self.terms.checkpoint_h is None:
                self.saved = self.unsaved = 0.0
            elif self.unsaved > 0 or self.mode == ON_DEMAND:
                self.saved, extra = self.saved + self.unsaved, self.terms.checkpoint_h
            self.unsaved = self.saving = 0.0
        if to == WAIT:
            self.usd += extra * price_before
        else:
            self.startup, self.moves = self.terms.restart_h + extra, self.moves + 1
        self.mode = to

    def advance(self, step: float, interval: float) -> float:
        """Run for a tick; hours really used, which are fewer where the job gets done."""
        time = step - min(self.startup, step)
        self.startup -= step - time
        while time > SMALL:
            if self.mode == ON_DEMAND or self.unsaved < interval - SMALL:
                room = math.inf if self.mode == ON_DEMAND else interval - self.unsaved
                done = min(time, room, self.left)
                if self.mode == ON_DEMAND and self.terms.checkpoint_h is not None:
                    self.saved += done
                else:
                    self.unsaved += done
                time -= done
                if self.left <= SMALL:
                    return step - time
            else:
                done = min(time, self.terms.save_h - self.saving)
                self.saving, time = self.saving + done, time - done
                if self.saving >= self.terms.save_h - SMALL:
                    self.saved, self.unsaved, self.saving = self.saved + self.unsaved, 0.0, 0.0
        return step


def replay(world: World, terms: Terms, rule: Rule) -> Outcome:
    """Run the job to its end; what is left when the world ends is bought on demand."""
    run, step = _Run(terms), world.step_h
    price = 0.0
    for tick in range(world.ticks):
        if run.mode >= 0 and not world.up_rows[tick][run.mode]:
            run.reclaimed()
        choice = rule.choose(tick, run.saved, run.unsaved, run.mode)
        if choice != run.mode:
            run.move(choice, price)
        if choice == WAIT:
            continue
        on_demand = choice == ON_DEMAND
        price = world.on_demand_row[tick] if on_demand else world.spot_rows[tick][choice]
        used = run.advance(step, math.inf if on_demand else rule.interval_h(choice))
        run.usd += price * used
        if on_demand:
            run.on_demand_h += used
        else:
            run.spot_h += used
        if run.left <= SMALL:
            return _outcome(run, tick * step + used)
    if run.mode != ON_DEMAND:
        run.move(ON_DEMAND, price)
    rest = run.startup + run.left
    run.usd, run.on_demand_h = run.usd + rest * world.on_demand_row[-1], run.on_demand_h + rest
    return _outcome(run, world.ticks * step + rest)


def _outcome(run: _Run, finish_h: float) -> Outcome:
    met = finish_h <= run.terms.deadline_h + 1e-6
    return Outcome(run.usd, finish_h, met, run.reclaims, run.moves, run.spot_h, run.on_demand_h)
