"""How do whole lines of CSV become columns, if all of them are in order?

What is odd in any way is left to pyarrow: quotation marks, blank lines, rows with another number of cells, carriage
returns within lines, spellings of numbers that are rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuledger.native.library import address, call

MOST_BYTES = 1 << 30
_HEADER_BYTES = 1 << 20
_FEED = ord("\n")
_MARK = b"\xef\xbb\xbf"  # of the byte order: Arrow drops it
# As csv_block.c takes columns.
_COLUMN = np.dtype([(name, np.int64) for name in ("place", "kind", "out", "valid", "starts", "lengths", "count")])


class Kind(IntEnum):
    """What the cells of a column are read as."""

    NUMBERS = 0
    LABELS = 1
    TEXTS = 2


class Look(NamedTuple):
    """How many line ends and carriage returns a block has, whether it has quotation marks, and is all ASCII."""

    lines: int
    returns: int
    quoted: bool
    ascii: bool


def look(block: memoryview) -> Look | None:
    """What a block holds, in one pass; None where nothing is compiled."""
    counts = np.zeros(4, np.int64)
    if call("csv_look", np.frombuffer(block, np.uint8), len(block), counts) is None:
        return None
    lines, returns, quotes, high = counts.tolist()
    return Look(lines, returns, quotes > 0, high == 0)


def read(
    block: memoryview, seen: Look, separator: str, names: Sequence[str], kinds: Mapping[str, Kind], skip: int = 0
) -> pa.Table | None:
    """The columns of a block of lines, UTF-8, below the first `skip` lines; None where something is odd.

    `seen`: what `look` found in it. `names`: of all its columns, in their order.
    """
    text = np.frombuffer(block, np.uint8)
    if seen.quoted or text[-1] != _FEED or len(text) > MOST_BYTES or not kinds or not kinds.keys() <= set(names):
        return None
    rows, returns = seen.lines - skip, seen.returns
    if skip:
        ends = np.flatnonzero(text[:_HEADER_BYTES] == _FEED)
        if len(ends) < skip:
            return None
        header, text = text[: ends[skip - 1] + 1].tobytes(), text[ends[skip - 1] + 1 :]
        returns -= header.count(b"\r\n")
    if rows < 1 or rows * len(names) > len(text) or text[:3].tobytes() == _MARK:
        return None  # no rows, or more than memory should be asked for: each cell ends with a byte
    made = [_Made(kind, rows) for kind in kinds.values()]
    asked = np.array([one.asked(names.index(name)) for one, name in zip(made, kinds, strict=True)], _COLUMN)
    if call("csv_read", text, len(text), ord(separator), len(names), rows, returns, asked, len(asked)) != 0:
        return None
    arrays = [one.array(text, int(count)) for one, count in zip(made, asked["count"], strict=True)]
    return pa.table(arrays, list(kinds))


class _Made:
    """The memory of one column; Arrow's, which is used again for the next block."""

    def __init__(self, kind: Kind, rows: int) -> None:
        self.kind, self.rows = kind, rows
        self.out = pa.allocate_buffer(8 * rows if kind is Kind.NUMBERS else 4 * (rows + 1))
        self.valid = pa.allocate_buffer((rows + 7) // 8) if kind is Kind.NUMBERS else None
        if self.valid is not None:
            np.frombuffer(self.valid, np.uint8).fill(0xFF)
        self.starts = None if kind is Kind.NUMBERS else np.empty(rows, np.int32)
        self.lengths = np.empty(rows, np.int32) if kind is Kind.LABELS else None
        if kind is Kind.TEXTS:
            np.frombuffer(self.out, np.int32)[0] = 0

    def asked(self, place: int) -> tuple[int, ...]:
        valid = self.valid.address if self.valid is not None else 0
        return place, self.kind, self.out.address, valid, address(self.starts), address(self.lengths), 0

    def array(self, block: np.ndarray, count: int) -> pa.Array:
        """The column; `count`: rows without a number, distinct labels, or bytes of text."""
        if self.valid is not None:
            return pa.Array.from_buffers(pa.float64(), self.rows, [self.valid if count else None, self.out], count)
        if self.lengths is None:
            return _strings(block, self.starts, self.out, self.rows)
        ends = np.zeros(count + 1, np.int32)
        np.cumsum(self.lengths[:count], out=ends[1:])
        words = _strings(block, self.starts, pa.py_buffer(ends), count)
        codes = pa.Array.from_buffers(pa.int32(), self.rows, [None, self.out], 0)
        return pa.DictionaryArray.from_arrays(codes, words, safe=False)


def _strings(block: np.ndarray, starts: np.ndarray | None, ends: pa.Buffer, count: int) -> pa.Array:
    places = np.frombuffer(ends, np.int32)
    text = pa.allocate_buffer(int(places[count]))
    call("csv_texts", block, starts, places, count, text.address)
    return pa.Array.from_buffers(pa.string(), count, [None, ends, text], 0)
