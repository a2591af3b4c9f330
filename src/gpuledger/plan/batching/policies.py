"""What would a queue do with the same jobs: first come first served, best fit, earliest deadline, cheapest window?

The first three know a job when it arrives and start it as soon as they can, on the cheapest pool that is free then
(best fit: on the pool that keeps the fewest GPUs free). They never pause a job. `cheapest` knows all jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import numpy as np

from gpuledger.errors import InputError
from gpuledger.plan.batching.choices import Choice, costs, first_free, free_starts, made
from gpuledger.plan.batching.grid import Fit, Grid, Task
from gpuledger.plan.batching.schedule import Schedule

Order = Callable[[Task], tuple[float, ...]]


class Policy(StrEnum):
    """The queues a plan is compared with."""

    FIFO = "FIFO"
    BEST_FIT = "best fit"
    EDF = "earliest deadline first"
    CHEAPEST = "cheapest window"


def run_policy(grid: Grid, policy: Policy) -> Schedule:
    """The schedule of a policy."""
    if policy is Policy.CHEAPEST:
        return cheapest(grid, lambda t: (t.job.deadline_ms, t.first))
    if policy is Policy.EDF:
        return _queue(grid, lambda t: (t.job.deadline_ms, t.job.earliest_ms), blocking=False, fitting=False)
    fitting = policy is Policy.BEST_FIT
    return _queue(grid, lambda t: (t.job.earliest_ms,), blocking=not fitting, fitting=fitting)


def _queue(grid: Grid, order: Order, *, blocking: bool, fitting: bool) -> Schedule:
    """Start waiting jobs in order as soon as a lane has room; `blocking`: none overtakes the first that has to wait."""
    out, free = Schedule(grid), [lane.gpus for lane in grid.lanes]
    arrivals = sorted(range(len(grid.tasks)), key=lambda i: (grid.tasks[i].first, i))
    ends: list[tuple[int, int, int]] = []
    waiting = _Waiting(grid, order)
    at = place = 0
    while place < len(arrivals) or waiting:
        nexts = [grid.tasks[arrivals[place]].first] if place < len(arrivals) else []
        at = min([*nexts, *([ends[0][0]] if ends else [])])
        while ends and ends[0][0] <= at:
            _, lane, gpus = heapq.heappop(ends)
            free[lane] += gpus
        while place < len(arrivals) and grid.tasks[arrivals[place]].first <= at:
            waiting.add(arrivals[place])
            place += 1
        for i in waiting.that_fit(free, blocking=blocking):
            task = grid.tasks[i]
            open_fits = [f for f in task.fits if free[f.lane] >= task.job.gpus]
            best = min(open_fits, key=lambda f: _rank(grid, task, f, at, free, fitting))
            if at + best.steps > grid.reach:
                raise InputError(
                    "the jobs need far more GPU-hours than the pools have", hint="add GPUs, or plan fewer jobs"
                )
            out.put(i, made(grid, task, best, ((at, at + best.steps),)))
            free[best.lane] -= task.job.gpus
            heapq.heappush(ends, (at + best.steps, best.lane, task.job.gpus))
    return out


class _Waiting:
    """Jobs that wait, in order. Those that need as many GPUs of the same lanes are alike: where the first of them has
    no room, none has, so a long queue is not gone through at every event."""

    def __init__(self, grid: Grid, order: Order) -> None:
        self._grid, self._order = grid, order
        self._alike: dict[tuple[int, ...], list[tuple[tuple[float, ...], int]]] = {}

    def __bool__(self) -> bool:
        return any(self._alike.values())

    def add(self, i: int) -> None:
        """One more."""
        task = self._grid.tasks[i]
        alike = self._alike.setdefault((task.job.gpus, *(f.lane for f in task.fits)), [])
        heapq.heappush(alike, (self._order(task), i))

    def that_fit(self, free: Sequence[int], *, blocking: bool) -> Iterator[int]:
        """Take out those that have room, in order, while the caller takes GPUs for each."""
        heads = [(queue[0], kind) for kind, queue in self._alike.items() if queue]
        heapq.heapify(heads)
        while heads and any(free):
            (_, i), kind = heapq.heappop(heads)
            gpus, *lanes = kind
            if any(free[lane] >= gpus for lane in lanes):
                heapq.heappop(self._alike[kind])
                if self._alike[kind]:
                    heapq.heappush(heads, (self._alike[kind][0], kind))
                yield i
            elif blocking:
                return


def _rank(grid: Grid, task: Task, fit: Fit, at: int, free: list[int], fitting: bool) -> tuple[float, ...]:
    now = float(grid.lanes[fit.lane].usd[at]) * fit.work_ms
    left = free[fit.lane] - task.job.gpus
    return (left, now, fit.lane) if fitting else (now, left, fit.lane)


def cheapest(grid: Grid, order: Order, toll: np.ndarray | None = None) -> Schedule:
    """Each job in order at its cheapest start that meets the deadline; where none is free, at the earliest one.

    `toll`: more per GPU and step of a lane, so that a job leaves room where others need it more.
    """
    out = Schedule(grid)
    for i in sorted(range(len(grid.tasks)), key=lambda i: (order(grid.tasks[i]), i)):
        task = grid.tasks[i]
        best = cheapest_start(grid, task, out.free, toll)
        out.put(i, best or earliest_start(grid, task, out.free))
    return out


def cheapest_start(grid: Grid, task: Task, free: np.ndarray, toll: np.ndarray | None = None) -> Choice | None:
    """The cheapest start of a job that meets its deadline, the earliest of equal ones; None where none is free."""
    best: tuple[float, int, Fit] | None = None
    for fit in task.on_time:
        latest = min(fit.latest, grid.reach - fit.steps)
        usd = costs(grid, task, fit, task.first, latest)
        if toll is not None:
            added = np.concatenate([[0.0], np.cumsum(toll[fit.lane, task.first : latest + fit.steps])])
            usd = usd + task.job.gpus * (added[fit.steps :] - added[: latest - task.first + 1])
        ok = free_starts(free[fit.lane], task.job.gpus, fit.steps, task.first, latest)
        usd = np.where(ok, usd, np.inf)
        least = float(usd.min())
        at = int(np.argmax(usd <= least + 1e-9 * max(1.0, least)))  # of equal ones, but for rounding, the earliest
        if np.isfinite(usd[at]) and (best is None or (usd[at], at) < (best[0] - 1e-12, best[1])):
            best = float(usd[at]), at, fit
    if best is None:
        return None
    _, at, fit = best
    return made(grid, task, fit, ((task.first + at, task.first + at + fit.steps),))


def earliest_start(grid: Grid, task: Task, free: np.ndarray) -> Choice:
    """The start that ends first, on time or not."""
    found = []
    for fit in task.fits:
        at = first_free(free[fit.lane], task.job.gpus, fit.steps, task.first, grid.reach - fit.steps)
        if at is not None:
            found.append(made(grid, task, fit, ((at, at + fit.steps),)))
    return min(found, key=lambda c: (c.late_ms, c.end, c.usd))
