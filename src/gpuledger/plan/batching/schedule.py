"""Who holds which GPUs when, and what does a schedule cost and miss?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from gpuledger.plan.batching.choices import Choice
from gpuledger.plan.batching.grid import Grid
from gpuledger.units import MS_PER_HOUR


class Score(NamedTuple):
    """What makes a schedule better than another, in this order: deadlines missed, hours late, dollars.

    Misses and hours are weighted by the weights of the jobs.
    """

    missed: float
    late_h: float
    usd: float

    def better(self, than: Score) -> bool:
        """Whether it is better by more than rounding."""
        for mine, theirs in zip(self, than, strict=True):
            if abs(mine - theirs) > 1e-9 * max(1.0, abs(theirs)):
                return mine < theirs
        return False


class Schedule:
    """A choice for each job, and the GPUs that are free in each step of each lane."""

    def __init__(self, grid: Grid, chosen: Mapping[int, Choice] | None = None) -> None:
        self.grid = grid
        self.free = np.repeat(np.array([[lane.gpus] for lane in grid.lanes]), grid.reach, axis=1)
        self.chosen: dict[int, Choice] = {}
        for task, choice in (chosen or {}).items():
            self.put(task, choice)

    def put(self, task: int, choice: Choice) -> None:
        """Give a job its GPUs."""
        for a, b in choice.segments:
            self.free[choice.lane, a:b] -= self.grid.tasks[task].job.gpus
        self.chosen[task] = choice

    def take(self, task: int) -> Choice:
        """Free the GPUs of a job."""
        choice = self.chosen.pop(task)
        for a, b in choice.segments:
            self.free[choice.lane, a:b] += self.grid.tasks[task].job.gpus
        return choice

    def copy(self) -> Schedule:
        """Another schedule with the same choices."""
        out = Schedule.__new__(Schedule)
        out.grid, out.free, out.chosen = self.grid, self.free.copy(), dict(self.chosen)
        return out

    def score(self, tasks: Iterable[int] | None = None) -> Score:
        """What it costs and misses; of some jobs only where they are named."""
        return score_of(self.grid, {i: self.chosen[i] for i in (sorted(self.chosen) if tasks is None else tasks)})

    def fits(self) -> bool:
        """Whether no lane is ever over its GPUs and every job has its place."""
        return bool((self.free >= 0).all()) and len(self.chosen) == len(self.grid.tasks)


def score_of(grid: Grid, chosen: Mapping[int, Choice]) -> Score:
    """What some choices cost and miss together."""
    missed = late_h = usd = 0.0
    for task, choice in chosen.items():
        usd += choice.usd
        if choice.late_ms:
            weight = grid.tasks[task].job.weight
            missed += weight
            late_h += weight * choice.late_ms / MS_PER_HOUR
    return Score(missed, late_h, usd)
