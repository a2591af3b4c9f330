"""How do files become lines without samples being kept?

A statement over a file needs its lines, not a lake of its samples. The files are read as for an import; then each share
of the devices is posted day by day as it is put in order, and nothing but the books is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.engines.engine import everywhere
from gpuledger.lake.importing import Import, ImportResult, import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import first_of
from gpuledger.lake.processes import Progress
from gpuledger.lake.rows import drop_repeats, without_conflicts
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.runs import Handed
from gpuledger.lake.taking import Reading
from gpuledger.ledger.day_writer import TABLES, DayWriter
from gpuledger.ledger.facts import rules_of_the_moment
from gpuledger.ledger.measures import unrecorded
from gpuledger.ledger.posting import COLUMNS, empty_tables, post
from gpuledger.ledger.spans import Edge
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.units import MS_PER_DAY, utc_day

_ROWS = 1 << 19


class ShareTask(msgspec.Struct, frozen=True):
    """Devices to post, from the first to the last: the `piece`th share of them."""

    lake: str
    folder: str
    first: str
    last: str
    days: list[int]
    piece: int
    limits: Thresholds
    said: list[str]
    handed: Handed | None = None


class SharePosted(msgspec.Struct, frozen=True):
    """By day how many samples lines stand for, and how many rows contradict each other; rows that came twice."""

    samples: dict[int, int]
    conflicts: dict[int, int]
    duplicates: int


class Jobs(msgspec.Struct, frozen=True):
    """Job tables that say who held the GPUs. `zone`: of their times that carry none; None: such a table is refused."""

    tables: tuple[Path, ...] = ()
    zone: str | None = None


NO_JOBS = Jobs()


@contextmanager
def books_of(
    files: Sequence[str | Path],
    limits: Thresholds,
    reading: Reading,
    progress: Progress = lambda _stage, _rows: None,
    *,
    cut: bool = False,
    jobs: Jobs = NO_JOBS,
) -> Iterator[tuple[Lake, ImportResult]]:
    """The books of some files for as long as they are needed, and what reading the files found.

    `cut`: a window will cut hours, which are then posted again from samples, so samples are kept meanwhile. So they are
    with `jobs`: who held a GPU may depend on the others of its host.
    """
    with tempfile.TemporaryDirectory(prefix="gpuledger-") as folder:
        lake = Lake(folder)
        if cut or jobs.tables:
            yield lake, _by_a_lake(lake, files, limits, reading, progress, jobs)
        else:
            yield lake, post_files(lake, files, limits, reading, progress)


def _by_a_lake(
    lake: Lake, files: Sequence[str | Path], limits: Thresholds, reading: Reading, progress: Progress, jobs: Jobs
) -> ImportResult:
    """Import the files and post them as a lake of samples is; what that takes is not loaded before."""
    from gpuledger.lake.jobs.adding import add_jobs
    from gpuledger.lake.jobs.reading import read_jobs
    from gpuledger.ledger.engine import post_lake
    from gpuledger.ledger.jobs.counts import words_of
    from gpuledger.ledger.jobs.joining import owners_of

    for table in jobs.tables:  # before the samples, which may take long
        read_jobs(table, jobs.zone)
    found = import_files(
        lake, files, zone=reading.zone, mapping=reading.mapping, given=reading.given, progress=progress
    )
    added = add_jobs(lake, jobs.tables, zone=jobs.zone) if jobs.tables else None
    post_lake(lake, limits, lambda rows: progress("post", rows))
    found.notes += [] if added is None else [*added.notes, *words_of(owners_of(lake).joined)]
    return found


def post_files(
    lake: Lake,
    files: Sequence[str | Path],
    limits: Thresholds,
    reading: Reading | None = None,
    progress: Progress = lambda _stage, _rows: None,
    processes: int | None = None,
) -> ImportResult:
    """Make the books of some files in a lake that has no samples."""
    wanted = msgspec.structs.replace(reading or Reading(), only=COLUMNS)
    with lake.staging() as folder, Import(lake, folder, wanted, progress, processes) as job:
        job.take(files)
        days = job.sorter.days()
        rows = sum(job.sorter.rows_of_days().values())
        done = _posted(job, limits, days, job.at_once(rows))
        with lake.locked():
            lake.commit([])
            _commit(lake, limits, days, done)
        job.rejects.flush()
        result = job.result
        result.rows_rejected, result.rejects = job.rejects.total, dict(sorted(job.rejects.counts.items()))
        result.examples, result.days = job.rejects.examples, [utc_day(d * MS_PER_DAY) for d in days]
        result.rows_duplicate = job.sorter.repeats + sum(d.duplicates for d in done)
        result.rows_added = sum(sum(d.samples.values()) for d in done)
        if conflicts := sum(sum(d.conflicts.values()) for d in done):
            result.notes.append(f"{conflicts} rows contradict others of the same GPU and instant and were left out")
        return result


def _posted(job: Import, limits: Thresholds, days: list[int], several: int) -> list[SharePosted]:
    sorter, where = job.sorter, (everywhere(job.lake.root), everywhere(job.folder))
    said = sorted(sorter.spoken())
    shares = sorter.devices(several) if several > 1 else [("", "\U0010ffff")]
    tasks = [ShareTask(*where, first, last, days, n, limits, said) for n, (first, last) in enumerate(shares)]
    if several <= 1:
        return [_post_share(sorter, task, job.progress) for task in tasks]
    sorter.hand_over()
    tasks = [msgspec.structs.replace(t, handed=sorter.of_devices(t.first, t.last)) for t in tasks]
    return job.share_out(post_share, tasks)


def post_share(task: ShareTask, progress: Progress) -> SharePosted:
    """Post a share of the devices in a process of its own."""
    sorter = DaySorter(Path(task.folder))
    assert task.handed is not None
    sorter.take_over(task.handed)
    return _post_share(sorter, task, progress)


def _post_share(sorter: DaySorter, task: ShareTask, progress: Progress) -> SharePosted:
    ledger, without = Ledger(Lake(task.lake)), unrecorded(frozenset(task.said))
    conflicts = dict.fromkeys(task.days, 0)
    duplicates = 0
    with ExitStack() as stack:
        writers = {
            day: stack.enter_context(
                DayWriter(ledger, utc_day(day * MS_PER_DAY), 1, task.piece, without, lasting=False)
            )
            for day in task.days
        }
        for writer in writers.values():
            for name, empty in empty_tables().items():
                writer.add(name, empty)
        for history in sorter.histories(task.first, task.last, _ROWS):
            later, edges = -1, dict[str, Edge]()
            for day, table in history:
                rows = drop_repeats(table)
                duplicates += table.num_rows - rows.num_rows
                kept, left_out = without_conflicts(rows)
                conflicts[day] += left_out
                made = post(kept, task.limits, edges if later == day + 1 else {})
                for name in TABLES:
                    writers[day].add(name, getattr(made, name))
                edges, later = {d: Edge(at, known) for d, (at, known) in first_of(kept).items()}, day
                progress("post", table.num_rows)
    return SharePosted({day: w.samples for day, w in writers.items()}, conflicts, duplicates)


def _commit(lake: Lake, limits: Thresholds, days: Sequence[int], done: Sequence[SharePosted]) -> None:
    ledger, rules = Ledger(lake), rules_of_the_moment(limits)
    for day in days:
        samples, conflicts = (sum(part[day] for part in parts) for parts in _columns(done))
        posted = PostedDay(utc_day(day * MS_PER_DAY), 1, (), (), samples, conflicts, rules, samples_kept=False)
        ledger.commit(posted.written(len(done)))


def _columns(done: Sequence[SharePosted]) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    return [d.samples for d in done], [d.conflicts for d in done]
