"""How do rows that are in order within each run get in order over all runs?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.sorting.narrow import Narrow, columns_of, constants_of, kind_of
from gpuledger.native.moving import Blocks
from gpuledger.native.packing import AS_IS, Packing, gathered, unpacked


class Sorted(NamedTuple):
    """Rows of devices in a run: by device its place among those wanted, its first row, and how many it has."""

    rows: Narrow
    places: list[int]
    starts: list[int]
    counts: list[int]


def together(found: Sequence[Sorted]) -> tuple[Narrow, np.ndarray]:
    """All rows in order of device, rows of one device as they were found; and where the devices begin."""
    place, start, counts = (np.concatenate([f[field] for f in found]) for field in (1, 2, 3))
    piece = np.repeat(np.arange(len(found)), [len(f.places) for f in found])
    order = np.argsort(place, kind="stable")
    held = np.bincount(place, counts).astype(np.int64)
    blocks = Blocks(piece[order], start[order], counts[order])
    return _gathered([f.rows for f in found], blocks), np.cumsum(held) - held


def rising(starts: np.ndarray, at_ms: np.ndarray) -> bool:
    """Whether time rises within each device; `starts`: the first row of each."""
    falls = at_ms[1:] <= at_ms[:-1]
    falls[starts[(starts > 0) & (starts < len(at_ms))] - 1] = False
    return not falls.any()


def _gathered(found: Sequence[Narrow], blocks: Blocks) -> Narrow:
    """Blocks of rows one after the other; `blocks`: of which of the tables found, from which row on."""
    same, names = constants_of(found)
    columns: dict[str, pa.Array] = {}
    for name in names:
        arrays, hows = columns_of(found, name), [rows.packings.get(name, AS_IS) for rows in found]
        made = _with_nulls if any(array.null_count for array in arrays) else gathered
        columns[name] = made(blocks, arrays, hows, kind_of(name))
    return Narrow(same, columns)


def _with_nulls(blocks: Blocks, arrays: Sequence[pa.Array], hows: Sequence[Packing], kind: pa.DataType) -> pa.Array:
    """Blocks of arrays in which values may be missing."""
    used = np.unique(blocks.piece)
    low = np.array([blocks.start[blocks.piece == piece].min() for piece in used])
    high = np.array([(blocks.start + blocks.rows)[blocks.piece == piece].max() for piece in used])
    ends = zip(used.tolist(), low.tolist(), high.tolist(), strict=True)
    parts = [unpacked(arrays[piece].slice(first, last - first), hows[piece], kind) for piece, first, last in ends]
    starts = np.zeros(len(arrays), dtype=np.int64)
    starts[used] = np.cumsum(high - low) - (high - low) - low
    return pc.take(pa.concat_arrays(parts), pa.array(blocks.order(starts)), boundscheck=False)
