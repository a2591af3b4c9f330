"""What does a table of jobs show by itself: how many GPU-hours, whose, on which hosts, and how busy were the GPUs?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from gpuledger.errors import FileFault
from gpuledger.lake.jobs.jobstats import BrokenUsage, GpuUsage, usage_of
from gpuledger.lake.jobs.reading import Refused, count_in, gpus_by_host, gpus_of, hosts_of, take_rows
from gpuledger.lake.jobs.tables import Found, Kind, Row, Skipped, Why, read_rows
from gpuledger.telemetry.stamps import StampReader
from gpuledger.telemetry.stated import Stated
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S, Unknown, count, some

MOST_JOBS = 100
MOST_MS = 10_000 * MS_PER_DAY
OWNERS = ("user", "account", "team", "namespace", "workload")
_NO_COUNT = Unknown("the table does not show how many GPUs it held")
_NO_TIME = Unknown("the table does not show how long it ran")
_NO_USAGE = Unknown("the table has no comments of jobstats (AdminComment) with figures of GPUs")
_ELAPSED = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,7}):)?(\d{1,7}):(\d{1,2})(?:\.\d+)?")
_SECONDS = re.compile(r"\d{1,12}")


@dataclass(frozen=True)
class Job:
    """One job that held GPUs. `by_gpu`: what jobstats measured; the percentage is their mean, the bytes their sum.

    `hours`: up to now where it still runs and the table shows for how long.
    """

    job: str
    owner: str
    hosts: tuple[str, ...]
    gpus: int | Unknown
    start_ms: int | None
    end_ms: int | None
    running: bool
    hours: float | Unknown
    gpu_hours: float | Unknown
    gpu_util_pct: float | Unknown = _NO_USAGE
    memory_used_bytes: int | Unknown = _NO_USAGE
    memory_total_bytes: int | Unknown = _NO_USAGE
    by_gpu: tuple[GpuUsage, ...] = ()


@dataclass(frozen=True)
class OwnerJobs:
    """The jobs of one owner."""

    owner: str
    jobs: int
    gpu_hours: float | Unknown
    gpu_util_pct: float | Unknown


@dataclass(frozen=True)
class JobSummary:
    """A table of jobs by itself.

    `jobs`: those that held GPUs, or may have (`jobs_without_gpu_count`: the table does not show it), of `jobs_listed`.
    `gpus_running`: what those at work hold. `gpu_hours`: of the jobs whose GPUs and time are known; the others are
    `jobs_unknown`. `by`: what an owner is (user, account, ...). `by_job`: those with the most GPU-hours. `stated`: what
    was taken for true; a time without a zone is UTC unless one is named.
    """

    file: str
    format: str
    jobs_listed: int
    jobs: int
    jobs_running: int
    gpus_running: int
    jobs_unknown: int
    jobs_without_gpu_count: int
    gpu_hours: float | Unknown
    gpu_util_pct: float | Unknown
    hosts: int
    start_ms: int | None
    end_ms: int | None
    by: str
    by_owner: tuple[OwnerJobs, ...]
    by_job: tuple[Job, ...]
    rows_rejected: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    stated: tuple[Stated, ...] = ()
    notes: tuple[str, ...] = ()


def job_summary(path: Path, zone: str | None = None) -> JobSummary:
    """The summary of a file; a fault where no row of it can be used. `zone`: of times without one, by default UTC."""
    stamps = StampReader((), zone or "UTC")
    found, rows = read_rows(path, ())
    by = next((name for name in OWNERS if any(row.get(name) for _, row in rows)), "job")
    jobs, notes = dict[tuple[str, int | None], Job](), list[str]()

    def take(row: Row, start: int | None, end: int | None) -> None:
        job = _job(found, row, start, end, by)
        if isinstance(job, Skipped):
            return found.skip(job)
        other = jobs.get(key := (job.job or str(len(jobs)), job.start_ms))
        if other is None or _end(job) >= _end(other):
            jobs[key] = _with_usage(job, row.get("usage", ""), notes)
        return None

    take_rows(found, rows, stamps, take)
    if found.rejected and len(found.rejected) == found.rows:
        raise _no_row(path, found)
    stated = (Stated("times without a zone are UTC", "--tz"),) if stamps.zoneless and zone is None else ()
    made = _summed(str(path), found, list(jobs.values()), by)
    return replace(made, stated=stated, notes=(*_notes(made, found), *notes))


def _end(job: Job) -> int:
    return job.end_ms or 0


def _no_row(path: Path, found: Found) -> FileFault:
    """The fault for a table of which no row can be used, by its first row."""
    number, why, column, value = found.rejected[0]
    if why is Why.wrong_number_of_cells:
        hint = "write the table again, with a cell for each column"
        return FileFault(path, "no row of this table of jobs has as many cells as the header has columns", hint=hint)
    words = f"row {number}, {column}: {why.value.replace('_', ' ')} ({value!r})"
    return FileFault(path, f"no row of this table of jobs can be used; {words}", hint="check the export")


def _job(found: Found, row: Row, start: int | None, end: int | None, by: str) -> Job | Skipped:
    """A row as a job, or why it held no GPU."""
    elapsed_ms = _elapsed_ms(row.get("elapsed", ""))
    gpus, hosts = _held(row)
    if gpus == 0:
        return Skipped.no_gpus
    if start is None and ("start" in row or not elapsed_ms) and found.kind is not Kind.TABLE and not _at_work(row):
        return Skipped.never_started
    if start is not None and end is not None and end <= start:
        if end < start:
            raise Refused(Why.ends_before_it_starts, "end", row.get("end", ""))
        return Skipped.no_time
    running = end is None and ("end" in row or _at_work(row))
    if end is None and start is not None:
        end = start + elapsed_ms if elapsed_ms else found.seen_ms if running else None
    ran_ms = elapsed_ms if start is None or end is None else end - start
    hours = ran_ms / MS_PER_HOUR if ran_ms else _NO_TIME
    gpu_hours = gpus if isinstance(gpus, Unknown) else hours if isinstance(hours, Unknown) else gpus * hours
    name = row.get("run_id") or row.get("pod") or row.get("workload") or ""
    return Job(name, row.get(by, ""), hosts, gpus, start, end, running, hours, gpu_hours)


def _at_work(row: Row) -> bool:
    return row.get("state", "").upper().startswith("RUNNING")


def _held(row: Row) -> tuple[int | Unknown, tuple[str, ...]]:
    """How many GPUs a job held, and its hosts."""
    number = count_in(row)
    cell = row.get("gpu", "")
    named = gpus_by_host(cell)
    hosts = tuple(named) or tuple(hosts_of(row.get("host", "")))
    if number is None:
        each = sum(map(len, named.values())) or len(gpus_of(cell)) * max(1, len(hosts))
        return each or _NO_COUNT, hosts
    return number, hosts


def _elapsed_ms(text: str) -> int:
    """1-02:03:04, 02:03:04, 03:04, or seconds; 0 where it is none of these, or longer than any job."""
    found = _ELAPSED.fullmatch(text)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    length_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * MS_PER_S
    length_ms = int(text) * MS_PER_S if _SECONDS.fullmatch(text) else length_ms
    return length_ms if length_ms <= MOST_MS else 0


def _with_usage(job: Job, comment: str, notes: list[str]) -> Job:
    """The job with what jobstats measured of it."""
    try:
        used = usage_of(comment)
    except BrokenUsage as error:
        notes.append(f"job {job.job}: its AdminComment cannot be read: {error}")
        return job
    if not used:
        return job

    util = [one.gpu_util_pct for one in used if one.gpu_util_pct is not None]
    memory = [one.memory_used_bytes for one in used if one.memory_used_bytes is not None]
    total = [one.memory_total_bytes for one in used if one.memory_total_bytes is not None]
    return replace(
        job, by_gpu=used, gpu_util_pct=sum(util) / len(util) if util else _NO_USAGE,
        memory_used_bytes=sum(memory) if memory else _NO_USAGE, memory_total_bytes=sum(total) if total else _NO_USAGE,
    )  # fmt: skip


def _summed(file: str, found: Found, jobs: Sequence[Job], by: str) -> JobSummary:
    groups = defaultdict[str, list[Job]](list)
    for job in jobs:
        groups[job.owner].append(job)
    times = [at for job in jobs for at in (job.start_ms, job.end_ms) if at is not None]
    owners = [OwnerJobs(name, len(some), _gpu_hours(some), _util(some)) for name, some in groups.items()]
    return JobSummary(
        file, found.kind.value, found.jobs + sum(n for why, n in found.skipped.items() if why in _PARTS), len(jobs),
        sum(job.running for job in jobs), sum(_number(job.gpus) for job in jobs if job.running),
        sum(isinstance(job.gpu_hours, Unknown) for job in jobs), sum(isinstance(job.gpus, Unknown) for job in jobs),
        _gpu_hours(jobs), _util(jobs), len(set(chain.from_iterable(job.hosts for job in jobs))),
        min(times, default=None), max(times, default=None), by, tuple(sorted(owners, key=_most)),
        tuple(sorted(jobs, key=_most)[:MOST_JOBS]), len(found.rejected),
        {why.value: n for why, n in found.skipped.items()},
    )  # fmt: skip


def _number(gpus: int | Unknown) -> int:
    return 0 if isinstance(gpus, Unknown) else gpus


_PARTS = (Skipped.mig_slices, Skipped.gpu_shares)


def _most(one: Job | OwnerJobs) -> float:
    """The most GPU-hours first."""
    return -one.gpu_hours if not isinstance(one.gpu_hours, Unknown) else 1.0


def _gpu_hours(jobs: Iterable[Job]) -> float | Unknown:
    """Those of the jobs of which they are known."""
    known = [job.gpu_hours for job in jobs if not isinstance(job.gpu_hours, Unknown)]
    unknown = [job.gpu_hours for job in jobs if isinstance(job.gpu_hours, Unknown)]
    if known:
        return sum(known)
    return unknown[0] if unknown else Unknown("no job in the table lists a GPU")


def _util(jobs: Iterable[Job]) -> float | Unknown:
    """The mean over the GPU-hours of the jobs that jobstats measured."""
    weights = [
        (job.gpu_util_pct, job.gpu_hours)
        for job in jobs
        if not isinstance(job.gpu_util_pct, Unknown) and not isinstance(job.gpu_hours, Unknown)
    ]
    hours = sum(weight for _, weight in weights)
    return sum(util * weight for util, weight in weights) / hours if hours else _NO_USAGE


_SKIPPED: dict[Skipped, Callable[[int], str]] = {
    Skipped.never_started: lambda n: f"{count(n, 'job')} never started",
    Skipped.no_gpus: lambda n: f"{count(n, 'job')} held no GPU",
    Skipped.no_time: lambda n: f"{count(n, 'job')} ended as {'it' if n == 1 else 'they'} started",
    Skipped.mig_slices: lambda n: f"{count(n, 'job')} held MIG slices, which are not counted as GPUs",
    Skipped.gpu_shares: lambda n: f"{count(n, 'job')} shared GPUs or held partitions, which are not counted as GPUs",
}


def _notes(made: JobSummary, found: Found) -> list[str]:
    """What is not in the figures, and why."""
    out = [_SKIPPED[why](n) for why, n in found.skipped.items()]
    if not made.jobs and Skipped.no_gpus in found.skipped and found.kind is Kind.SACCT:
        out.append("if jobs did hold GPUs: AccountingStorageTRES=gres/gpu in slurm.conf makes Slurm account them")
    if made.jobs_unknown and made.jobs_unknown < made.jobs:
        out.append(f"{count(made.jobs_unknown, 'job')} without a known number of GPUs or hours: not in the GPU-hours")
    if made.jobs_running:
        held = f"{count(made.jobs_running, 'job')} without an end, on {count(made.gpus_running, 'GPU')}"
        out.append(f"{held}: GPU-hours up to when the table was written, where it shows for how long a job ran")
    if found.rejected:
        reasons = list(dict.fromkeys(why.value.replace("_", " ") for _, why, _, _ in found.rejected))
        out.append(f"{count(len(found.rejected), 'row')} cannot be used ({some(reasons)})")
    return out
