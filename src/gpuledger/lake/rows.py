"""What becomes of rows that claim the same device, owner and instant?

The lake is a set of distinct rows. A row that is there already is a duplicate and dropped. Rows that contradict each
other are conflicts: none of them can be trusted, so all are reported, and posting leaves their instant out. Both
rules look only at which rows exist, never at which came first. Equal stamps of a coarse clock are no conflict: the
rows are spread evenly over the clock's tick.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.batch import Batch
from gpuledger.lake.sorting import ARRIVAL, device_codes, in_order, owner_codes
from gpuledger.telemetry import schema

_TICKS_MS = (60_000, 1_000)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True)
class Settled:
    """The rows to add, and what was found among equal keys. `added` leaves conflicts out; the table holds them."""

    table: pa.Table
    added: int
    duplicates: int
    conflicts: pa.Table
    spread: int


def groups(table: pa.Table) -> np.ndarray:
    """For rows in order: a number per row, equal where device, instant and owner are equal."""
    codes, _ = device_codes(table)
    same = (np.diff(codes) == 0) & (np.diff(table[schema.TIME].to_numpy()) == 0)
    if same.any() and (owners := owner_codes(table)) is not None:
        same &= np.diff(owners) == 0
    return np.concatenate(([0], np.cumsum(~same)))


def has_equal_keys(table: pa.Table) -> bool:
    """Whether any two rows, in order, share device, instant and owner."""
    ids = groups(table)
    return bool(len(ids) and ids[-1] != len(ids) - 1)


def row_hashes(table: pa.Table) -> np.ndarray:
    """64 bits per row over all schema columns; equal rows have equal hashes whatever their dictionaries."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    for name in schema.columns():
        hashed = _column_hash(table[name]) if name in table.column_names else np.full(table.num_rows, _NULL)
        total = (total ^ hashed) * _PRIME
        total ^= total >> np.uint64(29)
    return total


def _column_hash(column: pa.ChunkedArray) -> np.ndarray:
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
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


def spread_coarse_clock(table: pa.Table) -> tuple[pa.Table, int]:
    """Rows in order; where a device's clock ticks slower than it is read, its rows are spread over the tick."""
    ids = groups(table)
    codes, _ = device_codes(table)
    at = table[schema.TIME].to_numpy().copy()
    sizes = np.bincount(ids)
    moved = 0
    for code in np.unique(codes[sizes[ids] > 1]):
        rows = np.flatnonzero(codes == code)
        tick = next((t for t in _TICKS_MS if not (at[rows] % t).any()), 0)
        if not tick or np.median(sizes[np.unique(ids[rows])]) < 2:
            continue
        place = np.arange(len(rows)) - np.searchsorted(ids[rows], ids[rows])
        at[rows] += place * tick // sizes[ids[rows]]
        moved += int((place > 0).sum())
    if not moved:
        return table, 0
    return table.set_column(table.column_names.index(schema.TIME), schema.TIME, pa.array(at)), moved


def settle(table: pa.Table, existing: pa.Table | None) -> Settled:
    """New rows (in order, with arrival numbers) against each other and against rows the lake has already."""
    arrived, spread, repeats = table, 0, 0
    if has_equal_keys(table):
        arrived = _drop_repeats(table)
        repeats = table.num_rows - arrived.num_rows
        arrived, spread = spread_coarse_clock(arrived)
    if existing is not None and existing.num_rows:
        old = existing.append_column(ARRIVAL, pa.array(np.full(existing.num_rows, -1, dtype=np.int64)))
        both = pa.concat_tables([old, arrived], promote_options="default").unify_dictionaries().combine_chunks()
        arrived = in_order(both)
    if not has_equal_keys(arrived):
        fresh = arrived.filter(pc.greater_equal(arrived[ARRIVAL], 0))
        return Settled(fresh.drop_columns([ARRIVAL]), fresh.num_rows, repeats, fresh.slice(0, 0), spread)
    new, conflict = _classify(arrived)
    kept = arrived.filter(pa.array(new)).drop_columns([ARRIVAL])
    added = int((new & ~conflict).sum())
    clashing = arrived.filter(pa.array(conflict))
    old_rows = existing.num_rows if existing is not None else 0
    repeats += arrived.num_rows - old_rows - added - clashing.num_rows
    return Settled(kept, added, repeats, clashing, spread)


def _drop_repeats(table: pa.Table) -> pa.Table:
    """Within one import: of rows equal in every column, keep the first."""
    ids = groups(table)
    many = np.flatnonzero(np.bincount(ids)[ids] > 1)
    hashes = row_hashes(table.take(pa.array(many)))
    order = np.lexsort((many, hashes, ids[many]))
    again = (np.diff(ids[many][order]) == 0) & (np.diff(hashes[order]) == 0)
    keep = np.ones(table.num_rows, dtype=bool)
    keep[many[order[1:][again]]] = False
    return table.filter(pa.array(keep))


def _classify(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Masks over rows in order: new and not there yet; new and in conflict with another row."""
    ids = groups(table)
    old = table[ARRIVAL].to_numpy() < 0
    many = np.flatnonzero(np.bincount(ids)[ids] > 1)
    hashes = np.zeros(len(ids), dtype=np.uint64)
    hashes[many] = row_hashes(table.take(pa.array(many)))
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    conflict = (np.minimum.reduceat(hashes, starts) != np.maximum.reduceat(hashes, starts))[ids] & ~old
    order = np.lexsort((~old, hashes, ids))
    again = np.zeros(len(ids), bool)
    again[order[1:]] = (np.diff(ids[order]) == 0) & (np.diff(hashes[order]) == 0)
    return ~old & ~again, conflict


def without_conflicts(table: pa.Table) -> tuple[pa.Table, int]:
    """Rows in order with every instant left out that has contradicting rows, and how many rows that were."""
    if not Batch(table).same_instant.any() or not has_equal_keys(table):
        return table, 0
    ids = groups(table)
    alone = np.bincount(ids)[ids] == 1
    return table.filter(pa.array(alone)), int((~alone).sum())
