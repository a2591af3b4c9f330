"""Jobs and pools as the files a user gives, and the plan of `gpuledger.plan.batch` for them."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gpuledger
from gpuledger.plan.batching.jobs import Job
from gpuledger.plan.batching.pools import Pool
from gpuledger.plan.batching.price_windows import PriceWindow
from gpuledger.plan.batching.statement import BatchPlan
from gpuledger.units import MS_PER_S, utc


def planned_from_files(jobs: Sequence[Job], pools: Sequence[Pool], **options: Any) -> BatchPlan:
    """The plan a user gets who has these jobs and pools in files."""
    with tempfile.TemporaryDirectory() as folder:
        jobs_file, pools_file = Path(folder) / "jobs.csv", Path(folder) / "pools.csv"
        write_jobs(jobs_file, jobs)
        write_pools(pools_file, pools)
        made: BatchPlan = gpuledger.plan.batch(jobs=jobs_file, pools=pools_file, **options).statement
    return made


def write_jobs(file: Path, jobs: Sequence[Job]) -> None:
    """A row per job."""
    heads = ("id", "gpus", "duration_s", "earliest", "deadline", "types", "preemptible")
    rows = (
        (j.id, j.gpus, j.work_ms / MS_PER_S, utc(j.earliest_ms).isoformat(), utc(j.deadline_ms).isoformat(),
         ";".join(j.types), "yes" if j.preemptible else "no")
        for j in jobs
    )  # fmt: skip
    _write(file, heads, rows)


def write_pools(file: Path, pools: Sequence[Pool]) -> None:
    """A row per pool, and one per price window of it."""
    heads = ("name", "gpu", "gpus", "usd_per_gpu_h", "kind", "speed", "overhead_pct", "hours", "dated")
    rows = []
    for p in pools:
        shared = (p.terms.value, p.speed, p.overhead_pct)
        rows.append((p.name, p.gpu, p.gpus, p.usd_per_gpu_h, *shared, "", p.dated))
        rows += [(p.name, p.gpu, p.gpus, w.usd_per_gpu_h, *shared, _hours(w), p.dated) for w in p.windows]
    _write(file, heads, rows)


def _hours(window: PriceWindow) -> str:
    ends = (f"{minute // 60:02}:{minute % 60:02}" for minute in (window.from_minute, window.to_minute))
    return "-".join(ends)


def _write(file: Path, heads: Sequence[str], rows: Any) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(heads)
        writer.writerows(rows)
