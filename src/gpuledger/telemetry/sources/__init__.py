"""Which kind of file is this, and how is it streamed?

A kind of file is one module here (or an entry point `gpuledger.sources` of another package) that registers a `Source`.
The source recognizes its files, streams their rows, and may bring the mapping of its columns to the schema; without
one the mapping is found by the columns, among telemetry/maps.

csv_file        text with a header, plain or gzipped, comma, semicolon or tab
parquet_file    Parquet, one row group at a time
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpuledger.errors import FileFault, map_os_error
from gpuledger.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuledger.telemetry.mapping import Mapping

HEAD_BYTES = 4096
GZIP = b"\x1f\x8b"


class Fit(IntEnum):
    """How sure a source is that a file is of its kind; the surest source opens it."""

    NO = 0
    POSSIBLE = 1
    SURE = 2


@dataclass(frozen=True)
class Head:
    """The path and the first bytes of a file, unpacked where it is gzipped; `broken`: they cannot be unpacked."""

    path: Path
    first: bytes
    zipped: bool = False
    broken: bool = False


Batches = Callable[[list[str], tuple[str, ...]], "Iterator[pa.RecordBatch]"]


@dataclass
class Opened:
    """A file opened for reading: its columns, its batches, and rows the reader itself could not cut into columns.

    Wrong rows have their number, from 1 below the header; those met before a batch are in the list when it comes.
    `text`: times are text. `mapping`: how its columns fill the schema, where the kind of file says so. `per_row`: how
    many rows come of one row of the file. `cut`: the file as so many pieces, one after the other, each opened by
    itself; for files that can be read from within.
    """

    names: list[str]
    batches: Batches
    rows_expected: int | None = None
    wrong_rows: list[tuple[int, str]] = field(default_factory=list)
    text: bool = False
    mapping: Mapping | None = None
    per_row: int = 1
    cut: Callable[[int], Sequence[Opened]] | None = None


class Source(Protocol):
    """One kind of file."""

    def fits(self, head: Head) -> Fit:
        """Whether the file looks like this kind."""
        ...

    def open(self, path: Path) -> Opened:
        """The file, ready to stream; `batches(columns, labels)` reads those columns, labels as dictionaries."""
        ...


SOURCES: Registry[Source] = Registry("source", __name__)


def open_source(path: str | Path) -> Opened:
    """The file opened by the source that is surest to know its kind; a fault where none does."""
    path = Path(path)
    try:
        if path.is_dir():
            raise FileFault(
                path, "it is a folder, not a file", hint=f"name the files in it, for example {path}/*.parquet"
            )
        with path.open("rb") as file:
            first = file.read(HEAD_BYTES)
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    if not first:
        raise FileFault(path, "the file is empty", hint="check the export that wrote it")
    head = _unpacked(path) if first.startswith(GZIP) else Head(path, first)
    fit, name = max((source.fits(head), name) for name, source in SOURCES)
    if fit is not Fit.NO:
        return SOURCES.get(name).open(path)
    raise FileFault(
        path,
        f"no kind of file that can be read ({', '.join(SOURCES.names())}) looks like it",
        hint="export the telemetry as CSV with a header line, or as Parquet; compressed files must be .csv.gz",
    )


def _unpacked(path: Path) -> Head:
    try:
        with gzip.open(path, "rb") as file:
            return Head(path, file.read(HEAD_BYTES), zipped=True)
    except (OSError, EOFError, zlib.error):
        return Head(path, b"", zipped=True, broken=True)
