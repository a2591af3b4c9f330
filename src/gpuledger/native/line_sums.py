"""What do the samples of each line add up to, one reading at a time?

Every amount is a whole number below 2**53, where float64 adds without rounding, so the order of adding is free: the
compiled functions of `kernels.c` and numpy give the same digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuledger.native.library import call

_TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


@dataclass(frozen=True)
class LineRows:
    """Which samples make which line: runs of pieces that follow each other are of one line.

    Run r has the pieces from `runs[r]` to the next run's, and is of line `run_line[r]`. Piece i is of sample `row[i]`
    (None: of sample i) and stands for `ms[i]`; `even_ms`: the time of every piece where all are alike.
    """

    row: np.ndarray | None
    ms: np.ndarray
    runs: np.ndarray
    run_line: np.ndarray
    count: int
    even_ms: float | None

    @classmethod
    def of(cls, row: np.ndarray | None, ms: np.ndarray, runs: np.ndarray, run_line: np.ndarray, count: int) -> LineRows:
        """The pieces of `count` lines; regular sampling gives every piece the same time."""
        even = float(ms[0]) if len(ms) and bool((ms == ms[0]).all()) else None
        at = None if row is None else np.ascontiguousarray(row, np.int64)
        start, line = np.ascontiguousarray(runs, np.int64), np.ascontiguousarray(run_line, np.int64)
        return cls(at, np.ascontiguousarray(ms, np.float64), start, line, count, even)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Per-sample values, one for each piece."""
        return values if self.row is None else values.take(self.row)  # a third faster than an index

    def added(self, amounts: np.ndarray) -> np.ndarray:
        """Whole amounts by piece, line by line."""
        total = np.zeros(self.count)
        name, amounts = _typed("levels", amounts)
        if call(name, amounts, None, None, None, None, *self._runs, 1.0, total, None) is not None:
            return total
        return np.bincount(self.run_line, np.add.reduceat(amounts, self.runs, dtype=np.float64), self.count)

    def over_time(self, levels: np.ndarray) -> np.ndarray:
        """Whole levels by piece x time, line by line."""
        return self.added(levels) * self.even_ms if self.even_ms is not None else self.added(levels * self.ms)

    def levels(
        self,
        values: np.ndarray,
        factor: float = 1.0,
        *,
        mask: np.ndarray | None = None,
        cap: np.ndarray | None = None,
        known: np.ndarray | None = None,
    ) -> np.ndarray:
        """Whole values x factor over time; values are by sample.

        `mask`: the samples that count; `cap`: by line what a value is at most (NaN: not known, and so is the value);
        `known`: zeros, one a line, that become the time in which values are known.
        """
        total = np.zeros(self.count)
        name, values = _typed("levels", values)
        given = (values, self.row, _bytes(mask), self._ms, cap, *self._runs, factor, total, known)
        if (cap is None or self.even_ms is not None) and call(name, *given) is not None:
            if known is not None and self.even_ms is not None:
                known *= self.even_ms
            return self._timed(total)
        level = self.spread(whole(values, factor))
        if cap is not None:
            level = np.minimum(level, cap[self._line])
        if mask is None and known is None and not np.isnan(added := self.over_time(level)).any():
            return added  # most often: all is known
        said = ~np.isnan(level) if mask is None else ~np.isnan(level) & self.spread(mask)
        if known is not None:
            known += self.over_time(said.astype(np.float64))
        return self.over_time(np.where(said, level, 0.0))

    def products(self, values: np.ndarray, others: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """Whole values x factor, times whole others, over time where both are known."""
        if values.dtype != others.dtype:
            values, others = values.astype(np.float64), others.astype(np.float64)
        total = np.zeros(self.count)
        (name, values), (_, others) = _typed("products", values), _typed("products", others)
        if call(name, values, others, self.row, self._ms, *self._runs, factor, total) is not None:
            return self._timed(total)
        return self.over_time(np.nan_to_num(self.spread(whole(values, factor) * whole(others))))

    def highest(self, values: np.ndarray) -> np.ndarray:
        """The largest value of each line, NaN where none is known."""
        name, values = _typed("highest", values)
        out = np.full(self.count, np.nan, values.dtype)
        if call(name, values, self.row, *self._runs, out) is None:
            np.fmax.at(out, self.run_line, np.fmax.reduceat(self.spread(values), self.runs))
        return out

    def times(self, code: np.ndarray, width: int) -> np.ndarray:
        """The time of each code, as a table of codes x lines; `code`: by sample, a byte below `width`."""
        out = np.zeros((self.count, width))
        counts = np.zeros((2, out.size), np.int32) if self.even_ms is not None else None
        given = (_bytes(code), self.row, self._ms, *self._runs, width, out.size, counts, out)
        if call("times_by_code", *given) is not None:
            return self._timed(out).T
        flat = self.spread(code) * np.int64(self.count) + self._line
        return np.bincount(flat, self.ms, minlength=self.count * width).reshape(width, self.count)

    @cached_property
    def _line(self) -> np.ndarray:
        return np.repeat(self.run_line, np.diff(self.runs, append=len(self.ms)))

    @property
    def _ms(self) -> np.ndarray | None:
        return None if self.even_ms is not None else self.ms

    @property
    def _runs(self) -> tuple[np.ndarray, np.ndarray, int, int]:
        return self.runs, self.run_line, len(self.runs), len(self.ms)

    def _timed(self, counted: np.ndarray) -> np.ndarray:
        return counted if self.even_ms is None else counted * self.even_ms


def whole(values: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Values as whole numbers of a finer unit, still as float64."""
    out = np.multiply(values, factor, dtype=np.float64)
    return np.rint(out, out=out)


def places(values: np.ndarray | None, edges: tuple[float, ...], n: int) -> np.ndarray:
    """How many edges each value is at or above; one more than there are edges where it is not known."""
    if values is None:
        return np.full(n, len(edges) + 1, dtype=np.uint8)
    out = np.empty(n, dtype=np.uint8)
    name, values = _typed("places", values)
    if call(name, values, np.array(edges), len(edges), n, out) is not None:
        return out
    out[:] = np.where(np.isnan(values), len(edges) + 1, 0)
    for edge in edges:
        out += (values >= edge).view(np.uint8)
    return out


def bins_of(shares: np.ndarray, bins: int) -> np.ndarray:
    """The bin of each share among equal ones, the last for all above; `bins` where it is not known."""
    out = np.empty(len(shares), dtype=np.uint8)
    name, shares = _typed("bins", shares)
    if call(name, shares, bins, len(shares), out) is not None:
        return out
    blank = np.isnan(shares)
    out[:] = np.minimum(np.where(blank, shares.dtype.type(0), shares) * bins, bins - 1).astype(np.uint8)
    out[blank] = bins
    return out


def _typed(name: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """The function for the type of some values, and the values as it takes them."""
    if values.dtype not in _TYPES:
        values = values.astype(np.float64)
    return f"{name}_{_TYPES[values.dtype]}", np.ascontiguousarray(values)


def _bytes(values: np.ndarray | None) -> np.ndarray | None:
    return None if values is None else np.ascontiguousarray(values).view(np.uint8)
