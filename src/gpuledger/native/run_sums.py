"""What do columns of whole numbers add up to, run by run?

The compiled function of `kernels.c` and numpy give the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuledger.native.library import address, call


def added_up(columns: Sequence[np.ndarray], starts: np.ndarray, order: np.ndarray | None = None) -> list[np.ndarray]:
    """The sums of each run of rows, in turn; `order`: which rows stand where (None: as they are). A run has a row."""
    rows, out = [np.ascontiguousarray(c, np.int64) for c in columns], np.empty((len(columns), len(starts)), np.int64)
    if not columns or not len(starts):
        return list(out)
    given, first = np.array([address(c) for c in rows], np.uint64), np.ascontiguousarray(starts, np.int64)
    places = None if order is None else np.ascontiguousarray(order, np.int64)
    if call("added_up", given, len(rows), places, first, len(first), len(rows[0]), out) is None:
        return [np.add.reduceat(c if places is None else c.take(places), first) for c in rows]
    return list(out)
