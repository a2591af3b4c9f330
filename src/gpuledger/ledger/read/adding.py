"""How are whole numbers added up by group, exactly?

A week of one pipe's activity x clock of 5,000 GPUs passes 2**63: such numbers are added in halves, and become floats at
the very end, so the order of rows cannot change a digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

_HALF_BITS = 32
_HALF = 1 << _HALF_BITS
_SPLIT_FROM = 1 << 42  # up to here, two million rows add up below 2**63
_HIGH = " high"
_NEW_ROWS = 1 << 11
_FIRST = 64
Table = tuple[list[np.ndarray], dict[str, np.ndarray]]  # keys, and columns by name


def runs(keys: Sequence[np.ndarray]) -> tuple[np.ndarray | None, np.ndarray]:
    """The order that brings equal keys together, the first key counting most, and where each run then starts.

    Keys are whole numbers from 0 on. The order is None where the rows stand in it already.
    """
    key, width = np.zeros(len(keys[0]), dtype=np.int64), 1
    for values in keys:
        size = int(values.max(initial=0)) + 1
        if width > (1 << 62) // size:  # too wide for one number: count up those there are
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
            width = int(key.max(initial=0)) + 1
        key, width = key * size + values, width * size
    order, step = None, np.diff(key)
    if (step < 0).any():
        order = np.argsort(key.astype(np.uint16) if width <= 1 << 16 else key, kind="stable")  # few: sorted by radix
        step = np.diff(key[order])
    return order, np.flatnonzero(np.append(1, step))[: len(key)]


def distinct(values: np.ndarray) -> np.ndarray:
    """The values there are, in order. As np.unique, which imports a good part of NumPy on its first call."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def added(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of each run, as floats."""
    if not len(values):
        return np.zeros(0)
    if int(values.max()) < (1 << 62) // len(values):
        return np.add.reduceat(values, starts).astype(np.float64)
    high, low = (np.add.reduceat(half, starts) for half in (values >> _HALF_BITS, values & (_HALF - 1)))
    return high.astype(np.float64) * _HALF + low.astype(np.float64)


def some(values: np.ndarray) -> bool:
    """Whether there is anything but zeros; mostly the first rows tell."""
    return bool(values[:_FIRST].any() or values.any())


