"""How is one day of an import compared with the lake and written?"""

from __future__ import annotations

import secrets
import tempfile
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake import rejects as why
from gpuledger.lake.by_day import Finished, Handing, take_by_day
from gpuledger.lake.handing import desk
from gpuledger.lake.holding import rows_held
from gpuledger.lake.host_names import ByDevice, add_neighbors
from gpuledger.lake.layout import Lake, Part
from gpuledger.lake.manifest import part_name
from gpuledger.lake.parts import PartWriter
from gpuledger.lake.processes import Progress
from gpuledger.lake.rejects import RejectLog, explained_conflicts
from gpuledger.lake.rows import Settled, settle
from gpuledger.lake.sharing import share_readings
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.order import device_codes
from gpuledger.lake.sorting.runs import Handed, moved
from gpuledger.lake.taking import PIECE_BITS, Piece, Reading, Taker
from gpuledger.telemetry import schema


class Place(msgspec.Struct, frozen=True):
    """Where the rows of a piece are from: its file, and how many rows of the file come before it."""

    number: int
    path: str
    before: int


class DayTask(msgspec.Struct, frozen=True):
    """One day to write to a folder: the parts the lake has of it, and where rows are from.

    `number`: in the name of the new part, where a task puts it into a bucket itself.
    """

    lake: str
    folder: str
    day: int
    parts: tuple[Part, ...]
    places: list[Place]
    handed: Handed | None = None
    number: int = 0


class DayWritten(msgspec.Struct, frozen=True):
    """What became of the rows of a day. `rejects`: the log of rows that contradict others; `apart`: instants at which
    rows of a shared GPU have different readings; `neighbors`: of devices whose rows name several hosts.
    """

    file: str
    part: Part
    added: int
    duplicates: int
    spread: int
    repeats: int
    rejects: str
    apart: int = 0
    neighbors: ByDevice = {}


class GroupTask(msgspec.Struct, frozen=True):
    """Pieces of files to take, by falling time, and the days, new to the lake, to write once they are complete."""

    lake: str
    folder: str
    pieces: list[Piece]
    days: list[int]
    handing: Handing
    places: list[Place]
    reading: Reading
    memory_bytes: int


class GroupWritten(Finished, frozen=True, kw_only=True):
    """What became of a group of pieces: the days that were written."""

    days: list[DayWritten]


def write_group(task: GroupTask, progress: Progress) -> GroupWritten:
    """Take pieces of files by falling time; each day is written as soon as all of its rows are there."""
    folder = Path(tempfile.mkdtemp(prefix="group-", dir=task.folder))
    sorter, days = DaySorter(folder, memory_bytes=task.memory_bytes), list[DayWritten]()
    taker = Taker(sorter, task.reading, progress)

    def finish(day: int) -> bool:
        if sorter.holds(day):
            today = DayTask(task.lake, str(folder), day, (), task.places)
            days.append(write_from(sorter, today, progress))
            sorter.drop(day)
        return True

    taken, finished = take_by_day(task.pieces, task.days, task.handing, sorter, taker, folder, finish)
    return GroupWritten(taken=taken, finished=finished, handed=sorter.hand_over(), days=days)


def write_day(task: DayTask, progress: Progress) -> DayWritten:
    """Write a day in a process of its own, to files of this attempt's own: another may be at the same day."""
    assert task.handed is not None
    with desk(task.folder) as own:
        sorter = DaySorter(own.here)
        sorter.take_over(moved(task.handed, own.fetched))
        here = msgspec.structs.replace(task, folder=str(own.here))
        done = write_from(sorter, here, progress, f"{task.day}-{secrets.token_hex(8)}")
        (log,) = own.hand_over([done.rejects])
        done = msgspec.structs.replace(done, repeats=sorter.repeats, rejects=log)
        return _put(Lake(task.lake), done, task.number) if own.apart and done.part.rows else done


def _put(lake: Lake, done: DayWritten, number: int) -> DayWritten:
    """Put a part into the bucket, where the manifest will name it; the name is this attempt's own."""
    part = msgspec.structs.replace(done.part, file=part_name(number, lake.store.nonce()))
    lake.store.add([(Path(done.file), lake.place(part))])
    return msgspec.structs.replace(done, file=str(lake.place(part)), part=part)


def write_from(sorter: DaySorter, task: DayTask, progress: Progress, name: str = "") -> DayWritten:
    """Write a day that a sorter holds; `name`: of its files, by default that of the day."""
    from concurrent.futures import Future, ThreadPoolExecutor  # long to load, and only imports come here

    lake, file = Lake(task.lake), str(Path(task.folder) / (name or str(task.day)))
    writer = PartWriter(Path(f"{file}.parquet"), task.day, sorter.never_null())
    log = RejectLog(Path(f"{file}.log"))
    places = sorted(task.places, key=lambda p: p.number)
    added = duplicates = spread = apart = 0
    neighbors: ByDevice = {}

    def place_of(arrival: int) -> tuple[str, int]:
        place = places[bisect_right(places, arrival >> PIECE_BITS, key=lambda p: p.number) - 1]
        return place.path, (arrival & ((1 << PIECE_BITS) - 1)) + place.before

    with ThreadPoolExecutor(1) as pool:  # one chunk is encoded while the next is put in order
        writing: Future[None] | None = None
        for chunk in sorter.chunks(task.day):
            settled = _settled(lake, chunk, task.parts)
            for (source, row), words in explained_conflicts(chunk, settled.conflicts, place_of):
                log.add((source, row, why.CONFLICT, "device, time", words))
            added, duplicates = added + settled.added, duplicates + settled.duplicates
            spread, apart = spread + settled.spread, apart + share_readings(settled.table)[1]
            add_neighbors(neighbors, settled.neighbors)
            if writing is not None:
                writing.result()
            writing = pool.submit(writer.add, settled.table)
            progress("write", chunk.num_rows)
            del chunk, settled
        if writing is not None:
            writing.result()
    log.flush()
    return DayWritten(str(writer.file), writer.close(), added, duplicates, spread, 0, str(log.file), apart, neighbors)


def _settled(lake: Lake, chunk: pa.Table, parts: Sequence[Part]) -> Settled:
    """The rows that are new to the lake."""
    _, names = device_codes(chunk)
    span = pc.min_max(chunk[schema.TIME])
    first_ms, last_ms = span["min"].as_py(), span["max"].as_py()
    theirs = [p for p in parts if p.may_hold(names)]
    near = [p for p in theirs if p.first_ms <= last_ms and p.last_ms >= first_ms]
    settled = settle(chunk, rows_held(lake, near, names, first_ms))
    doubt = any(found.in_doubt for found in settled.neighbors.values())
    if theirs and (settled.spread or settled.conflicts.num_rows or doubt):
        # Whether a clock is coarse, and whether rows are of two GPUs, is decided from all rows of the device's day.
        settled = settle(chunk, rows_held(lake, theirs, names))
    return settled
