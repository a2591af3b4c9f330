"""What would planning do if each job were known only when it arrives, as a queue knows it?

With every arrival the new jobs take their cheapest places among those planned so far. Where one of them would be late,
jobs that have not started choose again one after the other, the first deadline first, whatever work is left. Once an
hour they also choose again together. What has started stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuledger.plan.batching.grid import Grid
from gpuledger.plan.batching.policies import cheapest_start, earliest_start
from gpuledger.plan.batching.schedule import Schedule, score_of
from gpuledger.plan.batching.window import WINDOW_JOBS, around, solve_window

WINDOWS_PER_HOUR = 3
# Jobs that choose again by deadline at most, the work that goes into that in all, and that of a job: about seconds.
MOST_AGAIN, REPAIR_S, PER_JOB_S = 400, 30.0, 1.5e-4


def on_arrival(grid: Grid, limit_s: float, tick: Callable[[int], None]) -> tuple[Schedule, float]:
    """The schedule of jobs that become known one after the other, and the work it took.

    Of `limit_s`, as much work as the share of jobs that have arrived goes into choosing again together.
    """
    line, tasks = _Line(grid), grid.tasks
    arriving: dict[int, list[int]] = {}
    for i, task in enumerate(tasks):
        arriving.setdefault(task.first, []).append(i)
    every, solved, work_s, arrived = max(1, round(1 / grid.step_h)), -1, 0.0, 0
    for at, new in sorted(arriving.items()):
        late = line.add(new)
        arrived += len(new)
        allowed_s = limit_s * arrived / len(tasks)
        hourly = at // every > solved
        if hourly or (late and (work_s < allowed_s or line.repair_s < REPAIR_S)):
            line.move_on(at)
        for i in late:
            if line.out.chosen[i].late_ms and work_s < allowed_s:
                movable = set(line.waiting)
                work_s += solve_window(line.out, [j for j in around(line.out, i) if j in movable])
        if hourly:
            solved = at // every
            if work_s < allowed_s:
                work_s += _again(line.out, line.waiting)
        if hourly or line.repair_s < REPAIR_S:
            line.repair(line.waiting if hourly else new)
        tick(len(new))
    line.out.grid = grid
    return line.out, work_s


class _Line:
    """Jobs that have arrived: their places so far, and those that have not started."""

    def __init__(self, grid: Grid) -> None:
        self.out, self.waiting, self.repair_s = Schedule(grid), list[int](), 0.0
        self._tasks = list(grid.tasks)

    def add(self, new: Sequence[int]) -> list[int]:
        """Give new jobs their cheapest places, the first deadline first; returns those that are late there."""
        grid, out = self.out.grid, self.out
        for i in sorted(new, key=lambda i: (self._tasks[i].job.deadline_ms, i)):
            found = cheapest_start(grid, self._tasks[i], out.free)
            out.put(i, found or earliest_start(grid, self._tasks[i], out.free))
        self.waiting += new
        return [i for i in new if out.chosen[i].late_ms]

    def move_on(self, at: int) -> None:
        """Forget jobs that have started; all others can start now at the earliest."""
        self.waiting = [i for i in self.waiting if self.out.chosen[i].start >= at]
        for i in self.waiting:
            self._tasks[i] = replace(self._tasks[i], first=at)
        self.out.grid = replace(self.out.grid, tasks=tuple(self._tasks))

    def repair(self, of: Sequence[int]) -> None:
        """Where one of these jobs is late, let jobs that wait choose again, the first deadlines first."""
        late = [i for i in of if self.out.chosen[i].late_ms]
        if late:
            first = heapq.nsmallest(MOST_AGAIN, self.waiting, key=lambda i: (self._tasks[i].job.deadline_ms, i))
            again = sorted({*first, *late[:MOST_AGAIN]})
            _by_deadline(self.out, again)
            self.repair_s += PER_JOB_S * len(again)


def _again(out: Schedule, waiting: Sequence[int]) -> float:
    """Let jobs that wait choose again together, the most expensive first where there are too many."""
    order = sorted(waiting, key=lambda i: (-out.chosen[i].usd, i))[: WINDOWS_PER_HOUR * WINDOW_JOBS]
    return sum(solve_window(out, order[at : at + WINDOW_JOBS]) for at in range(0, len(order), WINDOW_JOBS))


def _by_deadline(out: Schedule, waiting: Sequence[int]) -> None:
    """Let jobs that wait choose again one after the other, the cheapest place or the first; keeps what is better."""
    grid = out.grid
    order = sorted(waiting, key=lambda i: (grid.tasks[i].job.deadline_ms, i))
    best = {i: out.take(i) for i in order}
    for cheap in (True, False):
        made = {}
        for i in order:
            found = cheapest_start(grid, grid.tasks[i], out.free) if cheap else None
            made[i] = found or earliest_start(grid, grid.tasks[i], out.free)
            out.put(i, made[i])
        for i in order:
            out.take(i)
        if score_of(grid, made).better(score_of(grid, best)):
            best = made
    for i, choice in best.items():
        out.put(i, choice)
