"""How do files become lines without samples being kept?

A statement over a file needs its lines, not a lake of its samples. The files are read as for an import; then each share
of the devices is posted day by day as it is put in order, and nothing but the books is written.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.collector import collector_paused
from gpuledger.lake.by_day import (
    MEMORY_BYTES,
    ByDay,
    Finished,
    Group,
    Handing,
    all_days,
    finishable,
    next_to_others,
    take_by_day,
)
from gpuledger.lake.engines.engine import everywhere
from gpuledger.lake.host_names import ByDevice, add_neighbors, neighbors_of, refuse_two
from gpuledger.lake.importing import Import, ImportResult, in_its_zone
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import first_of
from gpuledger.lake.processes import Progress
from gpuledger.lake.rows import drop_repeats, without_conflicts
from gpuledger.lake.sharing import note as apart_note
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.runs import Handed
from gpuledger.lake.taking import Piece, Reading, Taker
from gpuledger.ledger.day_writer import TABLES, DayWriter
from gpuledger.ledger.facts import rules_of_the_moment
from gpuledger.ledger.measures import unrecorded
from gpuledger.ledger.posting import COLUMNS, empty_tables, post
from gpuledger.ledger.spans import Edge
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.units import MS_PER_DAY, utc_day

_ROWS = 1 << 19
# What an efficiency statement of all owners does without: tables by owner, and where GPUs stand.
BY_OWNER = frozenset({"lines", "pods", "region", "node_group"})


class GroupTask(msgspec.Struct, frozen=True):
    """Pieces of files to take, by falling time, and the days to post once they are complete.

    `firsts_of`: days whose first samples others need to know. `others_from_ms`: by day the instant from which on others
    may have samples of the day after.
    """

    lake: str
    folder: str
    pieces: list[Piece]
    days: list[int]
    handing: Handing
    firsts_of: list[int]
    others_from_ms: dict[int, int]
    reading: Reading
    limits: Thresholds
    left_out: frozenset[str]
    memory_bytes: int


Firsts = dict[int, dict[str, Edge]]


class SharePosted(msgspec.Struct, frozen=True):
    """By day how many samples lines stand for, and how many rows contradict each other; rows that came twice; instants
    at which rows of a shared GPU had different readings; the neighbors of devices whose rows name several hosts.
    """

    samples: dict[int, int]
    conflicts: dict[int, int]
    duplicates: int
    apart: int
    neighbors: ByDevice


class GroupPosted(Finished, frozen=True, kw_only=True):
    """What became of a group of pieces. `firsts`: by day the first sample of each device."""

    posted: SharePosted
    firsts: Firsts


class ShareTask(msgspec.Struct, frozen=True):
    """Devices to post, from the first to the last: the `piece`th share of them. `firsts`: of days posted before."""

    lake: str
    folder: str
    first: str
    last: str
    days: list[int]
    piece: int
    limits: Thresholds
    left_out: frozenset[str]
    said: list[str]
    firsts: Firsts
    handed: Handed | None = None


def post_files(
    lake: Lake,
    files: Sequence[str | Path],
    limits: Thresholds,
    reading: Reading | None = None,
    progress: Progress = lambda _stage, _rows: None,
    processes: int | None = None,
    left_out: frozenset[str] = frozenset(),
) -> ImportResult:
    """Make the books of some files in a lake that has no samples. `left_out`: tables and labels nobody will read."""
    only = tuple(column for column in COLUMNS if column not in left_out)

    def run(wanted: Reading) -> ImportResult:
        with lake.staging() as folder, Import(lake, folder, wanted, progress, processes) as job:
            job.may_look_east = True
            return _post(job, lake, files, limits, left_out)

    return in_its_zone(run, msgspec.structs.replace(reading or Reading(), only=only))


def _post(
    job: Import, lake: Lake, files: Sequence[str | Path], limits: Thresholds, left_out: frozenset[str]
) -> ImportResult:
    """Take the files of an import and post them."""
    early = job.take(files, ByDay(partial(_group_task, job, limits, left_out), post_group))
    left = job.sorter.days()
    rows = sum(job.sorter.rows_of_days().values())
    firsts = {day: firsts for group in early for day, firsts in group.firsts.items()}
    late = _posted(job, limits, left, firsts, left_out, job.at_once(rows)) if left else []
    done = [*(group.posted for group in early), *late]
    refuse_two(posted.neighbors for posted in done)
    days = sorted({*left, *(day for group in early for day in group.posted.samples)})
    with lake.locked():
        lake.commit([])
        _commit(lake, limits, [group.posted for group in early], late)
    job.rejects.flush()
    result = job.result
    result.rows_rejected, result.rejects = job.rejects.total, dict(sorted(job.rejects.counts.items()))
    result.examples, result.days = job.rejects.examples, [utc_day(d * MS_PER_DAY) for d in days]
    result.rows_duplicate = job.sorter.repeats + sum(d.duplicates for d in done)
    result.rows_added = sum(sum(d.samples.values()) for d in done)
    if conflicts := sum(sum(d.conflicts.values()) for d in done):
        result.notes.append(f"{conflicts} rows contradict others of the same GPU and instant and were left out")
    result.notes += apart_note(sum(d.apart for d in done))
    return result


def _group_task(
    job: Import, limits: Thresholds, left_out: frozenset[str], group: Group, groups: Sequence[Group]
) -> GroupTask:
    where = everywhere(job.lake.root), everywhere(job.folder)
    others = next_to_others(group, groups)
    days = [*others, *finishable(group, all_days(groups))]
    asked, memory = [day for day in days if day - 1 not in days], MEMORY_BYTES // len(groups)
    handing = group.handing(where[1])
    return GroupTask(*where, group.pieces, days, handing, asked, others, job.reading, limits, left_out, memory)


@collector_paused()
def post_group(task: GroupTask, progress: Progress) -> GroupPosted:
    """Take pieces of files by falling time; each day is posted as soon as all of its rows are there."""
    folder = Path(tempfile.mkdtemp(prefix="group-", dir=task.folder))
    sorter = DaySorter(folder, memory_bytes=task.memory_bytes, numbered=False)
    taker, poster = Taker(sorter, task.reading, progress), _Poster(task, progress)
    samples, firsts = dict[int, int](), Firsts()

    def finish(day: int) -> bool:
        if day + 1 not in firsts:
            firsts[day + 1] = _first_samples(sorter, day + 1)
        if day in task.others_from_ms:
            before = {name for name, first in firsts[day + 1].items() if first.at_ms < task.others_from_ms[day]}
            if not sorter.devices_on(day) <= before:
                return False  # others may have the next sample: it is posted when all rows are taken
        firsts[day], without = {}, unrecorded(frozenset(sorter.spoken()))
        if sorter.holds(day):
            with _day_writer(task, day, 0, without) as writer:
                for table in sorter.chunks(day):
                    firsts[day] |= poster.post(writer, day, table, firsts[day + 1])
                    del table
            samples[day] = writer.samples
            sorter.drop(day)
        if day + 1 not in task.firsts_of:
            del firsts[day + 1]
        return True

    taken, finished = take_by_day(task.pieces, task.days, task.handing, sorter, taker, folder, finish)
    asked = {day: firsts[day] for day in task.firsts_of if day in firsts}
    posted = SharePosted(samples, poster.conflicts, poster.duplicates, poster.apart, poster.neighbors)
    return GroupPosted(taken=taken, finished=finished, handed=sorter.hand_over(), posted=posted, firsts=asked)


def _first_samples(sorter: DaySorter, day: int) -> dict[str, Edge]:
    """The first sample of each device on a day that is posted elsewhere."""
    found = dict[str, Edge]()
    for table in sorter.chunks(day):
        found |= _edges(without_conflicts(drop_repeats(table))[0])
        del table
    return found


def _edges(kept: pa.Table) -> dict[str, Edge]:
    return {device: Edge(at, known) for device, (at, known) in first_of(kept).items()}


@contextmanager
def _day_writer(task: GroupTask | ShareTask, day: int, piece: int, without: frozenset[str]) -> Iterator[DayWriter]:
    ledger, name = Ledger(Lake(task.lake)), utc_day(day * MS_PER_DAY)
    with DayWriter(ledger, name, 1, piece, without, lasting=False, left_out=task.left_out) as writer:
        for name, empty in empty_tables().items():
            writer.add(name, empty)
        yield writer


class _Poster:
    """Posts rows in order; counts rows that came twice, and by day those that contradict each other."""

    def __init__(self, task: GroupTask | ShareTask, progress: Progress) -> None:
        self._limits, self._pods, self._progress = task.limits, "pods" not in task.left_out, progress
        self.conflicts: dict[int, int] = defaultdict(int)
        self.duplicates = self.apart = 0
        self.neighbors: ByDevice = {}

    def post(self, writer: DayWriter, day: int, table: pa.Table, edges: dict[str, Edge]) -> dict[str, Edge]:
        """Post rows of whole devices on a day; the first sample of each of them."""
        rows = drop_repeats(table)
        self.duplicates += table.num_rows - rows.num_rows
        add_neighbors(self.neighbors, neighbors_of(rows))
        kept, left_out, apart = without_conflicts(rows)
        self.conflicts[day] += left_out
        self.apart += apart
        made = post(kept, self._limits, edges, pods=self._pods)
        for name in TABLES:
            writer.add(name, getattr(made, name))
        self._progress("post", table.num_rows)
        return _edges(kept)


def _posted(
    job: Import, limits: Thresholds, days: list[int], firsts: Firsts, left_out: frozenset[str], several: int
) -> list[SharePosted]:
    sorter, where = job.sorter, (everywhere(job.lake.root), everywhere(job.folder))
    said = sorted(sorter.spoken())
    shares = sorter.devices(several) if several > 1 else [("", "\U0010ffff")]
    tasks = [
        ShareTask(*where, first, last, days, n, limits, left_out, said, firsts)
        for n, (first, last) in enumerate(shares)
    ]
    if several <= 1:
        return [_post_share(sorter, task, job.progress) for task in tasks]
    sorter.hand_over()
    tasks = [msgspec.structs.replace(t, handed=sorter.of_devices(t.first, t.last)) for t in tasks]
    return job.share_out(post_share, tasks)


@collector_paused()
def post_share(task: ShareTask, progress: Progress) -> SharePosted:
    """Post a share of the devices in a process of its own."""
    sorter = DaySorter(Path(task.folder))
    assert task.handed is not None
    sorter.take_over(task.handed)
    return _post_share(sorter, task, progress)


def _post_share(sorter: DaySorter, task: ShareTask, progress: Progress) -> SharePosted:
    without, poster = unrecorded(frozenset(task.said)), _Poster(task, progress)
    with ExitStack() as stack:
        writers = {day: stack.enter_context(_day_writer(task, day, task.piece, without)) for day in task.days}
        for history in sorter.histories(task.first, task.last, _ROWS):
            later, edges = -1, dict[str, Edge]()
            for day, table in history:
                known = edges if later == day + 1 else task.firsts.get(day + 1, {})
                edges, later = poster.post(writers[day], day, table, known), day
    samples = {day: writer.samples for day, writer in writers.items()}
    return SharePosted(samples, poster.conflicts, poster.duplicates, poster.apart, poster.neighbors)


def _commit(lake: Lake, limits: Thresholds, early: Sequence[SharePosted], late: Sequence[SharePosted]) -> None:
    """Name all days in the books: those that one process posted, and those that several posted a share of."""
    ledger, rules = Ledger(lake), rules_of_the_moment(limits)
    days = [(day, [group]) for group in early for day in group.samples]
    days += [(day, list(late)) for day in (late[0].samples if late else ())]
    posted = []
    for day, done in days:
        samples, conflicts = sum(d.samples[day] for d in done), sum(d.conflicts.get(day, 0) for d in done)
        noted = PostedDay(
            utc_day(day * MS_PER_DAY), 1, (), (), samples, conflicts, rules, samples_kept=False, temporary=True
        )
        posted.append(noted.written(len(done)))
    ledger.commit(*posted)
