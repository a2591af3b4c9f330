"""Which kind of file is this, and how is it streamed? One module a kind; each registers itself.

csv_file        text with a header, plain or gzipped, comma, semicolon or tab
parquet_file    Parquet, one row group at a time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpuledger.errors import FileFault, map_os_error
from gpuledger.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Opened:
    """A file opened for reading: its columns, its batches, and rows the reader itself could not cut into columns.

    Wrong rows have their number, from 1 below the header; those met before a batch are in the list when it comes.
    """

    names: list[str]
    batches: Callable[[list[str], tuple[str, ...]], Iterator[pa.RecordBatch]]
    rows_expected: int | None = None
    wrong_rows: list[tuple[int, str]] = field(default_factory=list)


class Source(Protocol):
    """One kind of file."""

    def fits(self, path: Path, head: bytes) -> bool:
        """Whether the first bytes look like this kind."""
        ...

    def open(self, path: Path) -> Opened:
        """The file, ready to stream; `batches(columns, labels)` reads those columns, labels as dictionaries."""
        ...


SOURCES: Registry[Source] = Registry("source", __name__)


def open_source(path: str | Path) -> Opened:
    """The file opened by the first source that knows its kind; a fault where none does."""
    path = Path(path)
    try:
        if path.is_dir():
            raise FileFault(
                path, "it is a folder, not a file", hint=f"name the files in it, for example {path}/*.parquet"
            )
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    if not head:
        raise FileFault(path, "the file is empty", hint="check the export that wrote it")
    for _, source in SOURCES:
        if source.fits(path, head):
            return source.open(path)
    raise FileFault(
        path,
        "it is neither Parquet nor text with a header line",
        hint="export the telemetry as CSV or Parquet; compressed files must be .csv.gz",
    )
