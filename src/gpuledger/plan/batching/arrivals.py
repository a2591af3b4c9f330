"""What would planning do if each job were known only when it arrives, as a queue knows it?

With every arrival the new jobs take their cheapest places among those planned so far. Where one of them would be late,
all jobs that have not started choose again one after the other, the first deadline first, whatever work is left. Once
an hour they also choose again together. What has started stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuledger.plan.batching.grid import Grid
from gpuledger.plan.batching.policies import cheapest_start, earliest_start
from gpuledger.plan.batching.schedule import Schedule, score_of
from gpuledger.plan.batching.window import WINDOW_JOBS, around, solve_window

WINDOWS_PER_HOUR = 3


def on_arrival(grid: Grid, limit_s: float, tick: Callable[[int], None]) -> tuple[Schedule, float]:
    """The schedule of jobs that become known one after the other, and the work it took.

    Of `limit_s`, as much work as the share of jobs that have arrived goes into choosing again together.
    """
    out, tasks = Schedule(grid), list(grid.tasks)
    arriving: dict[int, list[int]] = {}
    for i, task in enumerate(tasks):
        arriving.setdefault(task.first, []).append(i)
    waiting: list[int] = []
    every, solved, work_s, arrived = max(1, round(1 / grid.step_h)), -1, 0.0, 0
    for at, new in sorted(arriving.items()):
        waiting = [i for i in waiting if out.chosen[i].start >= at]
        for i in waiting:
            tasks[i] = replace(tasks[i], first=at)
        out.grid = replace(grid, tasks=tuple(tasks))
        for i in sorted(new, key=lambda i: (tasks[i].job.deadline_ms, i)):
            found = cheapest_start(grid, tasks[i], out.free)
            out.put(i, found or earliest_start(grid, tasks[i], out.free))
        waiting += new
        movable = set(waiting)
        arrived += len(new)
        allowed_s = limit_s * arrived / len(tasks)
        for i in new:
            if out.chosen[i].late_ms and work_s < allowed_s:
                work_s += solve_window(out, [j for j in around(out, i) if j in movable])
        if at // every > solved:
            solved = at // every
            if work_s < allowed_s:
                work_s += _again(out, waiting)
            late = {i for i in waiting if out.chosen[i].late_ms}
        else:
            late = {i for i in new if out.chosen[i].late_ms}
        if late:
            _by_deadline(out, waiting)
        tick(len(new))
    out.grid = grid
    return out, work_s


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
