"""Which format is a file in, and how is it streamed?

A format is one `Format`: its name, its kind, what shows it, and how its rows are read. Each module here registers one
(a few, where tools of one vendor print alike), and so may another package through the entry point `gpuledger.sources`.
`recognize` asks all of them and keeps the surest; telemetry, job tables, bills, pages of model servers, and what can
only be refused are asked alike. Text may be packed with gzip or Zstandard, and be in UTF-16 (telemetry/unpacking).

logs   lines of a tool as rows, and the table that says what its columns mean
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property, lru_cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gpuledger.errors import FileFault, UnknownKind, map_os_error
from gpuledger.registry import Registry
from gpuledger.telemetry.unpacking import first_bytes, is_utf16, packing_of

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuledger.telemetry.mapping import Mapping

HEAD_BYTES, PAGE_BYTES = 1 << 12, 1 << 18
PARQUET_MAGIC = b"PAR1"
# The modules that know tables, of which Parquet files consist: to read one, the others need not be loaded.
TABLE_MODULES = ("parquet_file", "nvitop", "wandb_events")
PARQUET_MODULES = (*TABLE_MODULES, "bills")


class Fit(IntEnum):
    """How sure a format is that a file is in it; the surest one reads it."""

    NO = 0
    POSSIBLE = 1
    LIKELY = 2
    SURE = 3


class Kind(StrEnum):
    """What a file of a format holds."""

    TELEMETRY = "telemetry"
    RUNS = "runs"
    REQUESTS = "requests"
    JOBS = "jobs"
    INVENTORY = "inventory"
    REFUSED = "refused"


HOLDS = {
    Kind.TELEMETRY: "samples of GPUs", Kind.RUNS: "a table of runs", Kind.REQUESTS: "the page of a model server",
    Kind.JOBS: "a table of jobs", Kind.INVENTORY: "a bill or a list of machines",
}  # fmt: skip
# The commands that take a file.
WAYS = {
    Kind.TELEMETRY: "gpuledger FILE answers it by itself",
    Kind.JOBS: "gpuledger import FILE --lake DIR adds its jobs to a lake; with samples: gpuledger audit SAMPLES FILE",
    Kind.INVENTORY: "give it next to the samples: gpuledger audit SAMPLES --inventory FILE",
    Kind.RUNS: "gpuledger FILE answers it by itself",
    Kind.REQUESTS: "gpuledger FILE answers it by itself",
}


class Seen(NamedTuple):
    """How sure, and what in the file shows it."""

    fit: Fit
    why: str = ""


NOT_SEEN = Seen(Fit.NO)


def sure(why: object) -> Seen:
    """What only this format has; not seen where there is no such thing."""
    return Seen(Fit.SURE, str(why)) if why else NOT_SEEN


@dataclass(frozen=True)
class Head:
    """The path and the first bytes of a file, unpacked where it is packed; `broken`: they cannot be unpacked.

    `further`: the first `PAGE_BYTES` of what can be read once only.
    """

    path: Path
    first: bytes
    zipped: bool = False
    broken: bool = False
    further: bytes = b""

    @property
    def text(self) -> bool:
        """Whether it may be text."""
        return not self.broken and b"\x00" not in self.first

    @property
    def parquet(self) -> bool:
        """Whether the file starts as Parquet does."""
        return self.first.startswith(PARQUET_MAGIC) and not self.zipped

    @cached_property
    def lines(self) -> list[str]:
        """The first lines, the last one perhaps cut; none where the file is not text."""
        return self.first.decode("utf-8-sig", errors="replace").splitlines() if self.text else []

    @cached_property
    def page(self) -> str:
        """Many more lines, for a format whose marks may stand far down; empty where the file is not text."""
        if not self.text or len(self.first) < HEAD_BYTES:
            return "\n".join(self.lines)
        try:
            text = self.further or first_bytes(self.path, PAGE_BYTES)
        except OSError:  # broken further down: reading it says so
            text = self.first
        return text.decode("utf-8-sig", errors="replace")


class Cells(Protocol):
    """Rows of a file: a batch of Arrow, or what reads each column when it is asked for."""

    @property
    def num_rows(self) -> int:
        """How many."""
        ...

    def column(self, name: str) -> pa.Array:
        """The cells of a column."""
        ...


Batches = Callable[[list[str], tuple[str, ...]], "Iterator[pa.RecordBatch]"]


@dataclass(frozen=True)
class Groups:
    """A file that consists of groups of rows: how many rows each has, and how some that follow each other are opened.

    `ends_ms`: of a column of times the first and the last of each group; None where the file does not say them.
    """

    rows: list[int]
    open: Callable[[range], Opened]
    ends_ms: Callable[[str], list[tuple[int, int]] | None]


@dataclass
class Opened:
    """A file opened for reading: its columns, its batches, and rows the reader itself could not cut into columns.

    Wrong rows have their number, from 1 below the header; those met before a batch are in the list when it comes.
    `text`: times are text. `mapping`: how its columns fill the schema, where the kind of file says so. `per_row`: how
    many rows come of one row of the file. `cut`: the file as a number of pieces, in order, each opened by itself; for
    files that can be read from within. `groups`: of a file that consists of such. `notes`: what the user should hear
    about the file; complete once all batches came. `numbers`: columns that may be read as numbers where all of their
    cells are; set by the reader of the batches. `by_column`: the same batches with each column read when it is asked
    for, so that they are never in memory together. `not_read`: metrics of a file of series that make no column.
    `restarts`: the line of column names, which comes again where a log was started again.
    """

    names: list[str]
    batches: Batches
    rows_expected: int | None = None
    wrong_rows: list[tuple[int, str]] = field(default_factory=list)
    text: bool = False
    mapping: Mapping | None = None
    per_row: int = 1
    cut: Callable[[int], Sequence[Opened]] | None = None
    groups: Groups | None = None
    notes: list[str] = field(default_factory=list)
    numbers: frozenset[str] = frozenset()
    by_column: Callable[[list[str], tuple[str, ...]], Iterator[Cells]] | None = None
    not_read: tuple[str, ...] = ()
    restarts: bytes = b""


@dataclass(frozen=True)
class Format:
    """One format. `score`: how sure it is of a file, and why. `read`: the file; telemetry as `Opened`, runs and
    requests as their statements; job tables and inventories are read by their own rooms.

    `from_table`: how a table of another format, such as Parquet, is read where its columns are of this one. What is
    refused says in `what` what it is, and in `way_out` what to do instead.
    """

    name: str
    kind: Kind
    score: Callable[[Head], Seen]
    read: Callable[[Path], Any] | None = None
    from_table: Callable[[Path, list[str]], Callable[[Opened], Opened] | None] | None = None
    what: str = ""
    way_out: str = ""


class Recognized(NamedTuple):
    """The surest format of a file, why, and the next one where it was close."""

    key: str
    format: Format
    seen: Seen
    next_key: str = ""
    next_format: Format | None = None
    next_seen: Seen = NOT_SEEN

    @property
    def close(self) -> bool:
        """Whether another format is as sure."""
        return self.next_seen.fit is self.seen.fit


FORMATS: Registry[Any] = Registry("format", __name__, "gpuledger.sources")


def _format(key: str, thing: Any) -> Format:
    """A format, or a source of a plugin, which has `fits` and `open`."""
    if isinstance(thing, Format):
        return thing
    why = f"the source {key!r} of another package knows it"
    return Format(key, Kind.TELEMETRY, lambda head: Seen(Fit(min(3, thing.fits(head))), why), thing.open)


def recognize(path: str | Path, kind: Kind | None = None, head: Head | None = None) -> Recognized:
    """The format of a file; a fault where none knows it. `kind`: what comes first of formats that are as sure.

    `head`: its first bytes, where they are known. What can only be refused is asked where no other format is sure.
    """
    path = Path(path)
    if head is None and os.path.isfile(path):  # noqa: PTH113  (one that may not be looked at is read, and refused)
        about = path.stat()
        return _of_file(path, about.st_mtime_ns, about.st_size, kind)
    return _by_head(head or head_of(path), kind)


@lru_cache(maxsize=16)  # one command asks several times
def _of_file(path: Path, _changed_ns: int, _size: int, kind: Kind | None) -> Recognized:
    return _by_head(head_of(path), kind)


def _by_head(head: Head, kind: Kind | None) -> Recognized:
    asked = FORMATS.some(PARQUET_MODULES) if head.parquet and not head.text else FORMATS
    made = [(key, _format(key, thing)) for key, thing in asked]
    found = list[tuple[Seen, str, Format]]()
    for refused in (False, True):
        if not found or found[0][0].fit is not Fit.SURE:
            found += ((one.score(head), key, one) for key, one in made if (one.kind is Kind.REFUSED) is refused)
            found.sort(key=lambda one: (-one[0].fit, one[2].kind is not kind, one[1]))
    (seen, key, best), (then, next_key, next_best), *_ = (*found, (NOT_SEEN, "", None))
    if seen.fit is Fit.NO or best is None:
        hint = "export the telemetry as CSV with a header line, or as Parquet; text may be packed with gzip or zstd"
        raise UnknownKind(head.path, "it is not text, Parquet, or any other format that can be read", hint=hint)
    return Recognized(key, best, seen, next_key, next_best, then)


def open_source(path: str | Path) -> Opened:
    """The telemetry of a file, by the format that is surest to know it; a fault where it holds something else."""
    path, found = Path(path), recognize(path)
    if found.format.kind is not Kind.TELEMETRY or found.format.read is None:
        raise not_telemetry(path, found.format)
    opened: Opened = found.format.read(path)
    if opened.mapping is None:
        for key, thing in FORMATS.some(TABLE_MODULES):
            other = _format(key, thing)
            if other.from_table is not None and (reads := other.from_table(path, opened.names)):
                return reads(opened)
    return opened


def not_telemetry(path: Path, found: Format) -> UnknownKind:
    """The fault for a file that holds no samples of GPUs: what it is, and what to do with it."""
    return other_kind(path, found, "samples of GPUs")


def other_kind(path: Path, found: Format, wanted: str) -> UnknownKind:
    """The fault for a file that holds something else than what is wanted: what it is, and what to do with it."""
    what = found.what or f"{HOLDS[found.kind]} ({found.name}), not {wanted}"
    shown = found.score(head_of(path)).why if found.kind is Kind.REFUSED and path.is_file() else ""
    hint = (found.way_out or WAYS[found.kind]).replace("FILE", quote(str(path)))
    return UnknownKind(path, f"it is {what}" + (f" (seen: {shown})" if shown else ""), hint=hint)


def head_of(path: Path) -> Head:
    """The first bytes of a file, unpacked."""
    try:
        if path.is_dir():
            raise FileFault(
                path, "it is a folder, not a file", hint=f"name the files in it, for example {path}/*.parquet"
            )
        with path.open("rb") as file:
            first = file.read(HEAD_BYTES)
        if not first:
            raise FileFault(path, "the file is empty", hint="check the export that wrote it")
        if not packing_of(first):
            return Head(path, first_bytes(path, HEAD_BYTES) if is_utf16(first) else first)
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    try:
        return Head(path, first_bytes(path, HEAD_BYTES), zipped=True)
    except OSError:
        return Head(path, b"", zipped=True, broken=True)
