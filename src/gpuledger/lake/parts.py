"""How is a day of samples written as one part, read back by device, and merged from several?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpuledger.errors import LakeError
from gpuledger.lake.batch import Batch
from gpuledger.lake.layout import Lake, Part
from gpuledger.lake.manifest import marks_of
from gpuledger.lake.parquet_files import ParquetFileWriter
from gpuledger.lake.rows import drop_repeats, last_of, without_conflicts
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.order import device_codes
from gpuledger.lake.steady_labels import STEADY, SteadyGroup, steady_of
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, utc_day

# Encodings by how a column behaves: few distinct values, steady growth, or noise (bytes split by place compress best).
_FEW = {"gpu_util_ratio", "mem_copy_util_ratio", "enc_util_ratio", "dec_util_ratio", "sm_clock_mhz", "mem_clock_mhz",
        "gpu_temp_c", "mem_temp_c", "throttle_bits", "pcie_replays", "remapped_correctable_rows",
        "remapped_uncorrectable_rows", "row_remap_failures", "xid", "vgpu_license", "slice_ratio",
        "power_limit_w"}  # fmt: skip
_DICTIONARY = [*schema.labels(), *_FEW]
_ENCODING = {
    c.name: "DELTA_BINARY_PACKED" if c.name in (schema.TIME, "energy_mj") else "BYTE_STREAM_SPLIT"
    for c in schema.columns().values()
    if c.kind != "label" and c.name not in _FEW
}

# zstd shrinks what repeats to a fraction. Readings that are noise, and places in a dictionary in any order, it shrinks
# by a fifth or less and takes several times as long to read back as LZ4: these are most of what posting waits for.
_NOISE = {n for n, encoding in _ENCODING.items() if encoding == "BYTE_STREAM_SPLIT"} | _FEW
_CODEC = {c: "lz4" if c in _NOISE else "zstd" for c in schema.columns()}
_LEVEL = {c: 1 for c, codec in _CODEC.items() if codec == "zstd"}

_LOST_PART = "restore it from a backup, or delete the lake and import again"
_TRIES = 3

# Where a part notes how each of its devices begins, which posting the day before needs, and when it ends.
FIRST, LAST = "gpuledger.first", "gpuledger.last"
Firsts = dict[str, tuple[int, dict[str, float]]]


class PartWriter:
    """Writes one day; each table given becomes one row group of whole devices."""

    def __init__(self, file: Path, day: int, never_null: set[str] | None = None) -> None:
        self.file = file
        # Columns known to be full need no marks for what is missing: they read faster.
        fields = [f.with_nullable(f.nullable and f.name not in (never_null or ())) for f in schema.arrow_schema()]
        self._schema = pa.schema(fields, metadata=schema.arrow_schema().metadata)
        self.day = utc_day(day * MS_PER_DAY)
        self.rows = 0
        self._first_ms, self._last_ms = 0, 0
        self._first_device, self._last_device = "", ""
        self._firsts: Firsts = {}
        self._lasts: dict[str, int] = {}
        self._steady: list[SteadyGroup] = []
        self._writer = ParquetFileWriter(
            file,
            self._schema,
            compression=_CODEC,
            compression_level=_LEVEL,
            use_dictionary=_DICTIONARY,
            column_encoding=_ENCODING,
            store_schema=True,
            write_batch_size=1 << 15,  # a thousand at a time, as is usual, takes longer
        )

    def add(self, table: pa.Table) -> None:
        """Write rows that are in order and come after all rows written so far."""
        if not table.num_rows:
            return
        at = pc.min_max(table[schema.TIME])
        names = self._checked_order(table)
        self._first_ms = min(self._first_ms, at["min"].as_py()) if self.rows else at["min"].as_py()
        self._last_ms = max(self._last_ms, at["max"].as_py())
        self._first_device = self._first_device or names[0]
        self._last_device = names[-1]
        self.rows += table.num_rows
        self._firsts |= first_of(without_conflicts(table)[0])
        self._lasts |= last_of(table)
        self._steady.append(steady_of(table))
        self._writer.write_table(with_all_columns(table).cast(self._schema), row_group_size=table.num_rows)

    def _checked_order(self, table: pa.Table) -> list[str]:
        """The table's devices. Rows out of order would be read as time running backward: they are never written."""
        codes, names = device_codes(table)
        step = np.diff(codes)
        falls = (step < 0) | ((step == 0) & (np.diff(table[schema.TIME].to_numpy()) < 0))
        if falls.any() or (self.rows and names[0] <= self._last_device):
            device = names[0] if not falls.any() else names[codes[1:][falls][0]]
            raise RuntimeError(f"{self.file.name}: rows of {device} are not in order of device and time; none written")
        return names

    def close(self) -> Part:
        """Finish the file; the part's id and name are given when it is committed."""
        notes = {FIRST: self._firsts, LAST: self._lasts, STEADY: self._steady}
        self._writer.add_key_value_metadata({name: msgspec.json.encode(note).decode() for name, note in notes.items()})
        self._writer.close()
        ends = (self._first_ms, self._last_ms, self._first_device, self._last_device)
        return Part(0, self.day, "", self.rows, *ends, marks=marks_of(self._lasts))


