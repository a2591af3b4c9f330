"""Which schedule is the best that can be found: at once where there are few choices, else window by window?

It starts from the best of the queues and of planning job by job as they arrive (rolling horizon), and only ever takes
a better schedule, so that the plan is never worse than any of them. A large set of jobs is improved in windows: the
jobs of one window choose again, all others stay where they are; then jobs far above their cheapest choice, together
with those in their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.plan.batching.arrivals import on_arrival
from gpuledger.plan.batching.bound import lower_bound
from gpuledger.plan.batching.choices import Choice, all_choices, unbroken
from gpuledger.plan.batching.grid import Grid
from gpuledger.plan.batching.policies import Order, Policy, cheapest, cheapest_start, run_policy
from gpuledger.plan.batching.schedule import Schedule
from gpuledger.plan.batching.solver import solve
from gpuledger.plan.batching.window import WINDOW_JOBS, around, late_choices, late_jobs, solve_window

# Steps held by all choices together, up to which all jobs are solved at once.
AT_ONCE = 500_000
# Rounds of the bound, and the jobs they go over together at most.
BOUND_ROUNDS, BOUND_JOBS = 40, 200_000
# The part of the work that goes into planning jobs as they arrive.
ROLLING_SHARE = 0.5
# A start that is cheaper than the best is worth repairing where no more jobs than this are late.
MOST_LATE = 40
KNOWN_ON_ARRIVAL = "planned on arrival"
Tick = Callable[[int], None]


@dataclass(frozen=True)
class Found:
    """The best schedule, what no schedule can cost less than, whether it is proven best, and what policies do."""

    best: Schedule
    bound_usd: float
    proven: bool
    policies: Mapping[str, Schedule]
    windows: int


def search(grid: Grid, limit_s: float, stage: Callable[[str, int | None], Tick]) -> Found:
    """The best schedule found with this much work; the same on every run."""
    tick = stage("queues", len(Policy))
    policies = {}
    for policy in Policy:
        policies[policy.value] = run_policy(grid, policy)
        tick(1)
    policies[KNOWN_ON_ARRIVAL], rolled_s = on_arrival(grid, limit_s * ROLLING_SHARE, stage("arrivals", len(grid.tasks)))
    best = _best([*policies.values(), *(cheapest(grid, order) for order in _orders())]).copy()
    proven, bound = False, -np.inf
    rest_s = limit_s - rolled_s
    if (listed := _everything(grid, best)) is not None:
        stage("solving", None)(1)
        choices, complete = listed
        found = solve(grid, Schedule(grid).free, choices, best.chosen, limit_s * 0.7)
        if found is not None:
            best = _best([best, Schedule(grid, found.chosen)])
            proven = found.proven and complete and not best.score().missed
            bound = found.bound_usd if complete else bound
            rest_s -= found.work_s
    windows = 0
    if not proven:
        rounds = min(BOUND_ROUNDS, 1 + BOUND_JOBS // len(grid.tasks))
        relaxed = lower_bound(grid, best.score().usd, rounds, stage("bound", rounds))
        bound = max(bound, relaxed.usd)
        guided = [cheapest(grid, order, relaxed.toll) for order in _orders()]
        spent = sum(_repair(start) for start in guided if start.score().usd < best.score().usd)
        best = _best([best, *guided])
        if not (proven := _reached(best, bound)):
            windows = improve(best, rest_s - spent, stage("windows", None))
            proven = _reached(best, bound)
    settle(best)
    return Found(best, best.score().usd if proven else bound, proven, policies, windows)


def _repair(start: Schedule) -> float:
    """Let late jobs and those in their way choose again, where they are few; returns the work it took."""
    late, work = late_jobs(start), 0.0
    for i in late if len(late) <= MOST_LATE else ():
        if start.chosen[i].late_ms:
            work += solve_window(start, around(start, i))
    return work


def _reached(best: Schedule, bound_usd: float) -> bool:
    """Whether a schedule costs no more than any can."""
    score = best.score()
    return not score.missed and score.usd - bound_usd <= 1e-6 * max(1.0, bound_usd)


def _best(schedules: Sequence[Schedule]) -> Schedule:
    best = schedules[0]
    for other in schedules[1:]:
        if other.score().better(best.score()):
            best = other
    return best


def _orders() -> Iterator[Order]:
    """In which order jobs may choose: the least room first, the largest first, the first come first."""
    yield lambda t: (min(f.latest for f in t.fits) - t.first, -t.job.gpus)
    yield lambda t: (-t.job.gpus * t.job.work_ms, t.job.deadline_ms)
    yield lambda t: (min(f.latest for f in t.fits), t.first)
    yield lambda t: (-t.job.gpus, t.job.deadline_ms)


def _everything(grid: Grid, start: Schedule) -> tuple[dict[int, list[Choice]], bool] | None:
    """All choices of all jobs and whether they are really all; None where they are too many for one model."""
    empty, out, whole, size = Schedule(grid).free, {}, True, 0
    late = bool(start.score().missed)
    least = sum(f.steps * (f.latest - t.first + 1) for t in grid.tasks for f in t.on_time)
    if least > AT_ONCE:
        return None
    for i, task in enumerate(grid.tasks):
        found, complete = all_choices(grid, task, empty)
        if late:
            found += late_choices(grid, task, empty)
            whole = False
        mine = start.chosen[i]
        out[i] = found if mine in found else [*found, mine]
        whole &= complete
        size += sum(b - a for c in out[i] for a, b in c.segments)
        if size > AT_ONCE:
            return None
    return out, whole


def improve(best: Schedule, limit_s: float, tick: Tick) -> int:
    """Improve a schedule in place, window by window; returns how many windows were solved."""
    spent, done = 0.0, 0
    tried: set[tuple[int, ...]] = set()
    while spent < limit_s:
        before = best.score()
        for window in _windows(best, tried):
            if spent >= limit_s:
                break
            spent += solve_window(best, window)
            done += 1
            tick(1)
        if not best.score().better(before):
            break
    return done


def _windows(best: Schedule, tried: set[tuple[int, ...]]) -> Iterator[list[int]]:
    """Jobs that choose again together: neighbors in time, then those far above their cheapest with those in the way."""
    grid = best.grid
    for i in late_jobs(best):
        yield around(best, i)
    order = sorted(best.chosen, key=lambda i: (best.chosen[i].start, i))
    if len(order) > 1:
        for at in range(0, max(1, len(order) - WINDOW_JOBS // 2), WINDOW_JOBS // 2):
            yield order[at : at + WINDOW_JOBS]
    empty = Schedule(grid).free
    least = {i: c.usd for i, t in enumerate(grid.tasks) if (c := cheapest_start(grid, t, empty))}
    above = {i: best.chosen[i].usd - usd for i, usd in least.items()}
    for i in sorted(above, key=lambda i: (-above[i], i)):
        if above[i] <= 1e-9:
            break
        window = around(best, i)
        key = (i, *(best.chosen[j].start for j in window))
        if key not in tried:
            tried.add(key)
            yield window


def settle(best: Schedule) -> None:
    """Start every job as early as it can at the same cost; nothing is gained by waiting for nothing."""
    for i in sorted(best.chosen, key=lambda i: (best.chosen[i].start, i)):
        task, mine = best.grid.tasks[i], best.take(i)
        same = [
            c
            for fit in (f for f in task.on_time if f.lane == mine.lane and len(mine.segments) == 1)
            for c in unbroken(best.grid, task, fit, best.free)
            if c.usd <= mine.usd + 1e-9 and c.start < mine.start
        ]
        best.put(i, min(same, key=lambda c: c.start) if same and not mine.late_ms else mine)