def _run_sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of each run of whole numbers, as the difference of running totals: twice as fast as `reduceat`.

    A running total may pass 2**63 and begin again from below; the differences do not notice.
    """
    last = np.append(starts[1:], len(values)) - 1
    totals = np.cumsum(values)[last]
    return np.diff(totals, prepend=0)


def exact_total(values: np.ndarray) -> int:
    """The sum of whole numbers from 0 on, however large."""
    if int(values.max(initial=0)) < (1 << 62) // max(len(values), 1):
        return int(values.sum())
    low, high = _split(values)
    return (int(high.sum()) << _HALF_BITS) + int(low.sum())


def grouped(
    keys: list[np.ndarray], columns: Mapping[str, np.ndarray], ends: Mapping[str, np.ufunc] = MappingProxyType({})
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """A piece added up by its keys, whole numbers from -1 on; `ends`: columns that are not sums. No order is promised.

    The arrays may be those given, and one array may be under several names.
    """
    order, starts = runs([key + 1 for key in keys])
    if len(starts) == len(keys[0]):
        return keys, dict(columns)
    out, made = {}, dict[tuple[int, np.ufunc], np.ndarray]()
    for name, values in columns.items():
        how = ends.get(name, np.add)
        same = made.get((id(values), how))
        if same is not None:  # times known are mostly the time observed: one array under many names
            out[name] = same
        elif name not in ends and not some(values):  # most columns of most fleets are zero
            out[name] = made[id(values), how] = np.zeros(len(starts), values.dtype)
        else:
            in_order = values if order is None else values[order]
            whole = how is np.add and values.dtype == np.int64
            made[id(values), how] = _run_sums(in_order, starts) if whole else how.reduceat(in_order, starts)
            out[name] = made[id(values), how]
    first = starts if order is None else order[starts]
    return [key[first] for key in keys], out


class Accumulator:
    """Sums by whole-number keys over pieces that come one after the other, in memory that follows the keys.

    Rows are kept as they first came: those of one day stand as they do the next, so a piece meets rows next to each
    other. Columns that could pass 2**63 are kept in halves, so the order of pieces cannot change a digit.
    """

    def __init__(self, most: Sequence[str] = (), least: Sequence[str] = ()) -> None:
        self._ends = dict.fromkeys(most, np.maximum) | dict.fromkeys(least, np.minimum)
        self._keys: list[np.ndarray] = []
        self._columns: dict[str, np.ndarray] = {}
        # Rows with keys not met before wait until they are many.
        self._new: list[Table] = []
        self._new_rows = 0
        self._sizes: list[int] = []
        self._held = self._rows = np.zeros(0, np.int64)  # one number for the keys of each row, rising, and its row

    def add(self, keys: Sequence[np.ndarray], columns: Mapping[str, np.ndarray]) -> None:
        """Take a piece. Keys are whole numbers from -1 on; every piece has the same columns."""
        if not len(keys[0]):
            return
        heads, sums = self._in_halves(list(keys), dict(columns))
        if not self._keys:
            self._keys, self._columns = heads, {name: np.array(values) for name, values in sums.items()}
            return
        theirs = self._numbered(heads)
        place = np.searchsorted(self._held, theirs)
        met = np.zeros(len(theirs), dtype=bool)
        inside = place < len(self._held)
        met[inside] = self._held[place[inside]] == theirs[inside]
        all_met = bool(met.all())
        rows = self._rows[place if all_met else place[met]]
        follow = all_met and bool((np.diff(rows) == 1).all())  # the same GPUs day after day
        at = slice(int(rows[0]), int(rows[0]) + len(rows)) if follow else rows
        filled = {id(values) for values in apart(sums.values()) if some(values)}  # most columns are zero
        for name, values in sums.items():
            if name in self._ends or id(values) in filled:
                into = self._columns[name]
                into[at] = self._ends.get(name, np.add)(into[at], values if all_met else values[met])
        if not all_met:
            new = np.flatnonzero(~met)
            self._new.append(([key[new] for key in heads], {name: values[new] for name, values in sums.items()}))
            self._new_rows += len(new)
            if self._new_rows > max(len(self._held) // 4, _NEW_ROWS):
                self._take_in()

    def _in_halves(
        self, keys: list[np.ndarray], columns: dict[str, np.ndarray]
    ) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """A piece added up by key, columns of large numbers in halves, and those held so far likewise."""
        whole = [n for n in columns if n not in self._ends and columns[n].dtype != np.float64]
        rows, tops = len(keys[0]), {id(v): int(v.max()) for v in apart(columns[n] for n in whole)}
        most = {name: tops[id(columns[name])] * rows for name in whole}  # no sum of this piece is above it
        for name in whole:
            if most[name] >= 1 << 62:  # it could pass 2**63
                columns[name], columns[name + _HIGH] = _split(columns[name])
        heads, sums = grouped(keys, columns, self._ends)
        for name in whole:
            high, large = name + _HIGH, most[name] >= _SPLIT_FROM
            if high not in sums and (high in self._columns or (large and int(sums[name].max()) >= _SPLIT_FROM)):
                sums[name], sums[high] = _split(sums[name])
            if high in sums and self._keys and high not in self._columns:
                self._columns[name], self._columns[high] = _split(self._columns[name])
        return heads, sums

    def _take_in(self) -> None:
        """Put the rows with new keys behind the others. Rarely, as it moves all rows."""
        if not self._new:
            return
        new, self._new, self._new_rows = self._new, [], 0
        more = new[0] if len(new) == 1 else grouped(*_end_to_end(new, self._columns), self._ends)
        self._keys, self._columns = _end_to_end([(self._keys, self._columns), more], self._columns)
        self._sizes = []

    def _numbered(self, heads: list[np.ndarray]) -> np.ndarray:
        """One number for the keys of each row of a piece, as for those held, which are numbered seldom."""
        wanted = [int(key.max()) + 2 for key in heads]
        if self._sizes and all(w <= s for w, s in zip(wanted, self._sizes, strict=True)):
            return _in_one(heads, self._sizes)
        most = (max(w, int(k.max()) + 2) for w, k in zip(wanted, self._keys, strict=True))
        self._sizes = [m + m // 4 + 1 for m in most]  # room to grow
        if math.prod(self._sizes) >= 1 << 62:
            self._sizes = []
            held, theirs = _combined(self._keys, heads)
        else:
            held, theirs = _in_one(self._keys, self._sizes), _in_one(heads, self._sizes)
        self._rows = np.argsort(held, kind="stable")
        self._held = held[self._rows]
        return theirs

    def handed_over(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """The keys and each column as whole numbers, for another to `add`; large ones in halves."""
        self._take_in()
        out = dict(self._columns)
        for high in (name for name in self._columns if name.endswith(_HIGH)):
            low = high.removesuffix(_HIGH)
            out[low], more = _split(out[low])
            out[high] = out[high] + more
        return self._keys, out

    def total(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """The keys in order, and each column; sums as floats."""
        self._take_in()
        if not self._keys:
            return [], {}
        order, out = runs([key + 1 for key in self._keys])[0], {}
        for name, values in self._columns.items():
            if name.endswith(_HIGH):
                continue
            high, total = self._columns.get(name + _HIGH), values
            if name not in self._ends:
                total = values.astype(np.float64) if high is None else high.astype(np.float64) * _HALF + values
            out[name] = total if order is None else total[order]
        return self._keys if order is None else [key[order] for key in self._keys], out


def _end_to_end(tables: Sequence[Table], names: Iterable[str]) -> Table:
    """Tables one after the other; a column that one lacks is zero there."""
    keys = [np.concatenate(parts) for parts in zip(*(k for k, _ in tables), strict=True)]
    columns = {n: np.concatenate([t.get(n, np.zeros(len(k[0]), np.int64)) for k, t in tables]) for n in names}
    return keys, columns


def apart(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    """The arrays, each once."""
    return list({id(values): values for values in arrays}.values())


def _split(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high halves of whole numbers."""
    return values & (_HALF - 1), values >> _HALF_BITS


def _in_one(keys: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Keys from -1 on as one number each, in the same order."""
    out = np.zeros(len(keys[0]), np.int64)
    for key, size in zip(keys, sizes, strict=True):
        out = out * size + (key + 1)
    return out


def _combined(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """One number for the keys of each row, equal and in order where the keys of two tables are."""
    key, other, width = np.zeros(len(first[0]), np.int64), np.zeros(len(second[0]), np.int64), 1
    for mine, theirs in zip(first, second, strict=True):
        size = max(int(mine.max()), int(theirs.max())) + 2
        if width > (1 << 62) // size:  # too wide for one number: count up those there are
            held = np.unique(np.concatenate([key, other]))
            key, other, width = np.searchsorted(held, key), np.searchsorted(held, other), len(held)
        key, other, width = key * size + mine + 1, other * size + theirs + 1, width * size
    return key, other
