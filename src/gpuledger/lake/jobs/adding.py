"""How do tables of jobs get into the lake, all of a file or nothing, and what is reported about them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger.errors import InputError
from gpuledger.lake.jobs.claims import Claim, settled
from gpuledger.lake.jobs.reading import read_jobs
from gpuledger.lake.jobs.store import read_claims, read_manifest, write_claims
from gpuledger.lake.jobs.tables import Found, Kind, Skipped, Why
from gpuledger.lake.layout import Lake
from gpuledger.lake.rejects import Rejects
from gpuledger.units import some

_SKIPPED = {
    Skipped.never_started: "never started",
    Skipped.no_gpus: "held no GPU",
    Skipped.no_time: "ended as they started",
    Skipped.mig_slices: "held MIG slices, and the file does not show which: their time keeps its own labels",
    Skipped.gpu_shares: "shared GPUs or held partitions, and the file does not show which: their time keeps its own"
    " labels",
}


@dataclass
class JobsResult:
    """What adding job tables did. `claims`: one for each job and GPU, or host where the GPU is not named."""

    files: int = 0
    rows_read: int = 0
    jobs: int = 0
    jobs_running: int = 0
    claims_new: int = 0
    claims: int = 0
    rows_rejected: int = 0
    rejects: dict[str, int] = field(default_factory=dict)
    rejects_file: str | None = None
    examples: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    days: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def add_jobs(lake: Lake, paths: Iterable[str | Path], *, zone: str | None = None) -> JobsResult:
    """Add job tables to a lake; days whose owners change are posted again when a statement is next made.

    Adding a table twice changes nothing. A file that cannot be read stops it and leaves the lake as it was.
    """
    files = [Path(p) for p in paths]
    if not files:
        raise InputError("no job table was given", hint="name the output of sacct or kubectl, or a CSV file of jobs")
    result, found = JobsResult(), [(f, read_jobs(f, zone)) for f in files]
    for path, one in found:
        _note(result, path, one)
    fresh = [claim for _, one in found for claim in one.claims]
    with lake.locked():
        before = read_claims(lake)
        merged, torn = settled([*before, *fresh])
        was = read_manifest(lake)
        now = write_claims(lake, merged) if merged != before else was
        _keep_rejects(lake, found, result)
    result.claims = len(merged)
    result.claims_new = len(set(merged) - set(before))
    result.days = [
        day for day in (lake.manifest().days() if lake.exists() else []) if was.of_day(day) != now.of_day(day)
    ]
    if torn:
        names = _named(torn)
        result.notes.append(
            f"jobs that two rows give different owners for: {names}; of two names the later in the alphabet is used."
            " Check the tables"
        )
    return result


def _note(result: JobsResult, path: Path, found: Found) -> None:
    result.files += 1
    result.rows_read += found.rows
    result.jobs += len({c.identity for c in found.claims})
    running = {c.identity: c for c in found.claims if c.end_ms is None}
    result.jobs_running += len(running)
    result.notes.append(f"{path.name}: read as {found.kind.value}")
    for why, count in found.skipped.items():
        result.skipped[why.value] = result.skipped.get(why.value, 0) + count
        result.notes.append(f"{path.name}: {count} job{'s' * (count != 1)} left out: {_SKIPPED[why]}")
    if running:
        one = len(running) == 1
        words = f"{len(running)} job{' has' if one else 's have'} no end and count{'s' * one} as still running"
        later = f"add a newer table once {'it has' if one else 'they have'} ended"
        if found.kind is Kind.PODS:
            later = (
                "a pod that is deleted is in no later list: end it with a CSV of pod, namespace, host, start and end"
            )
        result.notes.append(f"{path.name}: {words} ({_named(running.values())}); {later}")
    if times := sum(why in (Why.ambiguous_local_time, Why.impossible_local_time) for _, why, _, _ in found.rejected):
        result.notes.append(
            f"{path.name}: {times} time{'s fall' if times != 1 else ' falls'} into an hour that clocks repeat or skip;"
            " write times in UTC"
        )


def _named(claims: Iterable[Claim]) -> str:
    return some(list(dict.fromkeys(c.name for c in claims if c.name)), 4)


def _keep_rejects(lake: Lake, found: Sequence[tuple[Path, Found]], result: JobsResult) -> None:
    """Write the rows that cannot be used to a file of rejects, and count them by reason."""
    counts = Counter(why.value for _, one in found for _, why, _, _ in one.rejected)
    if not counts:
        return
    with lake.staging() as aside:
        rejects = Rejects(aside / "jobs.csv")
        for path, one in found:
            for row, why, column, value in one.rejected:
                rejects.add(str(path), row, why.value, column, value)
        rejects.flush()
        number = 1
        while (target := lake.root / "rejects" / f"jobs-{number:08d}.csv").exists():
            number += 1
        lake.store.add([(rejects.file, target)])
    result.rows_rejected, result.rejects = rejects.total, dict(sorted(counts.items()))
    result.rejects_file, result.examples = str(target), rejects.examples
