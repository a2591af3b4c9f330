"""How do lines with equal keys become one? The slow and obvious way, row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from gpuledger.ledger import lines

Row = dict[str, Any]
ORDER = ("gpu_uuid", "gpu_instance_id", "hour_ms", *lines.names("key")[4:])


def merge(tables: Iterable[pa.Table]) -> list[Row]:
    """Lines with equal keys made one, in order of device, hour and owner."""
    together: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            together[tuple(row[key] for key in lines.names("key"))].append(row)
    merged = [_one(rows) for rows in together.values()]
    return sorted(merged, key=lambda row: [(row[key] is not None, row[key]) for key in ORDER])


def _one(rows: list[Row]) -> Row:
    return {name: _value(column.merge, name, rows) for name, column in lines.columns().items()}


def _value(how: lines.Merge, name: str, rows: list[Row]) -> Any:
    if how == "key":
        return rows[0][name]
    known = [row for row in rows if row[name] is not None]
    if not known:
        return None
    if how == "sum":
        return sum(row[name] for row in known)
    if how == "first":
        return min(known, key=lambda row: (row["first_ms"], row[name]))[name]
    return (min if how == "min" else max)(row[name] for row in known)
