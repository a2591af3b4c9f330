"""Can the jobs of one window be placed better while all others stay where they are?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpuledger.plan.batching.choices import Choice, some_choices, too_late
from gpuledger.plan.batching.grid import Grid, Task
from gpuledger.plan.batching.policies import cheapest_start, earliest_start
from gpuledger.plan.batching.schedule import Schedule, score_of
from gpuledger.plan.batching.solver import solve

# Jobs of a window, choices of each on a lane, choices after its deadline, steps held by all choices together.
WINDOW_JOBS, WINDOW_CHOICES, LATE_CHOICES, MOST_STEPS = 40, 24, 12, 600_000
WINDOW_LIMIT_S = 0.6
# What a window costs apart from the solver's own work, in its units: about seconds.
WINDOW_COST_S, PER_STEP_S = 0.04, 3e-6


def solve_window(best: Schedule, window: Sequence[int]) -> float:
    """Let the jobs of a window choose again; keeps what is better. Returns the work it took."""
    grid = best.grid
    before = {i: best.take(i) for i in window}
    late = any(c.late_ms for c in before.values())
    choices: dict[int, list[Choice]] = {}
    for i in window:
        found = list(dict.fromkeys(some_choices(grid, grid.tasks[i], best.free, WINDOW_CHOICES)))
        if late:
            found += late_choices(grid, grid.tasks[i], best.free)
        choices[i] = found if before[i] in found else [*found, before[i]]
    if not late:
        choices = _worth_it(choices, before)
    size = sum(b - a for options in choices.values() for c in options for a, b in c.segments)
    work = WINDOW_COST_S + PER_STEP_S * size
    after = before
    if any(len(options) > 1 for options in choices.values()):
        solved = solve(grid, best.free, choices, before, WINDOW_LIMIT_S) if size <= MOST_STEPS else None
        work += solved.work_s if solved else 0.0
        after = dict(solved.chosen) if solved else before
    for i, choice in after.items():
        best.put(i, choice)
    now = best.score(window)
    was = score_of(grid, before)
    if was.better(now):
        for i, choice in before.items():
            best.take(i)
            best.put(i, choice)
    return work


def _worth_it(choices: Mapping[int, list[Choice]], before: Mapping[int, Choice]) -> dict[int, list[Choice]]:
    """Without choices so expensive that no better schedule has them: all others at their cheapest would not make up."""
    least = {i: min(c.usd for c in options) for i, options in choices.items()}
    room = sum(before[i].usd - least[i] for i in choices)
    return {
        i: [c for c in options if c.usd - least[i] <= room + 1e-9 or c == before[i]] for i, options in choices.items()
    }


def late_choices(grid: Grid, task: Task, free: np.ndarray) -> list[Choice]:
    """The first choices after the deadline on each lane, and some further on."""
    return [c for fit in task.fits for c in too_late(grid, task, fit, free, LATE_CHOICES)]


def late_jobs(best: Schedule) -> list[int]:
    """Jobs that miss their deadline, the least late first."""
    return sorted((i for i, c in best.chosen.items() if c.late_ms), key=lambda i: (best.chosen[i].late_ms, i))


def around(best: Schedule, i: int) -> list[int]:
    """A job with those that hold GPUs where it would be cheapest, most GPU-steps in its way first."""
    grid, task = best.grid, best.grid.tasks[i]
    wish = cheapest_start(grid, task, Schedule(grid).free) or earliest_start(grid, task, Schedule(grid).free)
    in_way = []
    for j, choice in best.chosen.items():
        if j != i and choice.lane == wish.lane:
            shared = sum(max(0, min(b, wish.end) - max(a, wish.start)) for a, b in choice.segments)
            if shared:
                in_way.append((-shared * grid.tasks[j].job.gpus, j))
    return [i, *(j for _, j in sorted(in_way)[: WINDOW_JOBS - 1])]
