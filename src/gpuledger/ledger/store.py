"""Where do the lines rest, which of them are stale, and how are they replaced?

    LAKE/ledger/manifest.json         what was posted: by day, from which parts of the lake, under which rules
    LAKE/ledger/DAY/GENERATION-PIECE.lines.parquet, .spells.parquet, .pods.parquet
                                      .days.parquet: the lines added up over the day, for statements of whole days
                                      .hours.parquet: the lines added up over the devices, for the hours of the fleet
                                      .gpu-hours.parquet: the lines added up over owners and states

A day is posted from its own samples and the first sample of the next. When either gained a part, the devices in that
part are stale on that day. Files are written under a new generation; the manifest that names them is replaced last.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.layout import Lake, Manifest, sync, write_atomically
from gpuledger.lake.parquet_files import ParquetFileWriter, write_parquet
from gpuledger.lake.parts import devices_of
from gpuledger.lake.staging import clear_asides
from gpuledger.ledger import fleet_hours, gpu_hours, lines
from gpuledger.ledger.daily import fold_days
from gpuledger.ledger.jobs.counts import JoinCounts

# 3: lines have NULL for times known that are the time observed (`lines.KNOWN`); older ledgers read the same.
LEDGER_VERSION = 3
# Files that were replaced stay for as long as a statement may take to read them.
GRACE_S = 600
GROUP_ROWS = 1 << 15
TABLES = ("lines", "spells", "pods")
DAYS = "days"
HOURS = "hours"
GPU_HOURS = "gpu-hours"
_WRITTEN = (*TABLES, DAYS, GPU_HOURS)


class PostedDay(msgspec.Struct, frozen=True):
    """One day of the books: the parts it rests on (its own and the next day's), its counts, its rules.

    `jobs`: the fingerprint of the job tables it was posted with; `joined`: what they said of its samples.
    """

    day: str
    generation: int
    parts: tuple[int, ...]
    next_parts: tuple[int, ...]
    samples: int
    conflicts: int
    rules: str = ""
    folded: bool = False
    samples_kept: bool = True
    pieces: int = 1
    daily: bool = False
    hourly: bool = False
    jobs: str = ""
    joined: JoinCounts | None = None
    by_gpu: bool = False

    def written(self, pieces: int) -> PostedDay:
        """The day with its files as `DayWriter` writes them, in a number of pieces."""
        return msgspec.structs.replace(self, pieces=pieces, daily=True, hourly=True, by_gpu=True)


class LedgerManifest(msgspec.Struct, frozen=True):
    """What was posted."""

    version: int = LEDGER_VERSION
    days: tuple[PostedDay, ...] = ()

    def get(self, day: str) -> PostedDay | None:
        """One day, if posted."""
        return next((d for d in self.days if d.day == day), None)


@contextlib.contextmanager
def writing(lake: Lake) -> Iterator[None]:
    """Errors of the operating system while the books are written, in our words."""
    try:
        yield
    except OSError as error:
        raise map_os_error(error, lake.ledger_dir, "write the ledger") from error


class Ledger:
    """The books of a lake."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.root = lake.ledger_dir

    def manifest(self) -> LedgerManifest:
        """The books as last committed."""
        try:
            raw = (self.root / "manifest.json").read_bytes()
        except FileNotFoundError:
            closed = self.lake.manifest().closed_before
            if any(day.name < closed for day in self.root.glob("*-*-*") if day.is_dir()):
                raise LakeError(f"{self.root}: its manifest is missing", hint=self.way_out()) from None
            return LedgerManifest()
        try:
            manifest = msgspec.json.decode(raw, type=LedgerManifest)
        except msgspec.DecodeError as error:
            raise LakeError(f"{self.root}: its manifest is broken: {error}", hint=self.way_out()) from error
        if manifest.version > LEDGER_VERSION:
            raise LakeError(f"{self.root}: written by a newer gpuledger", hint="upgrade gpuledger")
        return manifest

    def file(self, day: str, generation: int, table: str, piece: int = 0) -> Path:
        """One table of one day, or a piece of it: a day may have been posted by several processes."""
        return self.root / day / f"{generation:06d}-{piece:03d}.{table}.parquet"

    def files_of(self, posted: PostedDay, table: str) -> list[Path]:
        """The files of one table of one day."""
        return [self.file(posted.day, posted.generation, table, piece) for piece in range(posted.pieces)]

    def files(self, table: str, days: tuple[str, str] | None = None) -> list[str]:
        """The files of one table, of all days or those within [first, last]."""
        posted = self.manifest().days
        wanted = [d for d in posted if days is None or days[0] <= d.day <= days[1]]
        return [str(f) for d in sorted(wanted, key=lambda d: d.day) for f in self.files_of(d, table)]

    def way_out(self) -> str:
        """What to do about a ledger that cannot be read."""
        if self._samples_gone():
            return (
                "run it again if samples were just posted; else restore the ledger folder from a backup: samples of "
                "some of its days were deleted, so it cannot be made again from the lake"
            )
        return "run it again if samples were just posted; else delete the ledger folder: it is made again"

    def _samples_gone(self) -> bool:
        """Whether days were posted whose samples are gone, or may be: then the lines are the only copy."""
        try:
            kept = msgspec.json.decode((self.root / "manifest.json").read_bytes(), type=LedgerManifest)
            return any(not d.samples_kept for d in kept.days)
        except (OSError, msgspec.DecodeError):
            days = {p.name for p in self.root.glob("*-*-*") if p.is_dir()}
            return not days <= set(self.lake.manifest().days())

    def read(self, table: str, day: str) -> pa.Table:
        """One table of one day."""
        posted = self.manifest().get(day)
        if posted is None:
            raise LakeError(
                f"{self.root}: {day} is not posted", hint="run gpuledger analyze, which posts what is missing"
            )
        found = pa.concat_tables(pq.read_table(f, partitioning=None) for f in self.files_of(posted, table))
        return lines.as_now(found) if table == "lines" else found

    def put(self, posted: PostedDay, tables: dict[str, pa.Table]) -> None:
        """Replace one day by these tables; without tables, only what is said of it. Call inside the lake's lock."""
        if tables:
            posted = posted.written(1)
            with DayWriter(self, posted.day, posted.generation) as writer:
                for name, table in tables.items():
                    writer.add(name, table)
        self.commit(posted)

    def commit(self, posted: PostedDay) -> None:
        """Make a day's files, already written, part of the books. Call inside the lake's lock."""
        keep = [d for d in self.manifest().days if d.day != posted.day]
        after = LedgerManifest(LEDGER_VERSION, tuple(sorted([*keep, posted], key=lambda d: d.day)))
        clear_asides(self.root / "manifest.json")
        write_atomically(self.root / "manifest.json", msgspec.json.format(msgspec.json.encode(after), indent=1))
        self.sweep(posted)

    def sweep(self, posted: PostedDay) -> None:
        """Delete files of a day that were replaced long enough ago for no reader to be at them."""
        written: dict[int, list[Path]] = {}
        for file in (self.root / posted.day).glob("*.parquet"):
            number = file.name.split("-")[0]
            if number.isdecimal() and file.is_file() and not file.is_symlink():
                written.setdefault(int(number), []).append(file)
        now = replaced_at = time.time()
        for generation in sorted(written, reverse=True):
            made_at = min(file.stat().st_mtime for file in written[generation])
            if generation < posted.generation and now - replaced_at > GRACE_S:
                for file in written[generation]:
                    file.unlink(missing_ok=True)
            replaced_at = made_at


class DayWriter:
    """Writes the tables of one day a piece at a time, so that a day never has to be in memory whole."""

    def __init__(
        self, ledger: Ledger, day: str, generation: int, piece: int = 0, without: frozenset[str] = frozenset()
    ) -> None:
        """`without`: columns of lines that are zero throughout; readers take what a file lacks as zero."""
        self._without = without
        self._files = {name: ledger.file(day, generation, name, piece) for name in _WRITTEN}
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in _WRITTEN}
        self._writers: dict[str, ParquetFileWriter] = {}
        self._hours_file = ledger.file(day, generation, HOURS, piece)
        self._hours: list[pa.Table] = []
        self.samples = 0

    def __enter__(self) -> DayWriter:
        next(iter(self._files.values())).parent.mkdir(parents=True, exist_ok=True)
        return self

    def add(self, name: str, table: pa.Table) -> None:
        """Take some rows; they come in order of device."""
        if name == "lines":
            table = lines.coded(table)
            self.samples += int(pc.sum(table["samples"]).as_py() or 0)
            self.add(DAYS, fold_days(table))
            self.add(GPU_HOURS, gpu_hours.of_lines(table))
        waiting = self._waiting[name]
        waiting.append(table)
        if name not in self._writers or sum(t.num_rows for t in waiting) >= GROUP_ROWS:
            self._flush(name)

    def _flush(self, name: str) -> None:
        tables = self._waiting[name]
        rests = name not in self._writers and sum(t.num_rows for t in tables) < GROUP_ROWS
        if name == "lines" and not rests:
            self._hours.append(fleet_hours.of_lines(pa.concat_tables(tables)))
        if name in ("lines", DAYS, GPU_HOURS):
            tables = [lines.as_written(t, self._without) for t in tables]
        table = pa.concat_tables(tables).unify_dictionaries()
        if name not in self._writers:
            labels = [f.name for f in table.schema if not pa.types.is_int64(f.type)]
            stats = [n for n in ("hour_ms", "start_ms", "gpu_uuid") if n in table.column_names]
            self._writers[name] = ParquetFileWriter(
                self._files[name],
                table.schema,
                compression="lz4",  # bytes split by place shrink about as well as under zstd, in a third of the time
                use_dictionary=labels,
                column_encoding={n: "BYTE_STREAM_SPLIT" for n in table.column_names if n not in labels},
                write_statistics=stats,
                store_schema=False,  # labels come dictionary-coded or plain and read back as plain text
                write_batch_size=GROUP_ROWS,  # a thousand at a time, as is usual, takes a fifth longer
            )
            if rests:
                return  # opened so that even an empty table has a file; its rows wait for more
        self._writers[name].write_table(table, row_group_size=max(table.num_rows, 1))
        self._waiting[name] = []

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._writers.clear()
            return
        for name, writer in self._writers.items():
            if any(t.num_rows for t in self._waiting[name]):
                self._flush(name)
            writer.close()
            sync(self._files[name])
        if "lines" in self._writers:
            hours = self._hours or [fleet_hours.of_lines(lines.coded_schema().empty_table())]
            found = fleet_hours.together(pa.concat_tables(hours))
            write_parquet(fleet_hours.as_written(found), self._hours_file, compression="lz4", store_schema=False)
            sync(self._hours_file)


def part_ids(manifest: Manifest, day: str) -> tuple[int, ...]:
    """The parts a day's samples came in, looking through merges."""
    return tuple(sorted({i for p in manifest.of_day(day) for i in (p.made_of or (p.id,))}))


def stale_devices(lake: Lake, manifest: Manifest, posted: PostedDay | None, day: str, after: str) -> set[str] | None:
    """The devices of a day whose lines must be posted again; None means all of them, empty means none."""
    if posted is None:
        return None
    fresh = set(part_ids(manifest, day)) - set(posted.parts)
    fresh_next = set(part_ids(manifest, after)) - set(posted.next_parts)
    stale: set[str] = set()
    for part in (*manifest.of_day(day), *manifest.of_day(after)):
        wanted = fresh if part.day == day else fresh_next
        if not wanted:
            continue
        if part.made_of and not wanted.issuperset(part.made_of):
            return None  # merged with older samples: which devices were new is no longer known
        if part.id in wanted or wanted.intersection(part.made_of):
            stale |= devices_of(lake.path(part))
    return stale
