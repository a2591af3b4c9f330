"""What becomes of rows that claim the same device, owner, pod and instant?

The lake is a set of distinct rows, kept with the stamps they came with. A row that is there already is a duplicate and
dropped. What rows of one key mean is decided when they are read, from all rows of the device's day: where no two of
them have the same reading, as of files with one metric each, they are one row together; where the clock ticks slower
than the device was read, they are spread evenly over the tick. Everywhere else they contradict each other: none of them
can be trusted, so all are reported, and posting leaves their instant out. No rule looks at which row came first, so
neither the order of imports nor the way files are cut changes what posting sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuledger.lake.batch import Batch, as_dictionary, repeated, row_hashes
from gpuledger.lake.host_names import ByDevice, neighbors_of
from gpuledger.lake.sharing import share_readings
from gpuledger.lake.sorting.order import ARRIVAL, device_codes, in_order, series_codes
from gpuledger.telemetry import schema

__all__ = [
    "Cleared", "Settled", "drop_repeats", "groups", "has_equal_keys", "last_of", "row_hashes", "settle",
    "spread_coarse_clock", "without_conflicts",
]  # fmt: skip

_TICKS_MS = (60_000, 1_000)
# A clock counts as coarse where stamps with several rows are common: at least two of them, and one stamp in 20.
_COARSE_STAMPS = 2
_COARSE_ONE_IN = 20
# Known of a device with every metric of it, not read: it does not keep rows apart.
_BESIDES = "slice_ratio"


@dataclass(frozen=True)
class Settled:
    """The rows to add, and what was found among equal keys. `added` leaves conflicts out; the table holds them.

    `spread`: how many of the new rows will be read later within their clock's tick than they are stamped. `neighbors`:
    of devices whose rows name several hosts.
    """

    table: pa.Table
    added: int
    duplicates: int
    conflicts: pa.Table
    spread: int
    neighbors: ByDevice


def groups(table: pa.Table) -> np.ndarray:
    """For rows in order: a number per row, equal where device, instant, owner, pod and container are equal."""
    codes, _ = device_codes(table)
    same = (np.diff(codes) == 0) & (np.diff(table[schema.TIME].to_numpy()) == 0)
    if same.any() and (series := series_codes(table)) is not None:
        same &= np.diff(series) == 0
    return np.concatenate(([0], np.cumsum(~same)))[: table.num_rows]


def has_equal_keys(table: pa.Table) -> bool:
    """Whether any two rows, in order, share device, instant, owner, pod and container."""
    ids = groups(table)
    return bool(len(ids) and ids[-1] != len(ids) - 1)


def last_of(table: pa.Table) -> dict[str, int]:
    """The instant of each device's last row, for rows in order."""
    codes, names = device_codes(table)
    ends = np.flatnonzero(np.diff(codes, append=-1))
    return dict(zip(names, table[schema.TIME].to_numpy()[ends].tolist(), strict=True))


def drop_repeats(table: pa.Table) -> pa.Table:
    """Rows in order; of rows equal in every column the first is kept."""
    if not Batch(table).same_instant.any():
        return table
    ids = groups(table)
    again = repeated(ids, table)
    return table.filter(pa.array(~again)) if again.any() else table


def spread_coarse_clock(table: pa.Table) -> tuple[pa.Table, int]:
    """Rows in order; where a device's clock ticks slower than it is read, its rows are spread over the tick.

    Rows of one stamp stand in the order of their content. Owners and pods that share a stamp share its places too:
    the first rows of each come first, so that whoever has as many rows gets as much of the time.
    """
    ids = groups(table)
    places, slots, ticks = _places(table, ids)
    moved = int(((places > 0) & (ticks > 0)).sum())
    if not moved:
        return table, 0
    at = table[schema.TIME].to_numpy() + places * ticks // slots
    codes, _ = device_codes(table)
    order = pa.array(np.lexsort((at, codes)))
    placed = table.set_column(table.column_names.index(schema.TIME), schema.TIME, pa.array(at))
    return placed.take(order), moved


