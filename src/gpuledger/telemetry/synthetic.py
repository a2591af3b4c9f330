"""How is a synthetic fleet written as the 36-column export, in bounded memory?"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from gpuledger.arguments import takes
from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FileFault, InputError, map_os_error
from gpuledger.telemetry.fleet import Assignment, FleetSpec, plan_fleet
from gpuledger.telemetry.fleet_values import Array, FleetValues, block_scrapes
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S, utc_day

__all__ = ["FleetSpec", "batches", "export_schema", "plan_fleet", "write_fleet"]

Format = Literal["parquet", "csv"]
Files = Literal["one", "day"]

MS_PER_MINUTE = 60 * MS_PER_S
_STAMP = pa.timestamp("ms", "UTC")
_LABEL = pa.dictionary(pa.int32(), pa.string())


class _Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    type: Literal["label", "stamp", "int32", "int64", "float32", "float64"]
    unit: str = ""
    of: Literal["", "uuid", "host", "region", "cluster", "model", "namespace", "node_group", "pod", "container"] = ""
    always: int | None = None
    plain: bool = False

    def arrow(self) -> pa.DataType:
        return {"label": _LABEL, "stamp": _STAMP}.get(self.type) or pa.type_for_alias(self.type)


class _Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    day_text: str
    text: str
    text_seconds: str
    columns: tuple[_Column, ...]


@cache
def _layout() -> _Layout:
    return load_toml(data_dir(__package__, "data", "export_columns.toml"), _Layout)


@cache
def export_schema() -> pa.Schema:
    """The 36 columns in order, typed as in Parquet."""
    return pa.schema([pa.field(c.name, c.arrow()) for c in _layout().columns])


def batches(spec: FleetSpec) -> Iterator[pa.RecordBatch]:
    """The fleet's samples, scrape by scrape, in blocks whose size follows from the number of GPUs alone."""
    fleet = plan_fleet(spec)
    values = FleetValues(spec, fleet)
    scrapes = block_scrapes(spec.gpus)
    fixed = _fixed_columns(fleet, scrapes)
    schema = export_schema()
    day_texts = pa.array([dt.date.fromisoformat(d).strftime(_layout().day_text) for d in _days(spec)], pa.string())
    for number, first in enumerate(range(0, spec.scrapes, scrapes)):
        count = min(scrapes, spec.scrapes - first)
        at_ms = spec.start_ms + np.arange(first, first + count, dtype=np.int64) * spec.step_ms
        since_ms = at_ms - spec.start_ms
        columns: dict[str, Array | pa.Array] = {**fixed, **values.block(number)}
        columns["SCRAPETIME"] = np.repeat(at_ms, spec.gpus)
        columns["ACTIVITYHOUR"] = np.repeat((since_ms % MS_PER_DAY // MS_PER_HOUR).astype(np.int32), spec.gpus)
        day = np.repeat((since_ms // MS_PER_DAY).astype(np.int32), spec.gpus)
        columns["ACTIVITYDATE"] = pa.DictionaryArray.from_arrays(day, day_texts)
        arrays = [_arrow(columns[f.name], f.type, count * spec.gpus) for f in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _days(spec: FleetSpec) -> list[str]:
    """The UTC days the scrapes fall on, and those between."""
    last = (spec.scrapes - 1) * spec.step_ms // MS_PER_DAY
    return [utc_day(spec.start_ms + i * MS_PER_DAY) for i in range(last + 1)]


def _fixed_columns(fleet: tuple[Assignment, ...], scrapes: int) -> dict[str, pa.Array]:
    """The columns that are the same in every block: labels, and readings that never change."""
    fixed: dict[str, pa.Array] = {}
    for column in _layout().columns:
        if column.of:
            coded = pa.array([getattr(a, column.of) for a in fleet], pa.string()).dictionary_encode()
            indices = np.tile(coded.indices.to_numpy(), scrapes)
            fixed[column.name] = pa.DictionaryArray.from_arrays(indices, coded.dictionary)
        elif column.always is not None:
            fixed[column.name] = pa.array(np.full(len(fleet) * scrapes, column.always, np.int32))
    return fixed


def _arrow(column: Array | pa.Array, kind: pa.DataType, rows: int) -> pa.Array:
    return column.slice(0, rows) if isinstance(column, pa.Array) else pa.array(column).cast(kind)


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch, /) -> None: ...


@takes()
def write_fleet(
    spec: FleetSpec,
    path: str | Path,
    format: Format = "parquet",  # noqa: A002
    progress: Callable[[int], None] | None = None,
    *,
    files: Files = "one",
) -> int:
    """Write the fleet to one file, or with files="day" to a folder with one file per day; returns the rows written.

    `progress` is called with the rows written since its last call. A file appears at its path when it is whole.
    """
    target = Path(path)
    _check(spec, target, format, files)
    rows = 0
    for file, pieces in groupby(_pieces(spec, target, format, files), key=itemgetter(0)):
        with _aside(file, spec, format) as writer:
            for _, piece in pieces:
                writer.write_batch(piece)
                rows += piece.num_rows
                if progress:
                    progress(piece.num_rows)
    return rows


def _check(spec: FleetSpec, target: Path, format: Format, files: Files) -> None:  # noqa: A002
    """Refuse what cannot be written before any work is done."""
    if format not in get_args(Format):
        raise InputError(f"cannot write a fleet as {format!r}", hint="use parquet or csv")
    if files not in get_args(Files):
        raise InputError(f"cannot split a fleet by {files!r}", hint="use one or day")
    if format == "csv" and spec.step_ms % MS_PER_S:
        raise InputError(
            f"stamps in CSV are whole seconds, the step is {spec.step_s:g} s",
            hint="use parquet, or a step of whole seconds",
        )
    if files == "one" and target.is_dir():
        raise FileFault(
            target, "cannot write a file here: it is a folder", hint='name a file, or split with files="day"'
        )
    if files == "day":
        if target.exists() and not target.is_dir():
            raise FileFault(target, "cannot write a folder here: it is a file", hint="name another folder")
        ours = {f"{day}.{format}" for day in _days(spec)}
        others = sorted(f.name for f in target.glob(f"*.{format}") if f.name not in ours)
        if others:
            raise FileFault(target, f"the folder holds other data: {others[0]}", hint="name an empty folder")


def _pieces(spec: FleetSpec, target: Path, format: Format, files: Files) -> Iterator[tuple[Path, pa.RecordBatch]]:  # noqa: A002
    """Each batch with the file it belongs to, cut where a day ends."""
    for batch in batches(spec):
        if files == "one":
            yield target, batch
            continue
        day = batch.column("SCRAPETIME").cast(pa.int64()).to_numpy() // MS_PER_DAY
        edges = [0, *(np.flatnonzero(np.diff(day)) + 1).tolist(), batch.num_rows]
        for first, end in pairwise(edges):
            yield target / f"{utc_day(int(day[first]) * MS_PER_DAY)}.{format}", batch.slice(first, end - first)


@contextmanager
def _aside(file: Path, spec: FleetSpec, format: Format) -> Iterator[_Writer]:  # noqa: A002
    """A writer to a hidden file next to `file`, moved into its place when all went well and removed when not."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with (
            pa.OSFile(str(part), "wb") as sink,
            _parquet(sink) if format == "parquet" else _CsvWriter(sink, spec) as writer,
        ):
            yield writer
        part.replace(file)
    except OSError as error:
        raise map_os_error(error, file, "write the fleet") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _parquet(sink: pa.NativeFile) -> pq.ParquetWriter:
    coded = [c.name for c in _layout().columns if not c.plain]
    return pq.ParquetWriter(sink, export_schema(), compression="zstd", use_dictionary=coded)


class _CsvWriter:
    """CSV as the export has it: names and texts without quotes, stamps to the minute or second."""

    def __init__(self, sink: pa.NativeFile, spec: FleetSpec) -> None:
        layout = _layout()
        self._text = layout.text_seconds if spec.step_ms % MS_PER_MINUTE else layout.text
        self._at = export_schema().get_field_index("SCRAPETIME")
        schema = export_schema().set(self._at, pa.field("SCRAPETIME", _LABEL))
        sink.write((",".join(schema.names) + "\n").encode())
        options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
        self._writer = pa_csv.CSVWriter(sink, schema, write_options=options)

    def __enter__(self) -> _CsvWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        stamps = batch.column(self._at).cast(pa.int64()).dictionary_encode()
        seconds = pc.divide(stamps.dictionary, MS_PER_S).cast(pa.timestamp("s"))
        texts = pc.strftime(seconds, format=self._text, locale="C")
        coded = pa.DictionaryArray.from_arrays(stamps.indices, texts)
        self._writer.write_batch(batch.set_column(self._at, "SCRAPETIME", coded))
