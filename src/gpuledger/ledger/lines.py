"""What does a ledger line hold, and how do two lines become one?"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.catalog.files import data_dir, load_toml

Merge = Literal["key", "first", "sum", "min", "max"]


class LineColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column of a line."""

    name: str
    merge: Merge
    type: Literal["int64", "string"]
    unit: str
    meaning: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    bins: int
    columns: tuple[LineColumn, ...]


@cache
def _file() -> _File:
    return load_toml(data_dir(__package__, "lines.toml"), _File)


def version() -> int:
    """The version of the ledger format, written into every file."""
    return _file().version


def bins() -> int:
    """Bins of each histogram; a quantile read from one is off by at most one bin."""
    return _file().bins


@cache
def columns() -> dict[str, LineColumn]:
    """All columns by name, in order."""
    return {c.name: c for c in _file().columns}


@cache
def names(merge: Merge) -> tuple[str, ...]:
    """The columns that merge in one way."""
    return tuple(c.name for c in _file().columns if c.merge == merge)


@cache
def arrow_schema() -> pa.Schema:
    """The schema of a file of lines."""
    kinds = {"int64": pa.int64(), "string": pa.string()}
    return pa.schema(
        [pa.field(c.name, kinds[c.type]) for c in _file().columns],
        metadata={"gpuledger.lines.version": str(version())},
    )


@cache
def coded_schema() -> pa.Schema:
    """The same as it is posted and written: labels by number, and what is always known not marked as maybe missing."""
    kinds = {"int64": pa.int64(), "string": pa.dictionary(pa.int32(), pa.string())}
    fields = [pa.field(c.name, kinds[c.type], nullable=c.merge != "sum") for c in _file().columns]
    return pa.schema(fields, metadata=arrow_schema().metadata)


def coded(table: pa.Table) -> pa.Table:
    """Lines as they are posted and written, whichever way they came."""
    return table if table.schema.equals(coded_schema()) else table.cast(coded_schema())


# How long each reading is known. Most are known throughout: a file has NULL where that is all of the time observed.
KNOWN = (
    "util_ms", "power_ms", "pif_ms", "energy_ms", "engine_ms", "sm_ms", "occupancy_ms", "integer_ms", "mem_copy_ms",
    "dram_ms", "tensor_ms", "hmma_ms", "imma_ms", "dfma_ms", "fp64_ms", "fp32_ms", "fp16_ms", "clock_ms", "fb_ms",
    "pcie_rx_ms", "pcie_tx_ms", "nvlink_ms", "throttle_ms",
)  # fmt: skip
OBSERVED = "observed_ms"


def as_written(table: pa.Table, without: frozenset[str] = frozenset()) -> pa.Table:
    """Coded lines as a file holds them: without some columns, and NULL for times known that are the time observed.

    Decided by the array, not by its values: posting puts one array under all these names.
    """
    arrays, fields, whole = [], [], _place(table[OBSERVED])
    none = pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.name in without:
            continue
        if field.name in KNOWN:
            same = whole is not None and _place(column) == whole
            arrays.append(none if same else column)
            fields.append(field.with_nullable(True))
        else:
            arrays.append(column)
            fields.append(field)
    return pa.table(arrays, schema=pa.schema(fields, metadata=table.schema.metadata))


def _place(column: pa.ChunkedArray) -> tuple[int, int] | None:
    """Where the numbers of a column rest in memory; None where they are in several places."""
    if column.num_chunks != 1:
        return None
    values = column.chunk(0)
    return values.buffers()[1].address, values.offset


# What a column was called in files of version 1.
BEFORE = {"limit_mw": "board_mw"}


def as_now(table: pa.Table) -> pa.Table:
    """Lines of a file with all columns: those it lacks are zero or NULL, times known are filled in."""
    arrays, found = [], dict(zip(table.column_names, table.columns, strict=True))
    for field in arrow_schema():
        column = found.get(field.name, found.get(BEFORE.get(field.name, "")))
        if column is not None and field.name in KNOWN:
            arrays.append(pc.coalesce(column, found[OBSERVED]))
        elif column is not None:
            arrays.append(column if column.type == field.type else column.cast(field.type))
        elif columns()[field.name].merge == "sum":
            arrays.append(pa.repeat(0, table.num_rows).cast(pa.int64()))
        else:
            arrays.append(pa.nulls(table.num_rows, field.type))
    return pa.table(arrays, schema=arrow_schema())
