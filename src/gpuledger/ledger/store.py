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
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.layout import Lake, Manifest
from gpuledger.lake.manifest import is_day
from gpuledger.lake.parts import devices_of
from gpuledger.ledger import lines
from gpuledger.ledger.book_files import LASTING, TEMPORARY, read_book
from gpuledger.ledger.day_writer import ASIDE, DayWriter
from gpuledger.ledger.jobs.counts import JoinCounts

# 3: lines have NULL for times known that are the time observed (`lines.KNOWN`); older ledgers read the same.
LEDGER_VERSION = 3
# Files that were replaced stay for as long as a statement may take to read them.
GRACE_S = 600


class PostedDay(msgspec.Struct, frozen=True):
    """One day of the books: the parts it rests on (its own and the next day's), its counts, its rules.

    `jobs`: the fingerprint of the job tables it was posted with; `joined`: what they said of its samples; `temporary`:
    whether its files are deleted once a statement is made.
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
    temporary: bool = False

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
            if closed and any(day.name < closed for day in self.root.glob("*-*-*") if day.is_dir()):
                raise LakeError(f"{self.root}: its manifest is missing", hint=self.way_out()) from None
            return LedgerManifest()
        try:
            manifest = msgspec.json.decode(raw, type=LedgerManifest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise LakeError(f"{self.root}: its manifest is broken: {error}", hint=self.way_out()) from error
        wrong = [posted.day for posted in manifest.days if not is_day(posted.day)]
        if wrong:
            raise LakeError(f"{self.root}: its manifest is broken: {wrong[0]!r} is not a day", hint=self.way_out())
        if manifest.version > LEDGER_VERSION:
            raise LakeError(f"{self.root}: written by a newer gpuledger", hint="upgrade gpuledger")
        return manifest

    def file(self, day: str, generation: int, table: str, piece: int = 0, kind: str = LASTING) -> Path:
        """One table of one day, or a piece of it: a day may have been posted by several processes."""
        return self.root / day / f"{generation:06d}-{piece:03d}.{table}{kind}"

    def files_of(self, posted: PostedDay, table: str) -> list[Path]:
        """The files of one table of one day, on this machine."""
        return self.lake.store.local(self.places(posted, table))

    def places(self, posted: PostedDay, table: str) -> list[Path]:
        """Where the files of one table of one day are."""
        kind = TEMPORARY if posted.temporary else LASTING
        return [self.file(posted.day, posted.generation, table, piece, kind) for piece in range(posted.pieces)]

    def gather(self, wanted: Iterable[tuple[PostedDay, str]]) -> None:
        """Bring tables of days to this machine, many at once, where they do not lie on it."""
        if self.lake.store.remote:
            self.lake.store.local([place for posted, table in wanted for place in self.places(posted, table)])

    def next_generation(self, before: PostedDay | None) -> int:
        """The generation that replaces a day as posted."""
        return self.lake.store.next_number(before.generation if before else 0)

    def files(self, table: str, days: tuple[str, str] | None = None) -> list[str]:
        """The files of one table, of all days or those within [first, last]."""
        posted = self.manifest().days
        wanted = [d for d in posted if days is None or days[0] <= d.day <= days[1]]
        self.gather((d, table) for d in wanted)
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
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            days = {p.name for p in self.root.glob("*-*-*") if p.is_dir()}
            return not days <= set(self.lake.manifest().days())

    def read(self, table: str, day: str) -> pa.Table:
        """One table of one day."""
        posted = self.manifest().get(day)
        if posted is None:
            raise LakeError(
                f"{self.root}: {day} is not posted", hint="run gpuledger analyze, which posts what is missing"
            )
        found = pa.concat_tables(read_book(f) for f in self.files_of(posted, table))
        return lines.as_now(found) if table == "lines" else found

    def put(self, posted: PostedDay, tables: dict[str, pa.Table]) -> None:
        """Replace one day by these tables; without tables, only what is said of it. Call inside the lake's lock."""
        if tables:
            posted = posted.written(1)
            with DayWriter(self, posted.day, posted.generation) as writer:
                for name, table in tables.items():
                    writer.add(name, table)
        self.commit(posted)

    def commit(self, *posted: PostedDay) -> None:
        """Make the files of days, already written, part of the books. Call inside the lake's lock."""
        fresh = {d.day: d for d in posted}
        days = {d.day: d for d in self.manifest().days} | fresh
        after = LedgerManifest(LEDGER_VERSION, tuple(days[day] for day in sorted(days)))
        content = msgspec.json.format(msgspec.json.encode(after), indent=1)
        self.lake.store.swap(self.root / "manifest.json", content)
        for day in fresh.values():
            self.sweep(day)

    def sweep(self, posted: PostedDay) -> None:
        """Delete files of a day that were replaced long enough ago for no reader to be at them."""
        written: dict[int, list[Path]] = {}
        for file in (self.root / posted.day).glob(f"*{LASTING}"):
            number = file.name.split("-")[0]
            if not number.isdecimal() or not file.is_file() or file.is_symlink():
                continue
            if ASIDE not in file.name:
                written.setdefault(int(number), []).append(file)
            elif int(number) <= posted.generation:  # a writer was killed, or was late: all of this day is there
                file.unlink(missing_ok=True)
        if len(written) < 2:
            return
        now = replaced_at = self.lake.store.now_s()
        for generation in sorted(written, reverse=True):
            made_at = min(file.stat().st_mtime for file in written[generation])
            if generation < posted.generation and now - replaced_at > GRACE_S:
                self.lake.store.delete(written[generation])
            replaced_at = made_at


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
