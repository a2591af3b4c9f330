"""How are whole numbers added up by any keys, in pieces that need no order?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gpuledger.ledger.read.adding import apart, runs

_HALF_BITS = 32
_HALF = 1 << _HALF_BITS
_EXACT = 1 << 53  # whole numbers up to here are floats without rounding


class Sums:
    """Sums of named columns by several keys, over pieces that come one after the other."""

    def __init__(self) -> None:
        self._keys: list[list[np.ndarray]] = []
        self._halves: list[dict[str, tuple[np.ndarray, np.ndarray]]] = []

    def add(self, keys: Sequence[np.ndarray], columns: Mapping[str, np.ndarray]) -> None:
        """Take a piece of at least one row. Keys are whole numbers."""
        lows = [int(key.min()) for key in keys]
        sizes = [int(key.max()) - low + 1 for key, low in zip(keys, lows, strict=True)]
        code = np.zeros(len(keys[0]), dtype=np.int64)
        for key, low, size in zip(keys, lows, sizes, strict=True):
            code = code * size + (key - low)
        held, first, code = _numbered(code, math.prod(sizes))
        most = int(np.bincount(code).max())
        self._keys.append([key[first] for key in keys])
        # Times known are mostly the time observed: one array under many names.
        made = {id(values): _halves(code, values, held, most) for values in apart(columns.values())}
        self._halves.append({name: made[id(values)] for name, values in columns.items()})

    def total(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """The keys, and each column's sums as floats; no order is promised."""
        keys = [np.concatenate(parts) for parts in zip(*self._keys, strict=True)]
        if not keys:
            return [], {}
        order, starts = runs([key - key.min() for key in keys])
        group = np.zeros(len(keys[0]), dtype=np.int64)
        group[starts] = 1
        place = np.empty(len(group), dtype=np.int64)
        place[slice(None) if order is None else order] = np.cumsum(group) - 1
        first = starts if order is None else order[starts]
        out = {}
        for name in self._halves[0]:
            halves = (np.concatenate([piece[name][half] for piece in self._halves]) for half in (0, 1))
            high, low = (np.bincount(place, half, len(starts)) for half in halves)
            out[name] = high * _HALF + low
        return [key[first] for key in keys], out


def _numbered(code: np.ndarray, width: int) -> tuple[int, np.ndarray, np.ndarray]:
    """How many codes there are, a row of each, and the codes counted from 0 on without a hole."""
    if width > len(code):
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        return len(first), first, number.reshape(-1)
    row = np.full(width, -1, dtype=np.int64)
    row[code] = np.arange(len(code))
    held = row >= 0
    return int(held.sum()), row[held], (np.cumsum(held) - 1)[code]


def _halves(code: np.ndarray, values: np.ndarray, size: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """High and low halves of the sums by code, each without rounding; no code has more rows than `most`."""
    top = int(values.max())
    if top < _EXACT // most:
        return np.zeros(size), np.bincount(code, values, size) if top else np.zeros(size)
    high, low = (np.bincount(code, half, size) for half in (values >> _HALF_BITS, values & (_HALF - 1)))
    return high, low
