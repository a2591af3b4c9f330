"""What can no schedule that meets all deadlines cost less than?

Each GPU-step of each lane gets a toll. With tolls instead of limits every job takes its cheapest choice by itself; what
all of them pay, less the tolls of all GPUs there are, is below the cost of every schedule (Lagrange). Tolls start from
what room is worth to streams of work (`fluid`), rise where jobs want more GPUs than there are, and fall elsewhere. For
jobs that may pause the bound lets them run in their cheapest steps without restarts, which is below what they cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpuledger.plan.batching.choices import can_pause, costs
from gpuledger.plan.batching.fluid import scarcity
from gpuledger.plan.batching.grid import Fit, Grid, Task

PATIENCE = 4


@dataclass(frozen=True)
class Bound:
    """Marginal dollars, and the tolls per GPU and step of each lane they were found with."""

    usd: float
    toll: np.ndarray


def lower_bound(grid: Grid, target_usd: float, rounds: int, tick: Callable[[int], None] = lambda _done: None) -> Bound:
    """The highest bound found; `target_usd`: the cost of a schedule, which no bound can exceed."""
    toll = scarcity(grid)
    room = np.array([lane.gpus for lane in grid.lanes], dtype=float)[:, None]
    best = Bound(-np.inf, toll.copy())
    stride, since = 0.1, 0
    for _ in range(rounds):
        usd, demand = _relaxed(grid, toll)
        usd -= float((toll * room).sum())
        tick(1)
        if usd > best.usd:
            best, since = Bound(usd, toll.copy()), 0
        else:
            since += 1
            if since % PATIENCE == 0:
                stride /= 2
                toll = best.toll.copy()
        slope = demand - room
        slope[(toll <= 0) & (slope < 0)] = 0.0
        norm = float((slope * slope).sum())
        gap = target_usd - usd
        if norm == 0.0 or gap <= 1e-9 * max(1.0, abs(target_usd)) or stride < 0.001:
            break
        toll = np.maximum(0.0, toll + stride * gap / norm * slope)
    return Bound(max(0.0, best.usd), best.toll)


def _relaxed(grid: Grid, toll: np.ndarray) -> tuple[float, np.ndarray]:
    """What all jobs pay at these tolls, each by itself, and the GPUs they want in each step."""
    demand = np.zeros_like(toll)
    added = np.concatenate([np.zeros((len(toll), 1)), np.cumsum(toll, axis=1)], axis=1)
    total = 0.0
    for task in grid.tasks:
        found = [_cheapest(grid, task, fit, toll, added) for fit in task.on_time]
        if not found:
            continue  # it is late on every lane: it adds nothing to a bound for schedules that are not
        usd, lane, steps = min(found, key=lambda f: (f[0], f[1]))
        total += usd
        demand[lane, steps] += task.job.gpus
    return total, demand


def _cheapest(
    grid: Grid, task: Task, fit: Fit, toll: np.ndarray, added: np.ndarray
) -> tuple[float, int, slice | np.ndarray]:
    gpus = task.job.gpus
    if can_pause(task, fit):
        end = min(-(-(task.job.deadline_ms - grid.start_ms) // grid.step_ms), grid.reach)
        price = grid.lanes[fit.lane].usd[task.first : end] + toll[fit.lane, task.first : end]
        order = np.argsort(price, kind="stable")[: fit.steps]
        paid = price[order]
        usd = gpus * float(paid[:-1].sum() + fit.last * paid[-1])
        return usd, fit.lane, task.first + order
    usd_by_start = costs(grid, task, fit, task.first, fit.latest)
    row = added[fit.lane]
    usd_by_start = usd_by_start + gpus * (
        row[task.first + fit.steps : fit.latest + fit.steps + 1] - row[task.first : fit.latest + 1]
    )
    at = int(np.argmin(usd_by_start))
    return float(usd_by_start[at]), fit.lane, slice(task.first + at, task.first + at + fit.steps)
