"""Which jobs are to be planned: how many GPUs for how long, from when, until when, on which types?"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import FactError, FileFault, InputError
from gpuledger.plan.batching.cells import Instants, Line, each, is_plain, length_ms, lines_of, missing, names
from gpuledger.units import MS_PER_HOUR, MS_PER_S, count, utc

# Bare numbers under `duration` are seconds where the middle one is at least this: as hours it would be days.
SECONDS_FROM = 60.0
UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0}
_WORK = "give the length as a number above 0, 1h30m or 01:30:00"


@dataclass(frozen=True)
class Job:
    """One job: `work_ms` is its length on a GPU of speed 1, `types` the GPU types it may run on (none: any).

    `due` says whether the deadline is the user's, and not the longest wait of a job without one.
    """

    id: str
    gpus: int
    work_ms: int
    earliest_ms: int
    deadline_ms: int
    types: tuple[str, ...] = ()
    preemptible: bool = False
    weight: float = 1.0
    due: bool = True


@dataclass(frozen=True)
class JobFile:
    """The jobs of a file, when the plan starts, and what was read as what."""

    jobs: tuple[Job, ...]
    start_ms: int
    read_as: tuple[str, ...]


def read_jobs(
    path: Path, *, start_ms: int | None, now_ms: int, wait_ms: int, unit: str = "", zone: str = "UTC"
) -> JobFile:
    """The jobs of a table.

    `start_ms`: of the plan; else the earliest submission, else now. `wait_ms`: how long a job without a deadline may
    wait. `unit`: of bare numbers under a name without a unit. `zone`: of times without one.
    """
    lines = lines_of(path, names().jobs, "jobs")
    columns = lines[0].columns
    for needed in ("gpus", "work"):
        if needed not in columns:
            raise missing(
                str(path), "hours" if needed == "work" else needed, names().jobs[needed], _header(path), "jobs"
            )
    unit_s, unit_words = _unit(lines, unit)
    instants = Instants(zone, lines, ("earliest", "deadline"))
    times = [(instants.read(line, "earliest"), instants.read(line, "deadline")) for line in lines]
    fixed = [at for at, _ in times if isinstance(at, int)]
    start = start_ms if start_ms is not None else min(fixed) if fixed else now_ms - now_ms % MS_PER_HOUR
    jobs = [
        _job(line, _placed(at, start), _placed(end, start), unit_s, start, wait_ms)
        for line, (at, end) in zip(lines, times, strict=True)
    ]
    _unique(str(path), jobs)
    said = [f"{c.theirs} as {_ours(c.ours, unit_words)}" for c in columns.values()]
    if instants.relative:
        counted = "seconds" if instants.unit_s == 1.0 else "hours"
        said.append(f"plain numbers under times as {counted} after the start, {utc(start):%Y-%m-%d %H:%M} UTC")
    if instants.zoneless:
        said.append(f"times without a zone as {zone}")
    return JobFile(tuple(jobs), start, tuple(said))


def _header(path: Path) -> list[str]:
    from gpuledger.cost.inventories.content import Content

    return list(next(iter(Content(str(path)).table))[1])


def _ours(name: str, unit_words: str) -> str:
    return {"work": f"the length in {unit_words}", "id": "the name", "types": "the GPU types allowed"}.get(name, name)


def _unit(lines: Sequence[Line], unit: str) -> tuple[float, str]:
    """The seconds that a bare number of the length stands for, and its name."""
    column = lines[0].columns["work"]
    said = {1.0: "seconds", 60.0: "minutes", 3600.0: "hours", 86400.0: "days", 0.001: "milliseconds"}
    if unit:
        return UNITS_S[unit], said[UNITS_S[unit]]
    if column.unit_s is not None:
        return column.unit_s, said[column.unit_s]
    bare = [number for line in lines if is_plain(line, "work") and (number := line.number_of("work", hint=_WORK))]
    if not bare:
        return MS_PER_HOUR / MS_PER_S, "hours and minutes"
    if statistics.median(bare) >= SECONDS_FROM:
        return 1.0, "seconds"
    raise FactError(
        lines[0].path, column.theirs, "the unit of these numbers is not known",
        hint="name the column hours, duration_s or duration_min, or give the unit (s, min, h)",
    )  # fmt: skip


def _placed(at: int | float | None, start_ms: int) -> int | None:
    """An instant; a float is counted from the start."""
    return start_ms + round(at) if isinstance(at, float) else at


def _job(line: Line, at: int | None, end: int | None, unit_s: float, start_ms: int, wait_ms: int) -> Job:
    name = line.text("id") or f"row {line.number}"
    gpus = line.whole("gpus", "give a whole number of GPUs, 1 or more")
    work = length_ms(line, "work", unit_s, _WORK)
    if gpus is None or work is None:
        ours, hint = ("gpus", "give a whole number of GPUs") if gpus is None else ("work", _WORK)
        raise line.fault(ours, hint, f"job {name} has no value here")
    weight = line.number_of("weight", over=True, hint="give a weight above 0, or leave it out")
    earliest = max(start_ms, start_ms if at is None else at)
    if end is not None and at is not None and end <= at:
        raise line.fault("deadline", "give a deadline after the time the job may start",
                         f"job {name} is due at {utc(end):%Y-%m-%d %H:%M}, before it may start")  # fmt: skip
    if end is not None and end <= earliest:
        raise line.fault("deadline", "move the deadline, leave the job out, or give an earlier start",
                         f"the deadline of job {name} ({utc(end):%Y-%m-%d %H:%M} UTC) is already past when the plan"
                         f" starts ({utc(start_ms):%Y-%m-%d %H:%M} UTC)")  # fmt: skip
    return Job(
        id=name, gpus=gpus, work_ms=work, earliest_ms=earliest,
        deadline_ms=end if end is not None else earliest + work + wait_ms,
        types=tuple(t for t in (part.strip(" '\"[]") for part in _split(line.text("types"))) if t),
        preemptible=line.yes("preemptible"), weight=1.0 if weight is None else weight, due=end is not None,
    )  # fmt: skip


def _split(text: str) -> list[str]:
    for mark in ";|":
        text = text.replace(mark, ",")
    return [] if text.casefold() in {"any", "all", "*"} else text.split(",")


def _unique(path: str, jobs: Sequence[Job]) -> None:
    twice = [name for name, n in Counter(job.id for job in jobs).items() if n > 1]
    if twice:
        raise FileFault(
            path, f"{count(len(twice), 'job id is', 'job ids are')} there more than once: {each(twice)}",
            hint="give each job an id of its own",
        )  # fmt: skip


def check_jobs(jobs: Sequence[Job]) -> None:
    """Refuse what jobs made in Python may have wrong."""
    if not jobs:
        raise InputError("the list of jobs is empty", hint="give at least one job")
    for job in jobs:
        if job.gpus < 1 or job.work_ms < 1 or not job.weight > 0:
            raise InputError(f"job {job.id} has {job.gpus} GPUs for {job.work_ms} ms", hint="give both above 0")
