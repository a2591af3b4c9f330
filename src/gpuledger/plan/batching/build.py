"""How does a plan come about, from jobs and pools to the statement?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np

from gpuledger.cost.money import ZERO, cost_usd
from gpuledger.errors import InputError
from gpuledger.plan.batching.cells import each
from gpuledger.plan.batching.choices import Choice, end_ms, steps_for
from gpuledger.plan.batching.grid import Grid, check, choose_step, make_grid
from gpuledger.plan.batching.jobs import Job, check_jobs
from gpuledger.plan.batching.pools import Pool, Terms
from gpuledger.plan.batching.schedule import Schedule
from gpuledger.plan.batching.search import Found, search
from gpuledger.plan.batching.solver import need_solver
from gpuledger.plan.batching.statement import BatchPlan, Load, Outcome, Piece, Placement, PoolUse, Proof
from gpuledger.plan.batching.words import assumptions, headline, refused
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN, Unknown, count

Stage = Callable[[str, int | None], Callable[[int], None]]
Usd = dict[int, Decimal]


def plan_batch(
    jobs: Sequence[Job],
    pools: Sequence[Pool],
    *,
    start_ms: int,
    step_ms: int | None = None,
    restart_ms: int = 5 * MS_PER_MIN,
    allow_late: bool = False,
    seconds: float = 20.0,
    notes: Sequence[str] = (),
    read_as: Sequence[str] = (),
    stage: Stage = lambda _name, _total: lambda _amount: None,
) -> BatchPlan:
    """The plan for these jobs on these pools; `seconds`: of solver work, the same plan on every run."""
    need_solver()
    check_jobs(jobs)
    check(jobs, pools, late=allow_late)
    step = step_ms or choose_step(jobs, pools, start_ms)
    grid = make_grid(jobs, pools, start_ms, step, restart_ms)
    if not allow_late:
        _check_grid(grid)
    found = search(grid, seconds, stage)
    late = [i for i, c in sorted(found.best.chosen.items()) if c.late_ms]
    if late and not allow_late:
        raise _too_late(grid, found.best, late)
    return _statement(grid, found, notes, read_as)


def _check_grid(grid: Grid) -> None:
    lost = [task.job.id for task in grid.tasks if not task.on_time]
    if lost:
        raise InputError(
            f"with steps of {grid.step_ms / MS_PER_MIN:g} minutes, {count(len(lost), 'job')} can no longer meet the "
            f"deadline: {each(lost)}",
            hint="give a shorter step, or leave it out",
        )


def _too_late(grid: Grid, best: Schedule, late: Sequence[int]) -> InputError:
    worst = sorted(late, key=lambda i: -best.chosen[i].late_ms)
    listed = each([f"{grid.tasks[i].job.id} ({best.chosen[i].late_ms / MS_PER_HOUR:.1f} h late)" for i in worst], 8)
    short = _shortest(grid)
    return InputError(
        f"no plan was found that meets all deadlines: {count(len(late), 'job')} of {len(grid.tasks):,} would be late "
        f"even in the least late plan found: {listed}. {short}",
        hint="add GPUs, move deadlines, leave jobs out, or allow late jobs (--allow-late) for the least late plan",
    )


def _shortest(grid: Grid) -> str:
    """What all jobs need compared with what the pools have until the last deadline."""
    need = sum(t.job.gpus * min(f.work_ms for f in t.fits) for t in grid.tasks) / MS_PER_HOUR
    have = sum(lane.gpus for lane in grid.lanes) * grid.steps * grid.step_h
    return f"All jobs take {need:,.0f} GPU-hours; the pools have {have:,.0f} until the last deadline"


def _statement(grid: Grid, found: Found, notes: Sequence[str], read_as: Sequence[str]) -> BatchPlan:
    fixed = {i: _fixed(grid, i) for i in range(len(grid.lanes))}
    paid = _dollars(grid, found.best)
    mine = _outcome("this plan", grid, found.best, paid, fixed)
    others = [
        _outcome(name, grid, schedule, _dollars(grid, schedule), fixed, mine.usd)
        for name, schedule in found.policies.items()
    ]
    pools = tuple(_pool_use(grid, i, found.best, paid, fixed) for i in range(len(grid.lanes)))
    bound, gap, proof = _bound(found, mine, sum(fixed.values(), ZERO))
    return BatchPlan(
        headline=headline(mine, others[0], any(task.job.due for task in grid.tasks)),
        start_ms=grid.start_ms,
        end_ms=grid.at_ms(_last(grid, found.best)),
        step_min=grid.step_ms / MS_PER_MIN,
        chosen=mine,
        runners_up=tuple(others),
        usd=_range(grid, pools, mine.usd),
        bound_usd=bound,
        gap_pct=gap,
        proof=proof,
        windows=found.windows,
        pools=pools,
        placements=tuple(
            _placement(grid, i, c, paid[i])
            for i, c in sorted(found.best.chosen.items(), key=lambda p: (p[1].start, p[0]))
        ),
        loads=tuple(_loads(grid, found.best)),
        refused=refused(mine, others, pools),
        assumptions=assumptions(grid, notes),
        prices_dated=_dated([lane.pool for lane in grid.lanes]),
        read_as=tuple(read_as),
    )


def _last(grid: Grid, schedule: Schedule) -> int:
    """The step after the last deadline, and after the last job."""
    return max(grid.steps, *(c.end for c in schedule.chosen.values()))


def _dated(pools: Sequence[Pool]) -> str:
    dates = sorted({pool.dated for pool in pools if pool.dated})
    return " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else ""


def _bound(found: Found, mine: Outcome, fixed: Decimal) -> tuple[Decimal | Unknown, float | Unknown, Proof]:
    if mine.missed:
        why = Unknown("jobs are late, and the bound holds for plans that meet all deadlines")
        return why, why, Proof.NONE
    if found.proven:
        return mine.usd, 0.0, Proof.OPTIMAL
    bound = min(mine.usd, fixed + Decimal(str(round(max(0.0, found.bound_usd), 6))))
    return bound, float(100 * (mine.usd - bound) / mine.usd) if mine.usd else 0.0, Proof.GAP


def _dollars(grid: Grid, schedule: Schedule) -> Usd:
    """What the hours of each job cost, exactly; nothing on reserved pools, which are paid in any case."""
    return {i: _paid(grid, i, choice) for i, choice in schedule.chosen.items()}


def _paid(grid: Grid, task: int, choice: Choice) -> Decimal:
    lane, job = grid.lanes[choice.lane], grid.tasks[task].job
    if lane.pool.terms is Terms.RESERVED:
        return ZERO
    fit = next(f for f in grid.tasks[task].fits if f.lane == choice.lane)
    _, last = steps_for(grid, fit, len(choice.segments))
    total = ZERO
    for a, b in choice.segments:
        prices = lane.usd_per_h[a:b]
        cuts = [a, *(a + 1 + np.flatnonzero(np.diff(prices))).tolist(), b]
        for first, end in pairwise(cuts):
            steps = end - first - (1 - last if end == choice.end else 0)
            total += cost_usd(round(steps * grid.step_ms) * job.gpus, Decimal(repr(float(lane.usd_per_h[first]))))
    return total


def _fixed(grid: Grid, lane: int) -> Decimal:
    """What a reserved pool costs from the start to the last deadline, used or not."""
    found = grid.lanes[lane]
    if found.pool.terms is not Terms.RESERVED:
        return ZERO
    prices, times = np.unique(found.usd_per_h[: grid.steps], return_counts=True)
    return sum(
        (
            cost_usd(int(n) * grid.step_ms * found.gpus, Decimal(repr(float(p))))
            for p, n in zip(prices, times, strict=True)
        ),
        ZERO,
    )


def _outcome(
    name: str, grid: Grid, schedule: Schedule, paid: Usd, fixed: Mapping[int, Decimal], plan_usd: Decimal | None = None
) -> Outcome:
    usd = sum(paid.values(), ZERO) + sum(fixed.values(), ZERO)
    late = [c.late_ms for c in schedule.chosen.values() if c.late_ms]
    waits = [grid.at_ms(c.start) - grid.tasks[i].job.earliest_ms for i, c in schedule.chosen.items()]
    return Outcome(
        name, usd, len(waits), len(waits) - len(late), len(late), sum(late) / MS_PER_HOUR,
        sum(waits) / len(waits) / MS_PER_HOUR, ZERO if plan_usd is None else usd - plan_usd,
    )  # fmt: skip


def _pool_use(grid: Grid, lane: int, best: Schedule, paid: Usd, fixed: Mapping[int, Decimal]) -> PoolUse:
    pool = grid.lanes[lane].pool
    mine = {i: c for i, c in best.chosen.items() if c.lane == lane}
    hours = sum(grid.tasks[i].job.gpus * _run_ms(grid, i, c) for i, c in mine.items()) / MS_PER_HOUR
    there = pool.gpus * grid.steps * grid.step_h
    return PoolUse(
        pool.name, pool.gpu, pool.gpus, pool.terms.value, pool.usd_per_gpu_h, len(mine), hours, 100 * hours / there,
        fixed[lane] + sum((paid[i] for i in mine), ZERO), pool.dated,
    )  # fmt: skip


def _run_ms(grid: Grid, task: int, choice: Choice) -> int:
    fit = next(f for f in grid.tasks[task].fits if f.lane == choice.lane)
    return fit.work_ms + (len(choice.segments) - 1) * grid.restart_ms


def _placement(grid: Grid, task: int, choice: Choice, usd: Decimal) -> Placement:
    job, pool = grid.tasks[task].job, grid.lanes[choice.lane].pool
    fit = next(f for f in grid.tasks[task].fits if f.lane == choice.lane)
    end = end_ms(grid, fit, choice.segments)
    pieces = [Piece(grid.at_ms(a), grid.at_ms(b)) for a, b in choice.segments]
    pieces[-1] = Piece(pieces[-1].start_ms, end)
    return Placement(
        job=job.id, pool=pool.name, gpu=pool.gpu, gpus=job.gpus, start_ms=grid.at_ms(choice.start), end_ms=end,
        deadline_ms=job.deadline_ms if job.due else None, run_h=_run_ms(grid, task, choice) / MS_PER_HOUR,
        wait_h=(grid.at_ms(choice.start) - job.earliest_ms) / MS_PER_HOUR, late_h=choice.late_ms / MS_PER_HOUR,
        usd=usd, preemptible=job.preemptible, pieces=tuple(pieces),
    )  # fmt: skip


def _loads(grid: Grid, best: Schedule) -> list[Load]:
    """GPUs in use by pool, where that or the price changes."""
    out = []
    end = _last(grid, best)
    for i, lane in enumerate(grid.lanes):
        used, price = lane.gpus - best.free[i, :end], lane.usd_per_h[:end]
        changes = np.flatnonzero((np.diff(used) != 0) | (np.diff(price) != 0)) + 1
        out += [
            Load(lane.pool.name, grid.at_ms(int(at)), int(used[at]), float(price[at])) for at in (0, *changes.tolist())
        ]
    return out


def _range(grid: Grid, pools: Sequence[PoolUse], usd: Decimal) -> UsdRange | Decimal:
    """The plan's dollars at the low and high end of its pools' prices, where they have a range."""
    if not any(lane.pool.low_usd is not None for lane in grid.lanes):
        return usd
    low = high = ZERO
    for lane, use in zip(grid.lanes, pools, strict=True):
        base = lane.pool.usd_per_gpu_h
        low += use.usd * (lane.pool.low_usd or base) / base if base else use.usd
        high += use.usd * (lane.pool.high_usd or base) / base if base else use.usd
    return UsdRange(low, usd, high)
