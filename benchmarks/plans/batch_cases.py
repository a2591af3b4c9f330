"""The cases of the oracle as jobs and pools of the planner."""

from __future__ import annotations

from decimal import Decimal

from batch_files import planned_from_files
from batch_oracle import MINUTES, RESTART_MIN, Case, SmallPool

from gpuledger.plan.batching.jobs import Job
from gpuledger.plan.batching.pools import Pool, Terms
from gpuledger.plan.batching.price_windows import PriceWindow
from gpuledger.plan.batching.statement import BatchPlan
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN, utc

START_MS = 1_794_787_200_000  # 2026-11-16, midnight UTC


def planned(case: Case, seconds: float = 5.0) -> BatchPlan:
    """The plan for a case, from files, on the same grid of hours."""
    jobs = [
        Job(f"job-{i}", j.gpus, j.minutes * MS_PER_MIN, START_MS + j.first_h * MS_PER_HOUR,
            START_MS + j.due_min * MS_PER_MIN, j.types, j.preemptible)
        for i, j in enumerate(case.jobs)
    ]  # fmt: skip
    pools = [_pool(i, p) for i, p in enumerate(case.pools)]
    return planned_from_files(
        jobs, pools, start=utc(START_MS).isoformat(), step=f"{MINUTES}m", restart=f"{RESTART_MIN}m", seconds=seconds
    )


def _pool(number: int, pool: SmallPool) -> Pool:
    windows = tuple(
        PriceWindow(Decimal(str(usd)), hour * MINUTES, (hour + 1) * MINUTES)
        for hour, usd in enumerate(pool.usd_by_hour)
    )
    return Pool(
        f"pool-{number}", pool.gpu, pool.gpus, Decimal(str(pool.usd_by_hour[0])), Terms(pool.terms), pool.speed,
        pool.overhead_pct, windows,
    )  # fmt: skip
