"""What stands for rows whose times nothing shows? The mean of each GPU's rows, as one reading that covers no time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.telemetry import schema


def mean_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """A row per GPU: the mean of its levels, the last of its counters, and its labels."""
    whole = pa.concat_tables(tables, promote_options="permissive")
    device = pc.binary_join_element_wise(*(pc.fill_null(whole[c].cast(pa.string()), "") for c in _device(whole)), "/")
    rows = []
    for name in device.unique().to_pylist():
        mine = whole.filter(pc.equal(device, name))
        rows.append({column: _one(mine[column], column) for column in mine.column_names})
    made = {c: pa.array([row[c] for row in rows]) for c in whole.column_names}
    return pa.table({c: _as(cells, whole.schema.field(c).type) for c, cells in made.items()})


def _device(table: pa.Table) -> list[str]:
    return [column for column in schema.DEVICE if column in table.column_names]


def _one(cells: pa.ChunkedArray, column: str) -> object:
    known = cells.drop_null()
    if not len(known):
        return None
    if column in schema.labels() or column in schema.counters() or column == schema.TIME:
        return known[-1].as_py()
    return pc.mean(known).as_py()


def _as(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return cells.cast(pa.string()).dictionary_encode()
    return (pc.round(cells) if pa.types.is_integer(kind) and pa.types.is_floating(cells.type) else cells).cast(kind)
