"""What would the jobs cost if work could be poured over pools and hours like water?

Jobs with the same first and last hour and the same pools are one stream. A linear program pours the streams at the
fewest dollars into hours of limited GPUs. What one more GPU-hour would save in an hour (its shadow price) says where
room is scarce: a good first toll for the bound, and a good guide for which jobs should leave room for others.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from gpuledger.plan.batching.grid import Grid

MOST_HOURS = 400


def scarcity(grid: Grid) -> np.ndarray:
    """Dollars per GPU and step that room is worth in each step of each lane; zeros where the program fails."""
    from ortools.linear_solver import pywraplp  # type: ignore[import-untyped]

    per = max(1, -(-grid.steps // MOST_HOURS), round(1 / grid.step_h))
    hours = -(-grid.reach // per)
    toll = np.zeros((len(grid.lanes), grid.reach))
    solver = pywraplp.Solver.CreateSolver("GLOP")
    if solver is None:
        return toll
    price = [_least(lane.usd, per, hours) for lane in grid.lanes]
    room: dict[tuple[int, int], list[Any]] = defaultdict(list)
    cost = solver.Objective()
    cost.SetMinimization()
    for (first, last, lanes), (work, gpus) in _streams(grid, per).items():
        whole = solver.Constraint(work, solver.infinity())
        for hour in range(first, last + 1):
            wide = solver.Constraint(0.0, gpus * per)
            for lane, ratio in lanes:
                var = solver.NumVar(0.0, solver.infinity(), "")
                cost.SetCoefficient(var, price[lane][hour])
                whole.SetCoefficient(var, 1.0 / ratio)
                wide.SetCoefficient(var, 1.0)
                room[lane, hour].append(var)
    limits = {}
    for (lane, hour), poured in room.items():
        limits[lane, hour] = solver.Constraint(0.0, grid.lanes[lane].gpus * per)
        for var in poured:
            limits[lane, hour].SetCoefficient(var, 1.0)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return toll
    for (lane, hour), limit in limits.items():
        toll[lane, hour * per : (hour + 1) * per] = max(0.0, -limit.dual_value())
    return toll


def _least(usd: np.ndarray, per: int, hours: int) -> np.ndarray:
    """The lowest price of each hour."""
    padded = np.concatenate([usd, np.full(hours * per - len(usd), np.inf)])
    return padded.reshape(hours, per).min(axis=1)


def _streams(grid: Grid, per: int) -> dict[tuple[int, int, tuple[tuple[int, float], ...]], tuple[float, int]]:
    """GPU-steps held and GPUs of jobs with the same hours and lanes; a lane with how long work takes there."""
    work: dict[tuple[int, int, tuple[tuple[int, float], ...]], tuple[float, int]] = {}
    for task in grid.tasks:
        if not task.on_time:
            continue
        last = min((task.job.deadline_ms - grid.start_ms - 1) // grid.step_ms, grid.reach - 1)
        lanes = tuple((f.lane, _ratio(grid, f.lane)) for f in task.on_time)
        key = (task.first // per, last // per, lanes)
        had, gpus = work.get(key, (0.0, 0))
        work[key] = had + task.job.gpus * -(-task.job.work_ms // grid.step_ms), gpus + task.job.gpus
    return work


def _ratio(grid: Grid, lane: int) -> float:
    pool = grid.lanes[lane].pool
    return (1 + pool.overhead_pct / 100) / pool.speed