def _places(table: pa.Table, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For rows in order: the place among the rows of the same key, the places at that stamp, and the tick in ms.

    The tick is 0 where the device's clock is not coarse.
    """
    codes, _ = device_codes(table)
    at = table[schema.TIME].to_numpy()
    sizes = np.bincount(ids)[ids]
    places = np.arange(len(ids)) - np.searchsorted(ids, ids)
    new_stamp = np.append(True, (np.diff(codes) != 0) | (np.diff(at) != 0))
    stamps = np.flatnonzero(new_stamp)
    most = np.maximum.reduceat(sizes, stamps)
    ticks = np.zeros(len(ids), dtype=np.int64)
    for code in np.unique(codes[sizes > 1]):
        first, last = np.searchsorted(codes, (code, code + 1))
        mine = slice(*np.searchsorted(stamps, (first, last)))
        ticks[first:last] = _tick(at[stamps[mine]], most[mine])
    return places, most[np.cumsum(new_stamp) - 1], ticks


def _tick(stamps: np.ndarray, rows: np.ndarray) -> int:
    """The tick of a coarse clock in ms from a device's distinct stamps of a day and the rows at each; 0 for others.

    A clock is coarse where it shows every tick and shows some of them more than once.
    """
    several = np.count_nonzero(rows > 1)
    if several < _COARSE_STAMPS or several * _COARSE_ONE_IN < len(stamps):
        return 0
    tick = next((t for t in _TICKS_MS if not (stamps % t).any()), 0)
    steps = np.sort(np.diff(stamps))
    return tick if tick and steps[(len(steps) - 1) // 2] == tick else 0


def _in_parts(table: pa.Table, ids: np.ndarray) -> np.ndarray:
    """For rows in order, which of them share their key with others and are one row with them.

    No two of those have the same reading, and what else they say of the device is the same where both say it.
    """
    several = np.bincount(ids)[ids] > 1
    rows = np.flatnonzero(several)
    group = np.cumsum(np.diff(ids[rows], prepend=ids[rows[:1]]) != 0)
    torn = np.zeros(len(rows) and group[-1] + 1, dtype=bool)
    readings = frozenset(schema.readings()) - {_BESIDES}
    named = [n for n in table.column_names if n not in readings and n not in {ARRIVAL, schema.TIME, *schema.SERIES}]
    for name in (*(n for n in table.column_names if n in readings), *named):
        column = table[name].take(pa.array(rows))
        spoken = np.flatnonzero(column.is_valid().to_numpy())
        if name in readings:
            torn |= np.bincount(group[spoken], minlength=len(torn)) > 1
        else:
            codes = as_dictionary(column).indices.to_numpy(zero_copy_only=False)[spoken]
            torn[group[spoken][1:][(np.diff(codes) != 0) & (np.diff(group[spoken]) == 0)]] = True
        if torn.all():
            break
    several[rows] = ~torn[group]
    return several


def _put_together(table: pa.Table) -> pa.Table:
    """Rows in order; those that are parts of one row as that row."""
    ids = groups(table)
    parts = _in_parts(table, ids)
    if not parts.any():
        return table
    first = np.append(True, np.diff(ids) != 0)
    kept = np.flatnonzero(first | ~parts)
    row = np.searchsorted(kept, np.arange(len(ids)), side="right") - 1
    out = []
    for column in table.columns:
        source = kept.copy()
        spoken = np.flatnonzero(parts & column.is_valid().to_numpy())
        source[row[spoken]] = spoken
        out.append(column.take(pa.array(source)))
    return pa.table(out, schema=table.schema)


def settle(table: pa.Table, existing: pa.Table | None) -> Settled:
    """New rows (in order, with arrival numbers) against each other and against rows the lake has already."""
    both = table
    if existing is not None and existing.num_rows:
        old = existing.append_column(ARRIVAL, pa.array(np.full(existing.num_rows, -1, dtype=np.int64)))
        both = pa.concat_tables([old, table], promote_options="default").unify_dictionaries().combine_chunks()
        both = in_order(both)
    both = drop_repeats(both)
    neighbors = neighbors_of(both)
    new = both[ARRIVAL].to_numpy() >= 0
    clash, spread = np.zeros(both.num_rows, dtype=bool), 0
    if has_equal_keys(both):
        ids = groups(both)
        parts = _in_parts(both, ids)
        alone = np.flatnonzero(~parts | np.append(True, np.diff(ids) != 0))  # a row in parts stands for one
        stamped = both.select([c for c in (schema.TIME, *schema.DEVICE) if c in both.column_names])
        places, _, ticks = _places(stamped.take(pa.array(alone)), ids[alone])
        clash[alone] = (np.bincount(ids)[ids[alone]] > 1) & ~parts[alone] & (ticks == 0) & new[alone]
        spread = int((new[alone] & (ticks > 0) & (places > 0)).sum())
    kept = both.filter(pa.array(new)).drop_columns([ARRIVAL])
    duplicates = table.num_rows - kept.num_rows
    return Settled(kept, int((new & ~clash).sum()), duplicates, both.filter(pa.array(clash)), spread, neighbors)


class Cleared(NamedTuple):
    """Rows as posting sees them; how many were left out, and at how many instants holders had different readings."""

    table: pa.Table
    left_out: int = 0
    apart: int = 0


def without_conflicts(table: pa.Table, *, whole: bool = False) -> Cleared:
    """Rows of whole devices and days, in order, as posting sees them, and how many rows were left out.

    Rows in parts are put together, coarse clocks are spread; every instant that has contradicting rows is left out.
    Holders that share an instant have the readings of their device (`lake.sharing`). `whole`: every row has some
    reading that the table does not hold, so none is a part of another.
    """
    if not Batch(table).same_instant.any():
        return Cleared(table)
    left_out = 0
    if has_equal_keys(table):
        table, _ = spread_coarse_clock(table if whole else _put_together(table))
        ids = groups(table)
        alone = np.bincount(ids)[ids] == 1
        if not alone.all():
            table, left_out = table.filter(pa.array(alone)), int((~alone).sum())
    shared, apart = share_readings(table)
    return Cleared(shared, left_out, apart)
