"""How do tables of jobs get into the lake, all of a file or nothing, and what is reported about them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpuledger.errors import InputError
from gpuledger.lake.jobs.claims import Claim, order_of, settled
from gpuledger.lake.jobs.lists import PodList, joined_lists, judged
from gpuledger.lake.jobs.reading import read_jobs
from gpuledger.lake.jobs.store import read_claims, read_lists, read_manifest, write_claims
from gpuledger.lake.jobs.tables import Found, Kind, Skipped, Why
from gpuledger.lake.layout import Lake
from gpuledger.lake.rejects import Rejects
from gpuledger.times import Instant, instant_ms
from gpuledger.units import count, some, utc

_SKIPPED = {
    Skipped.never_started: "never started",
    Skipped.no_gpus: "held no GPU",
    Skipped.no_time: "ended as they started",
    Skipped.mig_slices: "held MIG slices, and the file does not show which: their time keeps its own labels",
    Skipped.gpu_shares: "shared GPUs or held partitions, and the file does not show which: their time keeps its own"
    " labels",
}
_SPANS = 3
_TIME_IT = (
    "write into each list when it was taken (jq '.taken_at = (now | todate)'), or add each with gpuledger jobs --taken"
)
_UNTIMED = f"a list that does not show when it was taken counts up to the newest time in it: {_TIME_IT}; "
_END_IT = "to end a pod at its exact time, add a CSV of pod, namespace, host, start and end"


@dataclass
class JobsResult:
    """What adding job tables did. `claims`: one for each job and GPU, or host where the GPU is not named."""

    files: int = 0
    rows_read: int = 0
    jobs: int = 0
    jobs_running: int = 0
    pods_unsure: int = 0
    claims_new: int = 0
    claims: int = 0
    rows_rejected: int = 0
    rejects: dict[str, int] = field(default_factory=dict)
    rejects_file: str | None = None
    examples: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    days: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def add_jobs(
    lake: Lake, paths: Iterable[str | Path], *, zone: str | None = None, taken: Instant | None = None
) -> JobsResult:
    """Add job tables to a lake; days whose owners change are posted again when a statement is next made.

    `taken`: when the only list of pods among them was. Adding a table twice changes nothing. A file that cannot be read
    stops it and leaves the lake as it was.
    """
    files = [Path(p) for p in paths]
    if not files:
        raise InputError("no job table was given", hint="name the output of sacct or kubectl, or a CSV file of jobs")
    taken_ms = None if taken is None else instant_ms(taken)
    result, found = JobsResult(), [(f, read_jobs(f, zone, taken_ms)) for f in files]
    if taken is not None and sum(one.kind is Kind.PODS for _, one in found) != 1:
        raise InputError("a time was given, and not exactly one list of pods", hint="add the list it belongs to alone")
    for path, one in found:
        _note(result, path, one)
    with lake.locked():
        before, lists = read_claims(lake), read_lists(lake)
        known = joined_lists([*lists, *(one.listed for _, one in found if one.listed is not None)])
        merged, torn = settled([*before, *_fresh([one for _, one in found], lists)])
        merged = judged(merged, known)
        was = read_manifest(lake)
        now = write_claims(lake, merged, known) if (merged, known) != (before, lists) else was
        _keep_rejects(lake, found, result)
    result.claims = len(merged)
    result.claims_new = len({_unseen(c) for c in merged} - {_unseen(c) for c in before})
    result.days = [
        day for day in (lake.manifest().days() if lake.exists() else []) if was.of_day(day) != now.of_day(day)
    ]
    if torn:
        names = _named(torn)
        result.notes.append(
            f"jobs that two rows give different owners for: {names}; of two names the later in the alphabet is used."
            " Check the tables"
        )
    new = sorted(set(merged) - set(before), key=order_of)
    _note_pods(result, new, known)
    for path, one in found:
        _note_narrow(result, path, one, new)
    result.pods_unsure = len({(c.identity, c.start_ms) for c in merged if c.sure_ms is not None})
    return result


def _unseen(claim: Claim) -> Claim:
    """What a claim means, without the lists it is in."""
    return claim if claim.seen_ms is None else msgspec.structs.replace(claim, seen_ms=None, seen_in=0)


def _fresh(found: Sequence[Found], before: Sequence[PodList]) -> list[Claim]:
    """The claims of files; those of pods with when they were seen. A list counts once, however often it is added."""
    counted, out = {one.id for one in before}, list[Claim]()
    for one in found:
        seen_ms, seen_in = one.seen_ms, 0
        if one.listed is not None:
            seen_ms, seen_in = one.listed.at_ms, int(one.listed.id not in counted)
            counted.add(one.listed.id)
        if seen_ms is None:
            out += one.claims
        else:
            once = settled(one.claims)[0]
            out += [msgspec.structs.replace(claim, seen_ms=seen_ms, seen_in=seen_in) for claim in once]
    return out


def _note_pods(result: JobsResult, claims: Iterable[Claim], lists: Sequence[PodList]) -> None:
    """Report pods without an end that are new, or of which something else is known now."""
    out, pods = (
        result.notes,
        {(c.identity, c.start_ms): c for c in claims if c.seen_ms is not None and c.end_ms is None},
    )
    gone = [c for c in pods.values() if c.gone_ms is not None]
    doubted = [c for c in pods.values() if c.gone_ms is None and c.sure_ms is not None]
    running = [c for c in pods.values() if c.sure_ms is None]
    if gone:
        spans = ", ".join(f"{c.name} between {_when(c.sure_ms)} and {_when(c.gone_ms)}" for c in gone[:_SPANS])
        out.append(
            f"{count(len(gone), 'pod')} ended between two lists ({spans}{', ...' * (len(gone) > _SPANS)}): GPU time"
            f" between the two is booked as unknown; {_UNTIMED if any(not one.exact for one in lists) else ''}{_END_IT}"
        )
    if doubted:
        spans = ", ".join(f"{c.name} after {_when(c.sure_ms)}" for c in doubted[:_SPANS])
        out.append(
            f"{count(len(doubted), 'pod')} may have ended ({spans}{', ...' * (len(doubted) > _SPANS)}), as a list"
            " without them may be newer than the last one with them: that time is booked as unknown; list the pods of"
            f" all namespaces without a selector, and {_TIME_IT}"
        )
    result.jobs_running += len(running)
    if running:
        one = len(running) == 1
        out.append(
            f"{count(len(running), 'pod')} without an end count{'s' * one} as still running ({_named(running)}); add a"
            f" newer list of all pods: it ends those that it lacks; {_END_IT}"
        )


def _note_narrow(result: JobsResult, path: Path, found: Found, new: Iterable[Claim]) -> None:
    """Report pods that a list ended, and that it may lack because only pods with some label were asked for."""
    ended = [c for c in new if found.listed is not None and c.end_ms is None and c.gone_ms == found.listed.at_ms]
    if ended and found.common:
        result.notes.append(
            f"{path.name}: all of its pods have the label {some(found.common)}: if it was narrowed by -l, pods that it"
            f" lacks ({_named(ended)}) did not end there, and their later time has no owner. Add a list without a"
            " selector: kubectl get pods -A -o json"
        )


def _when(at_ms: int | None) -> str:
    return "" if at_ms is None else f"{utc(at_ms):%Y-%m-%d %H:%M:%S}Z"


def _note(result: JobsResult, path: Path, found: Found) -> None:
    result.files += 1
    result.rows_read += found.rows
    result.jobs += len({c.identity for c in found.claims})
    running = {c.identity: c for c in found.claims if c.end_ms is None}
    result.jobs_running += 0 if found.kind is Kind.PODS else len(running)
    result.notes.append(f"{path.name}: read as {found.kind.value}")
    for why, jobs in found.skipped.items():
        result.skipped[why.value] = result.skipped.get(why.value, 0) + jobs
        result.notes.append(f"{path.name}: {count(jobs, 'job')} left out: {_SKIPPED[why]}")
    if running and found.kind is not Kind.PODS:
        one = len(running) == 1
        words = f"{len(running)} job{' has' if one else 's have'} no end and count{'s' * one} as still running"
        later = f"add a newer table once {'it has' if one else 'they have'} ended"
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
