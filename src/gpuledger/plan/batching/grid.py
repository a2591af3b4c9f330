"""What do jobs and pools look like on a grid of time steps, and which job cannot run at all?

A job starts on a step and holds its GPUs for whole steps; it is billed for the time it runs. A step is as long as fits:
jobs must not lose much time to rounding, and none that could meet its deadline may miss it for the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from gpuledger.catalog.gpus import find_gpu
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.batching.cells import each
from gpuledger.plan.batching.jobs import Job
from gpuledger.plan.batching.pools import Pool, Terms, same_type
from gpuledger.plan.batching.price_windows import usd_by_step
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN, Unknown, count, utc

STEPS_MIN = (60, 30, 15, 10, 5, 2, 1)
# GPU time held but not used, at most, for a step to be short enough.
MOST_ROUNDING = 0.05
MOST_STEPS = 120_000


@dataclass(frozen=True)
class Lane:
    """A pool on the grid: its price per hour, what one more GPU costs in each step, and that added up (`paid`)."""

    pool: Pool
    usd_per_h: np.ndarray
    usd: np.ndarray
    paid: np.ndarray

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""
        return self.pool.gpus


@dataclass(frozen=True)
class Fit:
    """A job on a lane: how long it takes there, the steps it holds, the used part of the last one.

    `latest`: the last start that meets the deadline; before `first` of its task where there is none.
    """

    lane: int
    work_ms: int
    steps: int
    last: float
    latest: int


@dataclass(frozen=True)
class Task:
    """A job on the grid: its first possible start and the lanes it may run on."""

    job: Job
    first: int
    fits: tuple[Fit, ...]

    @property
    def on_time(self) -> tuple[Fit, ...]:
        """The lanes on which it can meet its deadline, if it is alone."""
        return tuple(f for f in self.fits if f.latest >= self.first)


@dataclass(frozen=True)
class Grid:
    """All of it. `steps`: until the last deadline; `reach`: until the last end of jobs that are late."""

    start_ms: int
    step_ms: int
    steps: int
    reach: int
    lanes: tuple[Lane, ...]
    tasks: tuple[Task, ...]
    restart_ms: int

    @cached_property
    def step_h(self) -> float:
        """Hours of one step."""
        return self.step_ms / MS_PER_HOUR

    def at_ms(self, step: float) -> int:
        """The instant a step starts."""
        return self.start_ms + round(step * self.step_ms)


def work_on(job: Job, pool: Pool) -> int:
    """How long a job runs on a pool."""
    return max(1, round(job.work_ms / pool.speed * (1 + pool.overhead_pct / 100)))


def allowed(job: Job, pool: Pool) -> bool:
    """Whether a job may run on a pool: size, type, and spot only for jobs that can be interrupted."""
    typed = not job.types or any(same_type(t, pool) for t in job.types)
    return job.gpus <= pool.gpus and typed and (job.preemptible or pool.terms is not Terms.SPOT)


def check(jobs: Sequence[Job], pools: Sequence[Pool], *, late: bool) -> None:
    """Refuse jobs that no pool can run, with the reason for each; with `late` not for the deadline alone."""
    known = {name for pool in pools for name in (pool.gpu, pool.name)}
    for wanted in {t for job in jobs for t in job.types}:
        if isinstance(find_gpu(wanted), Unknown) and not any(same_type(wanted, pool) for pool in pools):
            raise UnknownName("GPU type", wanted, known)
    refused = [f"job {job.id}: {why}" for job in jobs if (why := _impossible(job, pools, late))]
    if refused:
        one = len(refused) == 1
        raise InputError(
            f"{count(len(refused), 'job')} cannot run on these pools, however planned: {'; '.join(refused[:10])}"
            + (f"; and {len(refused) - 10:,} more" if len(refused) > 10 else ""),
            hint=f"change or leave out {'this job' if one else 'these jobs'}, or add a pool that can run "
            f"{'it' if one else 'them'}",
        )  # fmt: skip


def _impossible(job: Job, pools: Sequence[Pool], late: bool) -> str:
    typed = [p for p in pools if not job.types or any(same_type(t, p) for t in job.types)]
    if not typed:
        return f"no pool has {each(job.types)} (the pools have {each(sorted({p.gpu for p in pools}))})"
    if all(p.terms is Terms.SPOT for p in typed) and not job.preemptible:
        return "only spot pools have its type, and it is not preemptible"
    largest = max(typed, key=lambda p: p.gpus)
    usable = [p for p in typed if allowed(job, p)]
    if not usable:
        return f"it takes {count(job.gpus, 'GPU')}, and the largest pool it may use, {largest.name}, has {largest.gpus}"
    quickest = min(work_on(job, p) for p in usable)
    if not late and job.earliest_ms + quickest > job.deadline_ms:
        room = (job.deadline_ms - job.earliest_ms) / MS_PER_HOUR
        return (
            f"it runs {quickest / MS_PER_HOUR:.2f} h on its fastest pool, and there are {room:.2f} h from "
            f"{utc(job.earliest_ms):%Y-%m-%d %H:%M} to its deadline"
        )
    return ""


def choose_step(jobs: Sequence[Job], pools: Sequence[Pool], start_ms: int) -> int:
    """The longest step, in milliseconds, that loses little GPU time to rounding and no deadline to the grid."""
    works = [[work_on(job, pool) for pool in pools if allowed(job, pool)] for job in jobs]
    for minutes in STEPS_MIN:
        step = minutes * MS_PER_MIN
        used = sum(job.gpus * fmean(w) for job, w in zip(jobs, works, strict=True))
        held = sum(job.gpus * fmean(-(-v // step) * step for v in w) for job, w in zip(jobs, works, strict=True))
        start = start_ms - start_ms % step
        lost = any(
            job.earliest_ms + min(w) <= job.deadline_ms
            and start + -(-(job.earliest_ms - start) // step) * step + min(w) > job.deadline_ms
            for job, w in zip(jobs, works, strict=True)
        )
        if held <= used * (1 + MOST_ROUNDING) and not lost:
            return step
    return STEPS_MIN[-1] * MS_PER_MIN


def make_grid(jobs: Sequence[Job], pools: Sequence[Pool], start_ms: int, step_ms: int, restart_ms: int) -> Grid:
    """Jobs and pools on steps of this length."""
    start = start_ms - start_ms % step_ms
    tasks = tuple(_task(job, pools, start, step_ms) for job in jobs)
    due = max(-(-(job.deadline_ms - start) // step_ms) for job in jobs)
    steps = max(due, 1)
    # However late: a queue in front of the pools is done after the work of all jobs one after the other.
    serial = max(t.first for t in tasks) + sum(max(f.steps for f in t.fits) for t in tasks)
    packed = max(t.first for t in tasks) + _packed(tasks, pools)
    longest = max(f.steps for t in tasks for f in t.fits)
    reach = max(steps, serial if serial <= MOST_STEPS // 2 else packed) + longest + 2
    if reach > MOST_STEPS:
        minutes = step_ms / MS_PER_MIN
        raise InputError(
            f"{reach:,} steps of {minutes:g} minutes are too many",
            hint="give a longer step, or plan fewer jobs at a time",
        )
    lanes = tuple(_lane(pool, start, step_ms, reach) for pool in pools)
    return Grid(start, step_ms, steps, reach, lanes, tasks, restart_ms)


def _packed(tasks: Sequence[Task], pools: Sequence[Pool]) -> int:
    """Steps that a queue needs at a quarter of the GPUs, if each job has its smallest pool only; it may need more."""
    demand = [0.0] * len(pools)
    for task in tasks:
        smallest = min(task.fits, key=lambda f: (pools[f.lane].gpus, f.lane))
        demand[smallest.lane] += max(f.steps for f in task.fits) * task.job.gpus
    return 4 * int(sum(d / p.gpus for d, p in zip(demand, pools, strict=True))) + 4 * max(
        f.steps for t in tasks for f in t.fits
    )


def _task(job: Job, pools: Sequence[Pool], start_ms: int, step_ms: int) -> Task:
    fits = []
    for lane, pool in enumerate(pools):
        if allowed(job, pool):
            work = work_on(job, pool)
            steps = -(-work // step_ms)
            latest = (job.deadline_ms - start_ms - work) // step_ms
            fits.append(Fit(lane, work, steps, (work - (steps - 1) * step_ms) / step_ms, latest))
    return Task(job, -(-(job.earliest_ms - start_ms) // step_ms), tuple(fits))


def _lane(pool: Pool, start_ms: int, step_ms: int, reach: int) -> Lane:
    """A reserved pool is paid in any case: one more GPU-hour on it costs nothing."""
    per_h = usd_by_step(pool.usd_per_gpu_h, pool.windows, pool.zone, start_ms, step_ms, reach)
    usd = np.zeros(reach) if pool.terms is Terms.RESERVED else per_h * (step_ms / MS_PER_HOUR)
    return Lane(pool, per_h, usd, np.concatenate([[0.0], np.cumsum(usd)]))
