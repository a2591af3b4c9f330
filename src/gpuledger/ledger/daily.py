"""What do the lines of a day add up to, device by device?

A statement over whole days needs no hours: its cost falls with lines that are alike in everything but their hour made
one. Only lines equal in every label, board power, slice and kind of tensor counters are, so nothing a statement tells
apart is mixed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpuledger.lake.names import label_codes
from gpuledger.ledger import lines
from gpuledger.ledger.read.adding import runs
from gpuledger.ledger.read.columns import as_numbers
from gpuledger.native.run_sums import added_up
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR

_ALIKE = ("limit_mw", "slice_ppm")


def fold_days(table: pa.Table) -> pa.Table:
    """Lines, in order of device, with those of one day added up. The hour becomes the start of its day."""
    table = lines.coded(table).unify_dictionaries().combine_chunks()
    if not table.num_rows:
        return table
    kind, order = _kinds(table), None
    starts = np.flatnonzero(np.append(True, kind[1:] != kind[:-1]))
    if (np.diff(kind[starts]) < 0).any():  # owners or states take turns
        order = np.argsort(kind.astype(np.uint16) if int(kind.max()) < 1 << 16 else kind, kind="stable")
        kind = kind[order]
        starts = np.flatnonzero(np.append(True, kind[1:] != kind[:-1]))
    first = starts if order is None else order[starts]
    heads, arrays, found = pa.array(first), [], [chunked.chunk(0) for chunked in table.columns]
    sums = [v for v, column in zip(found, lines.columns().values(), strict=True) if column.merge == "sum"]
    places = {(v.buffers()[1].address, v.offset): v for v in sums}  # columns may be one array under many names
    added = added_up([as_numbers(v) for v in places.values()], starts, order)
    made = dict(zip(places, map(_array, added), strict=True))
    for values, (name, column) in zip(found, lines.columns().items(), strict=True):
        if column.type == "string" or name in _ALIKE or name == "grain_ms":
            arrays.append(values.take(heads))
        elif name == "hour_ms":
            arrays.append(_array(as_numbers(values)[first] // MS_PER_DAY * MS_PER_DAY))
        elif column.merge == "sum":
            arrays.append(made[values.buffers()[1].address, values.offset])
        else:
            arrays.append(_extremes(values, order, starts, column.merge))
    return pa.table(arrays, schema=lines.coded_schema())


def fold_old(table: pa.Table, before_ms: int) -> pa.Table:
    """Hour lines of days that end before an instant become lines of their day; the rest stay as they are."""
    table = lines.coded(table)
    hour, grain = (table[name].to_numpy() for name in ("hour_ms", "grain_ms"))
    old = (hour // MS_PER_DAY * MS_PER_DAY + MS_PER_DAY <= before_ms) & (grain == MS_PER_HOUR)
    if not old.any():
        return table
    folded = fold_days(table.filter(pa.array(old)))
    place, days = folded.column_names.index("grain_ms"), np.full(folded.num_rows, MS_PER_DAY)
    folded = folded.set_column(place, table.schema.field(place), _array(days))
    if old.all():
        return folded
    both = pa.concat_tables([folded, table.filter(pa.array(~old))]).unify_dictionaries()
    board, instance, hour_ms = (both[name].to_pylist() for name in (*schema.DEVICE, "hour_ms"))
    return both.take(sorted(range(len(both)), key=lambda i: (board[i], instance[i] or "", hour_ms[i])))


def _array(values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return as_numbers(table[name].chunk(0))


def _kinds(table: pa.Table) -> np.ndarray:
    """A number a line, equal where lines are alike, rising with the device as the lines do."""
    named = [n for n, c in lines.columns().items() if c.type == "string"]
    found = [(n, table[n].chunk(0).indices) for n in named]
    labels = {n: label_codes(codes) for n, codes in found if codes.null_count < len(codes)}  # most name nothing
    keys = [*labels.values(), *(_or_none(table[n].chunk(0)) for n in _ALIKE if table[n].null_count < table.num_rows)]
    keys += [_numbers(table, "hour_ms") // MS_PER_DAY, _numbers(table, "grain_ms"), _tensor_kind(table)]
    change, device = np.zeros(table.num_rows, dtype=bool), np.zeros(table.num_rows, dtype=bool)
    change[0] = device[0] = True
    for key in keys:
        change[1:] |= key[1:] != key[:-1]
    for key in (labels[name] for name in schema.DEVICE if name in labels):
        device[1:] |= key[1:] != key[:-1]
    starts = np.flatnonzero(change)
    counts = np.diff(starts, append=table.num_rows)
    if np.count_nonzero(device) == len(starts):
        return np.repeat(np.arange(len(starts)), counts)  # one owner a device, all day
    heads = [key[starts].astype(np.int64) for key in keys]
    order, first = runs([head - int(head.min()) for head in heads])
    number = np.zeros(len(starts), dtype=np.int64)
    number[first] = 1
    kind = np.empty(len(starts), dtype=np.int64)
    kind[slice(None) if order is None else order] = np.cumsum(number) - 1
    if (np.diff(kind) >= 0).all():
        return np.repeat(kind, counts)
    opens = first if order is None else np.minimum.reduceat(order, first)
    rank = np.empty(len(opens), dtype=np.int64)
    rank[np.argsort(opens, kind="stable")] = np.arange(len(opens))  # in the order they first come
    return np.repeat(rank[kind], counts)


def _or_none(values: pa.Array) -> np.ndarray:
    """Whole numbers, -1 for NULL."""
    if values.null_count == len(values):
        return np.full(len(values), -1)
    return as_numbers(values.fill_null(-1) if values.null_count else values)


def _tensor_kind(table: pa.Table) -> np.ndarray:
    """0: tensor work by kind for all of the line, 1: the pipe as a whole, 2: none. They are rated differently."""
    by_kind, whole = (_numbers(table, f"{pipe}_ms") for pipe in ("hmma", "tensor"))
    all_kinds = np.minimum.reduce([by_kind, _numbers(table, "imma_ms"), _numbers(table, "dfma_ms")])
    return np.where((by_kind > 0) & (all_kinds >= whole), 0, np.where(whole > 0, 1, 2))


def _ordered(values: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    return values if order is None else values.take(order)


def _extremes(column: pa.Array, order: np.ndarray | None, starts: np.ndarray, merge: str) -> pa.Array:
    """The smallest or largest of each run; NULL where all of it is."""
    if column.null_count == len(column):
        return pa.nulls(len(starts), pa.int64())
    missing = np.iinfo(np.int64).max if merge == "min" else np.iinfo(np.int64).min
    values = _ordered(as_numbers(column.fill_null(int(missing)) if column.null_count else column), order)
    found = (np.minimum if merge == "min" else np.maximum).reduceat(values, starts)
    return pa.array(found, mask=found == missing) if column.null_count else pa.array(found)
