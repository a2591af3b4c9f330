"""How do rows that are in order within each run get in order over all runs?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.sorting.narrow import Narrow, columns_of, constants_of
from gpuledger.native.moving import Blocks


class Sorted(NamedTuple):
    """Rows in order of device: the places of their devices, and how many rows each has."""

    rows: Narrow
    places: list[int]
    counts: list[int]


def together(found: list[Sorted]) -> tuple[Narrow, np.ndarray]:
    """All rows in order of device, rows of one device as they were found; and where the devices begin."""
    place, counts = np.concatenate([f.places for f in found]), np.concatenate([f.counts for f in found])
    if len(found) == 1:
        return found[0].rows, np.cumsum(counts) - counts
    piece = np.repeat(np.arange(len(found)), [len(f.places) for f in found])
    start = np.concatenate([np.cumsum([0, *f.counts[:-1]]) for f in found])
    order = np.argsort(place, kind="stable")
    held = np.bincount(place, counts).astype(np.int64)
    return _gathered([f.rows for f in found], Blocks(piece[order], start[order], counts[order])), np.cumsum(held) - held


def rising(starts: np.ndarray, at_ms: np.ndarray) -> bool:
    """Whether time rises within each device; `starts`: the first row of each."""
    falls = at_ms[1:] <= at_ms[:-1]
    falls[starts[(starts > 0) & (starts < len(at_ms))] - 1] = False
    return not falls.any()


def _gathered(found: Sequence[Narrow], blocks: Blocks) -> Narrow:
    """Blocks of rows one after the other; `blocks`: of which of the tables found, from which row on."""
    same, names = constants_of(found)
    starts = np.cumsum([0, *(len(rows) for rows in found)])
    columns: dict[str, pa.Array] = {}
    for name in names:
        arrays = columns_of(found, name)
        if any(array.null_count for array in arrays):
            columns[name] = pc.take(pa.concat_arrays(arrays), pa.array(blocks.order(starts)), boundscheck=False)
        else:
            columns[name] = blocks.gathered(arrays)
    return Narrow(same, columns)