def first_of(table: pa.Table) -> Firsts:
    """The first sample of each device in rows in order and without conflicts: its instant and its counters."""
    if not table.num_rows:
        return {}
    batch, wanted = Batch(table), (*schema.counters(), "xid")
    columns = [schema.TIME, *(c for c in wanted if c in table.column_names)]
    rows = zip(*(table[c].take(pa.array(batch.device_starts)).to_pylist() for c in columns), strict=True)
    return {
        name: (at_ms, {c: float(value) for c, value in zip(columns[1:], counted, strict=True) if value is not None})
        for name, (at_ms, *counted) in zip(batch.devices, rows, strict=True)
    }


def with_all_columns(table: pa.Table) -> pa.Table:
    """The table with every schema column, in schema order; what a source or an older part lacks is NULL."""
    arrays, found = [], dict(zip(table.column_names, table.columns, strict=True))
    for field in schema.arrow_schema():
        column = found.get(field.name)
        if column is not None:
            arrays.append(column if column.type == field.type else pc.cast(column, field.type, safe=False))
        else:
            arrays.append(pa.nulls(table.num_rows, field.type))
    return pa.table(arrays, schema=schema.arrow_schema())


def open_part(path: Path, facts: pq.FileMetaData | None = None, source: pa.NativeFile | None = None) -> pq.ParquetFile:
    """A part, ready to read; labels come as dictionaries. `facts`: its footer, where it was read already.

    `source`: what to read it from, a piece at a time, where it is not on this machine.
    """
    labels, file, far = list(schema.labels()), source or path, source is not None
    with part_readable(path):
        try:
            part = pq.ParquetFile(file, metadata=facts, read_dictionary=labels, pre_buffer=far)
        except KeyError:  # an older part lacks one
            there = facts or pq.read_metadata(file)
            labels = [name for name in labels if name in there.schema.names]
            part = pq.ParquetFile(file, metadata=there, read_dictionary=labels, pre_buffer=far)
    written = (part.metadata.metadata or {}).get(b"gpuledger.samples.version", b"0")
    if written.isdigit() and int(written) > schema.version():
        part.close()
        message = f"{path}: samples of version {int(written)} are newer than this gpuledger reads ({schema.version()})"
        raise LakeError(message, hint="upgrade gpuledger")
    return part


@contextmanager
def part_readable(path: Path) -> Iterator[None]:
    """What goes wrong while a part is read, as a fault of the lake."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise LakeError(
            f"{path}: the lake names this part but it cannot be read: {error}",
            hint=_LOST_PART,
        ) from error


def read_devices(path: Path, first: str, last: str) -> Iterator[pa.Table]:
    """The row groups of a part that may hold devices from `first` to `last` (by board)."""
    with open_part(path) as file:
        column = file.schema_arrow.get_field_index("gpu_uuid")
        low = first.split("/", maxsplit=1)[0]
        for i in range(file.num_row_groups):
            stats = file.metadata.row_group(i).column(column).statistics
            if stats is not None and stats.has_min_max and (str(stats.max) < low or str(stats.min) > last):
                continue
            yield with_all_columns(file.read_row_group(i))


def devices_of(path: Path) -> set[str]:
    """The devices that have samples in a part."""
    found: set[str] = set()
    with open_part(path) as file:
        for i in range(file.num_row_groups):
            found.update(device_codes(file.read_row_group(i, columns=list(schema.DEVICE)))[1])
    return found


def merge_day(lake: Lake, day: str) -> Part:
    """The one part of a day; where there are several they are merged into one and replaced. Call inside `locked()`."""
    parts = lake.manifest().of_day(day)
    if len(parts) == 1:
        return parts[0]
    with lake.staging() as folder:
        sorter = DaySorter(folder)
        for path in lake.paths(parts):
            with open_part(path) as file:
                for i in range(file.num_row_groups):
                    sorter.add(with_all_columns(file.read_row_group(i)))
        (number,) = sorter.days()
        writer = PartWriter(folder / "merged.parquet", number, sorter.never_null())
        for chunk in sorter.chunks(number):
            writer.add(drop_repeats(chunk))
        after = lake.replace(parts, writer.file, writer.close())
    lake.sweep()
    return after.of_day(day)[0]


def samples_table(lake: Lake, since_ms: int | None = None, until_ms: int | None = None) -> pa.Table:
    """The samples of a window, from `since_ms` up to `until_ms`, as one table; of one state of the lake.

    Readers do not wait for writers: where parts were merged and deleted meanwhile, they read again, and after a few
    tries take the lock.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return _samples_now(lake, since_ms, until_ms)
    with lake.locked():
        try:
            return _samples_now(lake, since_ms, until_ms)
        except FileNotFoundError as error:
            raise LakeError(f"{error}: the lake names this part but it is missing", hint=_LOST_PART) from error


def _samples_now(lake: Lake, since_ms: int | None, until_ms: int | None) -> pa.Table:
    first, last = -(1 << 62) if since_ms is None else since_ms, (1 << 62) if until_ms is None else until_ms
    parts = [p for p in lake.manifest().parts if p.last_ms >= first and p.first_ms < last]
    tables = []
    for path in lake.paths(parts):
        at = [(schema.TIME, ">=", first), (schema.TIME, "<", last)]
        try:
            with part_readable(path):
                tables.append(with_all_columns(pq.read_table(path, filters=at, partitioning=None)))
        except LakeError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise error.__cause__ from None  # merged meanwhile: the caller reads again
            raise
    return pa.concat_tables(tables, promote_options="permissive") if tables else schema.arrow_schema().empty_table()
