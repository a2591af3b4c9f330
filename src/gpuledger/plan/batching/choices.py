"""Where and when may a job run, and what does each of these choices cost?

A choice is a lane and the steps held on it. A job that can be interrupted may pause: each time it starts again costs
the restart time, and it stays on its lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from gpuledger.plan.batching.grid import Fit, Grid, Task

Segments = tuple[tuple[int, int], ...]
MOST_PIECES = 4
# The largest search for the cheapest steps of a job that may pause, and the most of its patterns to list one by one.
MOST_CELLS = 600_000
MOST_PATTERNS = 400
# Starts that are looked at before those further on.
NEARBY = 64


class Choice(NamedTuple):
    """Steps [start, end) on a lane, marginal dollars, and how long after the deadline the job ends."""

    lane: int
    segments: Segments
    usd: float
    late_ms: int = 0

    @property
    def start(self) -> int:
        """Its first step."""
        return self.segments[0][0]

    @property
    def end(self) -> int:
        """The step after its last."""
        return self.segments[-1][1]


def steps_for(grid: Grid, fit: Fit, pieces: int) -> tuple[int, float]:
    """The steps a job holds in this number of pieces, and the used part of the last one."""
    work = fit.work_ms + (pieces - 1) * grid.restart_ms
    steps = -(-work // grid.step_ms)
    return steps, (work - (steps - 1) * grid.step_ms) / grid.step_ms


def end_ms(grid: Grid, fit: Fit, segments: Segments) -> int:
    """When a job really ends."""
    _, last = steps_for(grid, fit, len(segments))
    return grid.at_ms(segments[-1][1] - 1 + last)


def made(grid: Grid, task: Task, fit: Fit, segments: Segments) -> Choice:
    """A choice with its dollars."""
    lane = grid.lanes[fit.lane]
    _, last = steps_for(grid, fit, len(segments))
    whole = sum(lane.paid[b] - lane.paid[a] for a, b in segments)
    usd = task.job.gpus * float(whole - (1 - last) * lane.usd[segments[-1][1] - 1])
    late = max(0, end_ms(grid, fit, segments) - task.job.deadline_ms)
    return Choice(fit.lane, segments, usd, late)


def costs(grid: Grid, task: Task, fit: Fit, first: int, latest: int) -> np.ndarray:
    """Dollars of running without a break, by start from first to latest."""
    lane = grid.lanes[fit.lane]
    ends = slice(first + fit.steps - 1, latest + fit.steps)
    whole = lane.paid[ends] - lane.paid[first : latest + 1]
    return task.job.gpus * (whole + fit.last * lane.usd[ends])


def free_starts(free: np.ndarray, gpus: int, steps: int, first: int, latest: int) -> np.ndarray:
    """Which starts from first to latest find this number of GPUs free for this number of steps; `free`: of a lane."""
    room = np.concatenate([[0], np.cumsum(free[first : latest + steps] >= gpus)])
    return (room[steps:] - room[: latest - first + 1]) == steps


def first_free(free: np.ndarray, gpus: int, steps: int, first: int, latest: int) -> int | None:
    """The first of these starts, None where there is none; it looks nearby first, as `free` may be months long."""
    span = max(steps, NEARBY)
    while first <= latest:
        until = min(latest, first + span)
        ok = free_starts(free, gpus, steps, first, until)
        at = int(np.argmax(ok))
        if ok[at]:
            return first + at
        first, span = until + 1, 2 * span
    return None


def unbroken(grid: Grid, task: Task, fit: Fit, free: np.ndarray) -> list[Choice]:
    """All choices on a lane without a break that meet the deadline and that the free GPUs allow."""
    latest = min(fit.latest, grid.reach - fit.steps)
    if latest < task.first:
        return []
    ok = free_starts(free[fit.lane], task.job.gpus, fit.steps, task.first, latest)
    usd = costs(grid, task, fit, task.first, latest)
    starts = np.flatnonzero(ok)
    return [
        Choice(fit.lane, ((task.first + at, task.first + at + fit.steps),), value)
        for at, value in zip(starts.tolist(), usd[starts].tolist(), strict=True)
    ]


def too_late(grid: Grid, task: Task, fit: Fit, free: np.ndarray, most: int) -> list[Choice]:
    """The first choices on a lane after the deadline, and some further on."""
    first, latest = max(task.first, fit.latest + 1), grid.reach - fit.steps
    starts = first + np.flatnonzero(free_starts(free[fit.lane], task.job.gpus, fit.steps, first, latest))
    near, rest = starts[:most], starts[most : most * most]
    picked = (*near.tolist(), *rest[:: max(1, len(rest) // most)].tolist())
    return [made(grid, task, fit, ((at, at + fit.steps),)) for at in picked]


def can_pause(task: Task, fit: Fit) -> bool:
    """Whether pausing may pay: it can be interrupted, and there is room between its hours and its deadline."""
    return task.job.preemptible and fit.steps > 1 and fit.latest > task.first


def every_pattern(grid: Grid, task: Task, fit: Fit, free: np.ndarray) -> list[Choice] | None:
    """All choices with pauses, or None where they are too many to list."""
    last_end = -(-(task.job.deadline_ms - grid.start_ms) // grid.step_ms)
    steps = list(range(task.first, min(last_end, grid.reach)))
    most = steps_for(grid, fit, len(steps))[0]
    if sum(comb(len(steps), n) for n in range(fit.steps, min(most, len(steps)) + 1)) > MOST_PATTERNS:
        return None
    open_steps = [t for t in steps if free[fit.lane][t] >= task.job.gpus]
    out = []
    for n in range(fit.steps, min(most, len(open_steps)) + 1):
        for chosen in combinations(open_steps, n):
            segments = _segments(chosen)
            if len(segments) > 1 and steps_for(grid, fit, len(segments))[0] == n:
                choice = made(grid, task, fit, segments)
                if not choice.late_ms:
                    out.append(choice)
    return out


def _segments(steps: Sequence[int]) -> Segments:
    cuts = [i + 1 for i, (a, b) in enumerate(pairwise(steps)) if b != a + 1]
    parts = [steps[a:b] for a, b in pairwise([0, *cuts, len(steps)])]
    return tuple((part[0], part[-1] + 1) for part in parts)


def cheapest_pauses(grid: Grid, task: Task, fit: Fit, free: np.ndarray, toll: np.ndarray | None = None) -> list[Choice]:
    """The cheapest choice for each number of pieces from two on; `toll`: more per GPU and step on this lane."""
    last_end = min((task.job.deadline_ms - grid.start_ms) // grid.step_ms + 1, grid.reach)
    most, _ = steps_for(grid, fit, MOST_PIECES)
    width = last_end - task.first
    if width < most or width * most * MOST_PIECES > MOST_CELLS:
        return []
    price = grid.lanes[fit.lane].usd[task.first : last_end].copy()
    extra = np.zeros(width) if toll is None else toll[task.first : last_end]
    price = np.where(free[fit.lane][task.first : last_end] >= task.job.gpus, price, np.inf)
    found = _best(price + extra, most, width)
    out = []
    for pieces in range(2, MOST_PIECES + 1):
        steps, last = steps_for(grid, fit, pieces)
        # The last step is paid for as far as it is used, and must end by the deadline.
        total = found[steps][pieces] - (1 - last) * np.where(np.isinf(price), 0.0, price)
        ends = grid.start_ms + (task.first + np.arange(width) + last) * grid.step_ms
        total = np.where(ends <= task.job.deadline_ms, total, np.inf)
        at = int(np.argmin(total))
        if np.isfinite(total[at]):
            held = _walk(found, steps, pieces, at)
            segments = _segments([task.first + t for t in held])
            if len(segments) == pieces:
                out.append(made(grid, task, fit, segments))
    return out


def _best(price: np.ndarray, most: int, width: int) -> list[list[np.ndarray]]:
    """By steps held and pieces, by last step held: the least that costs."""
    none = np.full(width, np.inf)
    table = [[none] * (MOST_PIECES + 1)]
    table.append([none, price, *[none] * (MOST_PIECES - 1)])
    for _ in range(2, most + 1):
        before = table[-1]
        row = [none]
        for pieces in range(1, MOST_PIECES + 1):
            went_on = _shifted(before[pieces], 1)
            resumed = _shifted(np.minimum.accumulate(before[pieces - 1]), 2) if pieces > 1 else none
            row.append(price + np.minimum(went_on, resumed))
        table.append(row)
    return table


def _shifted(values: np.ndarray, by: int) -> np.ndarray:
    out = np.full(len(values), np.inf)
    out[by:] = values[:-by]
    return out


def _walk(table: list[list[np.ndarray]], steps: int, pieces: int, at: int) -> list[int]:
    """The steps held, from the last one back."""
    held = [at]
    while steps > 1:
        before = table[steps - 1]
        went_on = before[pieces][at - 1] if at >= 1 else np.inf
        paused = before[pieces - 1][: at - 1] if pieces > 1 and at >= 2 else np.empty(0)
        if len(paused) and paused.min() < went_on:
            at, pieces = int(np.argmin(paused)), pieces - 1
        else:
            at -= 1
        held.append(at)
        steps -= 1
    return held[::-1]


def all_choices(grid: Grid, task: Task, free: np.ndarray) -> tuple[list[Choice], bool]:
    """Every choice that meets the deadline, and whether these are really all."""
    out, complete = [], True
    for fit in task.on_time:
        out += unbroken(grid, task, fit, free)
        if can_pause(task, fit):
            patterns = every_pattern(grid, task, fit, free)
            complete &= patterns is not None
            out += cheapest_pauses(grid, task, fit, free) if patterns is None else patterns
    return out, complete


def some_choices(grid: Grid, task: Task, free: np.ndarray, most: int) -> Iterator[Choice]:
    """Choices worth trying: on each lane the cheapest starts and some spread over the rest, and the best pauses."""
    for fit in task.on_time:
        found = sorted(unbroken(grid, task, fit, free), key=lambda c: (c.usd, c.start))
        if len(found) > most:
            rest = found[most // 2 :]
            stride = -(-len(rest) // (most - most // 2))
            found = found[: most // 2] + rest[::stride]
        yield from found
        if can_pause(task, fit):
            patterns = every_pattern(grid, task, fit, free)
            yield from cheapest_pauses(grid, task, fit, free) if patterns is None else patterns
