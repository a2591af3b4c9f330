"""What do the samples of each line add up to?

Every amount is a whole number below 2**53, where float64 adds without rounding, so the order of adding is free: the
compiled functions of `kernels.c` and numpy give the same digits. A sum that passes 2**53, as activity x clock of an
hour does above 2,500 MHz, is made again in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuledger.native.library import address, call

_TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


# As kernels.c takes levels: where their numbers lie, then numbers.
_GIVEN = np.dtype([
    ("values", "u8"), ("others", "u8"), ("cap", "u8"), ("mask", "u8"), ("factor", "f8"),
    ("double_values", "i8"), ("double_others", "i8"), ("time", "i8"),
])  # fmt: skip
_AT_ONCE = 8
_WHOLE_BELOW = 2.0**53


@dataclass(frozen=True)
class Level:
    """Whole values x factor, by sample: at most a cap (before the factor), times whole others, where a mask is set.

    It is known where all of these are. `time`: only the time in which it is known.
    """

    values: np.ndarray
    factor: float = 1.0
    mask: np.ndarray | None = None
    cap: np.ndarray | None = None
    others: np.ndarray | None = None
    time: bool = False

    def whole(self) -> np.ndarray:
        """By sample, NaN where it is not known or does not count."""
        out = whole(self.values, self.factor)
        if self.others is not None:
            out *= whole(self.others)
        if self.cap is not None:
            out = np.minimum(out, whole(self.cap, self.factor))
        return out if self.mask is None else np.where(self.mask, out, np.nan)

    def ready(self) -> Level:
        """The same with arrays as the compiled function takes them."""
        cap = None if self.cap is None else np.ascontiguousarray(self.cap, np.float64)
        others = None if self.others is None else _typed(self.others)
        return Level(_typed(self.values), self.factor, _bytes(self.mask), cap, others, self.time)

    def given(self) -> tuple[float, ...]:
        """As the compiled function takes it."""
        double, doubles = self.values.dtype == np.float64, self.others is not None and self.others.dtype == np.float64
        places = (address(a) for a in (self.values, self.others, self.cap, self.mask))
        return (*places, self.factor, double, doubles, self.time)


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
        made = self._together([Level(amounts)], None, None)
        return self._summed(amounts) if made is None else made[0]

    def over_time(self, levels: Sequence[Level]) -> list[np.ndarray]:
        """What each level adds up to over time."""
        made = self._together(levels, self.row, self._ms) or [self._in_numpy(level) for level in levels]
        exact = (self._exact(n) if (t >= _WHOLE_BELOW).any() else t for n, t in zip(levels, made, strict=True))
        return [self._timed(total) for total in exact]

    def _exact(self, level: Level) -> np.ndarray:
        """A sum of whole numbers too large for float64 to add one by one, rounded once."""
        found = np.nan_to_num(self.spread(level.whole())).astype(np.int64)
        timed = found if self._ms is None else found * self._ms.astype(np.int64)
        total = np.zeros(self.count, dtype=np.int64)
        np.add.at(total, self.run_line, np.add.reduceat(timed, self.runs))
        return total.astype(np.float64)

    def _in_numpy(self, level: Level) -> np.ndarray:
        found, ms = self.spread(level.whole()), 1.0 if self._ms is None else self._ms
        if level.time:
            return self._summed((~np.isnan(found)) * ms)
        total = self._summed(found * ms)
        return self._summed(np.nan_to_num(found) * ms) if np.isnan(total).any() else total

    def _summed(self, amounts: np.ndarray) -> np.ndarray:
        return np.bincount(self.run_line, np.add.reduceat(amounts, self.runs, dtype=np.float64), self.count)

    def _together(
        self, levels: Sequence[Level], row: np.ndarray | None, ms: np.ndarray | None
    ) -> list[np.ndarray] | None:
        """The sums of all levels by the compiled function; None where it was not compiled."""
        out: list[np.ndarray] = []
        for first in range(0, len(levels), _AT_ONCE):
            some = [level.ready() for level in levels[first : first + _AT_ONCE]]
            given = np.array([level.given() for level in some], dtype=_GIVEN)
            total = np.zeros((self.count, _AT_ONCE))
            if call("sums_of_levels", given, len(some), row, ms, *self._runs, total) is None:
                return None
            out += [total[:, place] for place in range(len(some))]
        return out

    def highest(self, values: np.ndarray) -> np.ndarray:
        """The largest value of each line, NaN where none is known."""
        values = _typed(values)
        out = np.full(self.count, np.nan, values.dtype)
        if call(_of("highest", values), values, self.row, *self._runs, out) is None:
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
    values = _typed(values)
    if call(_of("places", values), values, np.array(edges), len(edges), n, out) is not None:
        return out
    out[:] = np.where(np.isnan(values), len(edges) + 1, 0)
    for edge in edges:
        out += (values >= edge).view(np.uint8)
    return out


def bins_of(shares: np.ndarray, bins: int) -> np.ndarray:
    """The bin of each share among equal ones, the last for all above; `bins` where it is not known."""
    out = np.empty(len(shares), dtype=np.uint8)
    shares = _typed(shares)
    if call(_of("bins", shares), shares, bins, len(shares), out) is not None:
        return out
    blank = np.isnan(shares)
    out[:] = np.minimum(np.where(blank, shares.dtype.type(0), shares) * bins, bins - 1).astype(np.uint8)
    out[blank] = bins
    return out


def _typed(values: np.ndarray) -> np.ndarray:
    """Values as the compiled functions take them."""
    return np.ascontiguousarray(values if values.dtype in _TYPES else values.astype(np.float64))


def _of(name: str, values: np.ndarray) -> str:
    """The function of that name for the type of some values."""
    return f"{name}_{_TYPES[values.dtype]}"


def _bytes(values: np.ndarray | None) -> np.ndarray | None:
    return None if values is None else np.ascontiguousarray(values).view(np.uint8)
