"""When are two rows the same row, and in which order do different rows of one key stand?

Both answers follow from what the rows hold, never from when they came: the lake is a set of rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpuledger.lake.batch import one_array
from gpuledger.telemetry import schema

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)
# Rows of one key stand in the order of their counters, which only grow; then by the readings every source has.
_CONTENT = (*schema.counters(), "gpu_util_ratio", "power_w")


def row_hashes(table: pa.Table) -> np.ndarray:
    """64 bits per row over all schema columns; equal rows have equal hashes whatever their dictionaries."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    for name in schema.columns():
        hashed = _column_hash(table[name]) if name in table.column_names else np.full(table.num_rows, _NULL)
        total = (total ^ hashed) * _PRIME
        total ^= total >> np.uint64(29)
    return total


def content_keys(table: pa.Table) -> list[np.ndarray]:
    """Sort keys that put rows of one key in an order of their own, the last key first as `numpy.lexsort` wants it."""
    keys = [row_hashes(table)]
    for name in reversed(_CONTENT):
        if name in table.column_names and table[name].null_count < table.num_rows:
            values = one_array(table[name]).cast(pa.float64(), safe=False)
            keys.append(values.fill_null(-1.0).to_numpy(zero_copy_only=False))
    return keys


def repeated(ids: np.ndarray, table: pa.Table) -> np.ndarray:
    """Mask of the rows equal in every column to an earlier row of the same id."""
    again = np.zeros(table.num_rows, dtype=bool)
    many = np.flatnonzero(np.bincount(ids)[ids] > 1)
    if len(many):
        hashes = row_hashes(table.take(pa.array(many)))
        order = np.lexsort((many, hashes, ids[many]))
        same = (np.diff(ids[many][order]) == 0) & (np.diff(hashes[order]) == 0)
        again[many[order[1:][same]]] = True
    return again


def _column_hash(column: pa.ChunkedArray) -> np.ndarray:
    array = one_array(column)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(array.type):
        words = [_text_hash(t) for t in array.dictionary.to_pylist()]
        table = np.array([*words, int(_NULL)], dtype=np.uint64)
        return table[array.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)]
    wide = pa.int64() if pa.types.is_integer(array.type) else pa.float64()
    bits = array.cast(wide).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return np.where(nulls, _NULL, (bits ^ (bits >> np.uint64(31))) * _PRIME)


def _text_hash(text: str | None) -> int:
    """FNV-1a: the same on every machine, unlike Python's own hash."""
    if text is None:
        return int(_NULL)
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
