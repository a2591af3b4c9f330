"""Which rows belong together, in which order do they stand, and how do they get there?

The compiled functions of `kernels.c` and numpy give the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from gpuledger.native.library import call


def first_rows(group: np.ndarray, groups: int) -> np.ndarray:
    """The first row of each group, by rows as int32; -1 where a group has none."""
    row = np.full(groups, -1, dtype=np.int64)
    if call("first_rows", group, len(group), row) is None:
        row[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return row


def follows(code: np.ndarray, group: np.ndarray, row: np.ndarray) -> bool:
    """Whether all rows of a group have the code of its first row; `row`: by group that row."""
    of_group = code[row]
    odd = call("strays", group, code, of_group, len(group))
    return bool((code == of_group[group]).all()) if odd is None else not odd


def order_by(key: np.ndarray, keys: int) -> np.ndarray:
    """The rows by rising key, rows of one key as they stand; keys are below `keys`."""
    wanted, order = np.ascontiguousarray(key, np.int32), np.empty(len(key), dtype=np.int32)
    if call("order_by", wanted, len(key), keys, np.zeros(keys, dtype=np.int32), order) is not None:
        return order
    small = keys <= np.iinfo(np.uint16).max  # numpy sorts 16-bit keys by radix
    return np.argsort(key.astype(np.uint16) if small else key, kind="stable").astype(np.int32)


class Blocks:
    """Rows to put together: block b has `rows[b]` rows from `start[b]` on of the array number `piece[b]`."""

    def __init__(self, piece: np.ndarray, start: np.ndarray, rows: np.ndarray) -> None:
        self.piece, self.start, self.rows = (np.ascontiguousarray(n, np.int64) for n in (piece, start, rows))
        self.total = int(self.rows.sum())

    def order(self, starts: np.ndarray) -> np.ndarray:
        """The rows of the blocks among those of all arrays; `starts`: where the first row of each would stand."""
        before = np.cumsum(self.rows) - self.rows
        return np.arange(self.total) + np.repeat(starts[self.piece] + self.start - before, self.rows)

    def gathered(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The blocks of arrays of one type of numbers, none of them NULL."""
        kind, wide = arrays[0].type, arrays[0].type.bit_width // 8
        room = pa.allocate_buffer(self.total * wide)
        out = np.frombuffer(room, np.uint8)
        base = np.array([a.buffers()[1].address + a.offset * wide for a in arrays], dtype=np.uint64)
        if call("copy_blocks", base, self.piece, self.start, self.rows, len(self.rows), wide, out) is None:
            held = [np.frombuffer(a.buffers()[1], np.uint8)[a.offset * wide :] for a in arrays]
            cut = zip(self.piece.tolist(), self.start.tolist(), self.rows.tolist(), strict=True)
            np.concatenate([held[p][s * wide : (s + r) * wide] for p, s, r in cut], out=out)
        return pa.Array.from_buffers(kind, self.total, [None, room], 0)
