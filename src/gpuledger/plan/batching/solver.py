"""Which choices of some jobs are best at the same time, while all others stay where they are? CP-SAT decides.

One yes-or-no for each choice, exactly one yes per job, and in each step of each lane no more GPUs than are free. One
thread, a fixed seed and a limit in the solver's own units of work: the answer is the same on every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuledger.errors import MissingExtra
from gpuledger.plan.batching.choices import Choice
from gpuledger.plan.batching.grid import Grid

SEED = 1
# Dollars become whole numbers; all of them together stay below this.
MOST_UNITS = 10**9
MOST_LATE = 10**6


@dataclass(frozen=True)
class Solved:
    """The best choices found, dollars that none can go below, whether they are proven best, and the work spent."""

    chosen: Mapping[int, Choice]
    bound_usd: float
    proven: bool
    work_s: float


def need_solver() -> None:
    """Fail with the next step where the extra `plan` is not installed."""
    try:
        import ortools.sat.python.cp_model  # noqa: F401
    except ImportError as error:
        raise MissingExtra("planning a batch of jobs", "plan") from error


def solve(
    grid: Grid,
    free: np.ndarray,
    choices: Mapping[int, Sequence[Choice]],
    hint: Mapping[int, Choice],
    limit_s: float,
) -> Solved | None:
    """The best choices; `free` leaves these jobs out. None where nothing was found within the limit."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    units = _units(grid, choices)
    literals: dict[int, list[cp_model.IntVar]] = {}
    terms: list[cp_model.IntVar] = []
    weights: list[int] = []
    for task, options in choices.items():
        made = [model.new_bool_var("") for _ in options]
        literals[task] = made
        model.add_exactly_one(made)
        terms += made
        weights += [units.of(task, c) for c in options]
        for literal, choice in zip(made, options, strict=True):
            model.add_hint(literal, choice == hint[task])
    for held, gpus, room in _rows(grid, free, choices, literals):
        model.add(cp_model.LinearExpr.weighted_sum(held, gpus) <= room)
    model.minimize(cp_model.LinearExpr.weighted_sum(terms, weights))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = SEED
    solver.parameters.linearization_level = 2
    solver.parameters.max_deterministic_time = limit_s
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    chosen = {
        task: next(c for c, literal in zip(options, literals[task], strict=True) if solver.boolean_value(literal))
        for task, options in choices.items()
    }
    bound = solver.best_objective_bound / units.per_usd
    return Solved(chosen, bound, status == cp_model.OPTIMAL, solver.deterministic_time)


@dataclass(frozen=True)
class _Units:
    """Dollars, lateness and misses as one whole number: a miss outweighs all lateness, an hour late all dollars."""

    grid: Grid
    per_usd: float
    late: int
    missed: int
    weights: Mapping[int, int]

    def of(self, task: int, choice: Choice) -> int:
        dollars = round(choice.usd * self.per_usd)
        if not choice.late_ms:
            return dollars
        steps = -(-choice.late_ms // self.grid.step_ms)
        return dollars + self.weights[task] * (self.missed + self.late * min(steps, MOST_LATE))


def _units(grid: Grid, choices: Mapping[int, Sequence[Choice]]) -> _Units:
    most = sum(max(c.usd for c in options) for options in choices.values())
    per_usd = MOST_UNITS / most if most > 0 else 1.0
    late = int(most * per_usd) + len(choices) + 1
    worst = sum(max(c.late_ms for c in options) // grid.step_ms + 1 for options in choices.values())
    least = min((grid.tasks[t].job.weight for t in choices), default=1.0)
    weights = {t: max(1, min(1000, round(grid.tasks[t].job.weight / least))) for t in choices}
    heavy = max(weights.values(), default=1)
    return _Units(grid, per_usd, late, late * (worst * heavy + 1), weights)


Held = tuple[list[Any], list[int], dict[int, int]]


def _rows(
    grid: Grid, free: np.ndarray, choices: Mapping[int, Sequence[Choice]], literals: Mapping[int, list[Any]]
) -> list[tuple[list[Any], list[int], int]]:
    """A limit for each step of a lane that these jobs could overfill; equal limits once."""
    held: dict[tuple[int, int], Held] = {}
    for task, options in choices.items():
        gpus = grid.tasks[task].job.gpus
        for choice, literal in zip(options, literals[task], strict=True):
            for a, b in choice.segments:
                for step in range(a, b):
                    at = held.get((choice.lane, step))
                    if at is None:
                        at = held[choice.lane, step] = ([], [], {})
                    at[0].append(literal)
                    at[1].append(gpus)
                    at[2][task] = gpus
    out: list[tuple[list[Any], list[int], int]] = []
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for (lane, step), (row, weights, jobs) in held.items():
        room = int(free[lane, step])
        key = (room, tuple(literal.index for literal in row))
        if sum(jobs.values()) > room and key not in seen:
            seen.add(key)
            out.append((row, weights, room))
    return out
