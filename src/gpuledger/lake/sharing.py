"""What does a device read at an instant that several rows are of?

All rows of an instant describe one device, whoever they name: each of its holders gets the same readings. Where a row
that names nobody has a reading, it is the device's own, and what rows of holders say is what their processes used (as
dcgm-exporter writes it with --kubernetes-virtual-gpus); else all values count. The mean of what counts is taken; of
running totals the lowest; of bit masks all bits, of codes the highest. A row that names nobody holds nothing where
another names somebody.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpuledger.lake.batch import COPY, Batch, one_array
from gpuledger.telemetry import schema
from gpuledger.units import count

APART = (
    "rows of a shared GPU have different readings at {}: those of the row that names no holder count, else their mean; "
    "all holders are judged alike"
)
_HOLDER = tuple(name for name in schema.SERIES if name != "cluster")
_BITS = frozenset({"throttle_bits"})
_CODES = frozenset({"xid", "vgpu_license"})


def note(apart: int) -> list[str]:
    """What the user hears of instants with different readings."""
    return [APART.format(count(apart, "instant"))] if apart else []


class _Instants:
    """The rows of instants that several rows share, and the instant of each; `own`: rows that name nobody there."""

    def __init__(self, batch: Batch) -> None:
        new = np.append(True, ~batch.same_instant)
        instant = np.cumsum(new) - 1
        self.rows = np.flatnonzero(np.bincount(instant)[instant] > 1)
        # The number of each instant among those of its device, whatever other devices are in the table.
        of_device = instant[batch.device_starts]
        self.number = instant[self.rows] - of_device[batch.devices_at(self.rows)]
        first = new[self.rows]
        self.starts, self.of_row = np.flatnonzero(first), np.cumsum(first) - 1
        named = np.zeros(len(self.rows), dtype=bool)
        for name in _HOLDER:
            codes = batch.codes(name)
            if codes is not None:  # what all rows of an instant say names none of them
                here = codes[self.rows]
                low, high = (f.reduceat(here, self.starts) for f in (np.minimum, np.maximum))
                named |= (here >= 0) & (low != high)[self.of_row]
        self.own = ~named & np.logical_or.reduceat(named, self.starts)[self.of_row]

    def counting(self, valid: np.ndarray) -> np.ndarray:
        """Which rows' values of a reading count."""
        own = valid & self.own
        return np.where(np.logical_or.reduceat(own, self.starts)[self.of_row], own, valid)

    def counted(self) -> np.ndarray:
        """Which rows are the sample of their instant: one of each, the holders in turn."""
        held = (~self.own).astype(np.int64)
        holders = np.add.reduceat(held, self.starts)[self.of_row]
        before = np.cumsum(held) - held
        place = before - before[self.starts][self.of_row]
        return (held > 0) & (place == self.number % holders)


def share_readings(table: pa.Table) -> tuple[pa.Table, int]:
    """Rows in order and without conflicts, all of an instant with the readings of the device; and at how many instants
    rows had different values of one reading.
    """
    batch = Batch(table)
    if not batch.same_instant.any():
        return table, 0
    here = _Instants(batch)
    apart = np.zeros(len(here.starts), dtype=bool)
    for place, name in enumerate(table.column_names):
        if name not in schema.readings() or (column := batch.column(name)) is None:
            continue
        made, differ = _shared(name, column, here)
        apart |= differ
        if made is not None:
            table = table.set_column(place, table.field(place), made)
    kept, again = np.ones(table.num_rows, dtype=bool), np.zeros(table.num_rows, dtype=bool)
    kept[here.rows[here.own]] = False
    again[here.rows] = ~here.counted()
    return table.append_column(COPY, pa.array(again)).filter(pa.array(kept)), int(apart.sum())


def _shared(name: str, column: pa.Array, here: _Instants) -> tuple[pa.Array | None, np.ndarray]:
    """A reading with that of the device in all rows of an instant (None: as it is), and where rows differ."""
    part = column.take(pa.array(here.rows))
    valid = part.is_valid().to_numpy(zero_copy_only=False)
    whole = pa.types.is_integer(column.type)
    values = part.fill_null(0).to_numpy(zero_copy_only=False)
    values = values if whole else values.astype(np.float64)
    most = np.iinfo(values.dtype) if whole else np.finfo(np.float64)
    spoken = [np.where(valid, values, end) for end in (most.max, most.min)]
    ends = [f.reduceat(v, here.starts) for f, v in zip((np.minimum, np.maximum), spoken, strict=True)]
    differ = ends[0] < ends[1]
    known = np.logical_or.reduceat(valid, here.starts)
    if not differ.any() and (known[here.of_row] == valid).all():
        return None, differ
    device = _device(name, values, here.counting(valid), here)
    out = one_array(column).to_numpy(zero_copy_only=False).copy() if not column.null_count else None
    silent = np.zeros(len(column), dtype=bool)
    if out is None:
        silent = column.is_null().to_numpy(zero_copy_only=False).copy()
        out = column.fill_null(0).to_numpy(zero_copy_only=False).copy()
    out[here.rows], silent[here.rows] = device[here.of_row], ~known[here.of_row]
    return pa.array(out, column.type, mask=silent), differ


def _device(name: str, values: np.ndarray, counts: np.ndarray, here: _Instants) -> np.ndarray:
    """The reading of the device at each instant, from the values that count."""
    whole = values.dtype.kind == "i"
    most = np.iinfo(values.dtype) if whole else np.finfo(np.float64)
    low = np.minimum.reduceat(np.where(counts, values, most.max), here.starts)
    high = np.maximum.reduceat(np.where(counts, values, most.min), here.starts)
    if name in _BITS:
        return np.asarray(np.bitwise_or.reduceat(np.where(counts, values, 0), here.starts))
    if name in _CODES:
        return high
    if schema.columns()[name].kind == "counter":
        return low
    number = np.add.reduceat(counts.astype(np.int64), here.starts)
    mean = np.add.reduceat(np.where(counts, values, 0), here.starts) / np.maximum(number, 1)
    return np.where(low == high, low, np.rint(mean) if whole else mean).astype(values.dtype)
