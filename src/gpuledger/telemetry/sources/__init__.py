"""Which kind of file is this, and how is it streamed?

A kind of file is one module here (or an entry point `gpuledger.sources` of another package) that registers a `Source`.
The source recognizes its files, streams their rows, and may bring the mapping of its columns to the schema; without
one the mapping is found by the columns, among telemetry/maps.

csv_file               text with a header, comma, semicolon or tab
parquet_file           Parquet, one row group at a time
nvidia_smi_query       nvidia-smi --query-gpu=... --format=csv
nvidia_smi_report      nvidia-smi -q -x: XML of all GPUs at one instant
nvidia_smi_dmon        nvidia-smi dmon: one line per GPU and round
nvidia_smi_pmon        nvidia-smi pmon: one line per process
dcgmi_dmon             dcgmi dmon
amd_smi, rocm_smi      amd-smi monitor or metric --csv, rocm-smi --csv
wandb_events           W&B system metrics, one row of all GPUs
nvitop                 what nvitop's ResourceMetricCollector collects
zeus                   Zeus's power monitor and energy windows
metric_text            a page of an exporter, OpenMetrics text, `promtool tsdb dump`
prometheus_json        an answer of the Prometheus API, saved to a file
victoria_export        series that VictoriaMetrics exports, one per line
grafana_csv            CSV of a Grafana panel, series as columns or in rows

for_people             what tools print as screens, and the command that writes samples instead

Text may be packed with gzip or Zstandard (telemetry/unpacking).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from gpuledger.errors import FileFault, UnknownKind, map_os_error
from gpuledger.registry import Registry
from gpuledger.telemetry.sources.for_people import printed
from gpuledger.telemetry.unpacking import first_bytes, is_utf16, packing_of

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuledger.telemetry.mapping import Mapping

HEAD_BYTES = 4096
PARQUET_MAGIC = b"PAR1"
# The modules that know tables, of which Parquet files consist: to read one, the others need not be loaded.
TABLE_MODULES = ("parquet_file", "nvitop", "wandb_events")


class Fit(IntEnum):
    """How sure a source is that a file is of its kind; the surest source opens it."""

    NO = 0
    POSSIBLE = 1
    SURE = 2


class Head(msgspec.Struct, frozen=True):
    """The path and the first bytes of a file, unpacked where it is packed; `broken`: they cannot be unpacked."""

    path: Path
    first: bytes
    zipped: bool = False
    broken: bool = False

    @property
    def text(self) -> bool:
        """Whether it may be text."""
        return b"\x00" not in self.first

    @property
    def parquet(self) -> bool:
        """Whether the file starts as Parquet does."""
        return self.first.startswith(PARQUET_MAGIC) and not self.zipped

    def lines(self) -> list[str]:
        """The first lines, the last one perhaps cut; none where the file is not text."""
        if not self.text:
            return []
        return self.first.decode("utf-8-sig", errors="replace").splitlines()


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


class Source(Protocol):
    """One kind of file."""

    def fits(self, head: Head) -> Fit:
        """Whether the file looks like this kind."""
        ...

    def open(self, path: Path) -> Opened:
        """The file, ready to stream; `batches(columns, labels)` reads those columns, labels as dictionaries."""
        ...


@runtime_checkable
class TableSource(Protocol):
    """A source that also knows its columns in a table of another kind of file, such as Parquet."""

    def from_table(self, path: Path, names: list[str]) -> Callable[[Opened], Opened] | None:
        """How the opened table is read, where its columns are of this kind."""
        ...


SOURCES: Registry[Source] = Registry("source", __name__)


def open_source(path: str | Path) -> Opened:
    """The file opened by the source that is surest to know its kind; a fault where none does."""
    path = Path(path)
    source = SOURCES.get(kind_of(path))
    opened = source.open(path)
    if opened.mapping is None:
        for _, other in SOURCES.some(TABLE_MODULES):
            if isinstance(other, TableSource) and (reads := other.from_table(path, opened.names)):
                return reads(opened)
    return opened


def kind_of(path: Path) -> str:
    """The name of the source that is surest to know the file; a fault where none does."""
    fit, name = best_fit(path)
    if fit is not Fit.SURE and (shown := printed(_head(path).first)):
        raise UnknownKind(path, shown.what, hint=shown.instead)
    if fit is not Fit.NO:
        return name
    raise UnknownKind(
        path,
        f"no kind of file that can be read ({', '.join(SOURCES.names())}) looks like it",
        hint="export the telemetry as CSV with a header line, or as Parquet; text may be packed with gzip or zstd",
    )


def best_fit(path: Path) -> tuple[Fit, str]:
    """How sure the surest source is of the file, and its name."""
    head = _head(path)
    asked = SOURCES.some(TABLE_MODULES) if head.parquet and not head.text else SOURCES
    return max((source.fits(head), name) for name, source in asked)


def _head(path: Path) -> Head:
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
