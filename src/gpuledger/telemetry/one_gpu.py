"""Are the rows of a log that does not name its GPUs those of one GPU, or of how many?

Several GPUs are read one after the other, so their lines take turns: they come in rounds, or unevenly spaced in the
same way again and again, or a reading that is slow to change jumps at every line and is back a round later. One GPU may
be read as often as each 10 ms, with pauses, and its memory may change with its jobs. Where each round has as many lines
as the others, and pauses set the rounds apart, the place in the round tells the GPUs apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpuledger.units import MIB

_MOST, _MOST_IN_ROUND = 16, 64  # GPUs of a host
_ROUND_BELOW_US = 500_000  # lines of one round follow each other much faster
_ROWS_IN_ROUNDS = 0.4  # rows in runs of one length, of those that chance makes at most 0.3
_RESTARTS = 0.02  # of the lines of one GPU: a log that is started again may begin just after the last line
_PAUSE = 3  # how many times as long as those within a round the steps between rounds are
_CLOSE_US = 50_000  # within a round; rounds are further apart
_FEWEST_ROUNDS = 3
_UNEVEN, _SAME, _LOOKED_AT, _REPEATS = 0.25, 0.9, 1024, 10
_NEIGHBORS = 20
_FEWEST_ROWS = 6
_FAST_US = 150_000
_INSTANT_US = 1_000_000
_SILENT = -1e12
_HALF = 0.5


class _Sign(NamedTuple):
    """A reading that takes turns: neighbors lie `apart` in more than a share of cases, rows a round apart in fewer."""

    column: str
    apart: float
    more_than: float
    less_than: float
    in_words: str


_SIGNS = (
    _Sign("fb_used_bytes", 1024 * MIB, _HALF, 0.25, "memory in use jumps by over 1 GiB"),
    _Sign("fb_free_bytes", 1024 * MIB, _HALF, 0.25, "free memory jumps by over 1 GiB"),
    _Sign("fb_used_bytes", 64 * MIB, 0.9, 0.05, "memory in use jumps by over 64 MiB"),
    _Sign("fb_free_bytes", 64 * MIB, 0.9, 0.05, "free memory jumps by over 64 MiB"),
    _Sign("gpu_temp_c", 3, 0.9, 0.05, "the temperature jumps by over 3 °C"),
)
# What no GPU does again and again within a few tenths of a second: utilization is a mean over at least a sixth of one.
_FAST_SIGNS = (
    _Sign("gpu_util_ratio", 0.2, 0.9, 0.05, "utilization jumps by over 20 points"),
    _Sign("fb_used_bytes", 1024 * MIB, 0.06, 0.01, "memory in use jumps by over 1 GiB"),
)
SLOW = tuple(dict.fromkeys(sign.column for sign in _SIGNS))
READINGS = tuple(dict.fromkeys(sign.column for sign in (*_SIGNS, *_FAST_SIGNS)))


def why_several(at_us: np.ndarray, readings: Mapping[str, np.ndarray]) -> str:
    """Both ways to see rows, in the order of the file, that may be of several GPUs; empty where they are of one.

    `readings`: some of `READINGS`, NaN where a row has none.
    """
    steps = np.diff(at_us)
    return (_by_times(steps) or _by_readings(steps, readings)) if len(steps) else ""


def gpus_in_round(at_us: np.ndarray) -> int:
    """How many GPUs the rows of a log are of, in the order of the file, each round having a line of each GPU in the
    same order; 0 where that is not sure. Only the last round may be cut.
    """
    steps = np.diff(at_us)
    if not len(steps) or (steps < 0).any():
        return 0
    limit, longest, found = min(_ROUND_BELOW_US, int(steps.max())), int(steps.min()), set[int]()
    if not longest and not steps.any():
        return len(at_us) if len(at_us) <= _MOST else 0
    while longest < limit:
        found |= {_in_each_round(steps, longest)} - {0}
        longest = min(max(2 * longest, 1_000), limit)
    return found.pop() if len(found) == 1 else 0


def cut_off(at_us: np.ndarray) -> bool:
    """Whether times are of seconds or minutes that follow each other: then one GPU's lines may share a time too."""
    unit = next((unit for unit in (60_000_000, 1_000_000) if not (at_us % unit).any()), 0)
    steps = np.diff(at_us)
    return bool(unit and (steps > 0).any() and np.median(steps[steps > 0]) <= unit)


def _in_each_round(steps: np.ndarray, longest: int) -> int:
    """How many lines each round has, where steps up to the longest are those within a round; 0 where it differs."""
    pauses, rows = steps > longest, len(steps) + 1
    lengths = np.diff(np.concatenate(([0], np.flatnonzero(pauses) + 1)))
    size = int(np.bincount(lengths[lengths <= _MOST_IN_ROUND], minlength=1).argmax())
    if size < 2 or rows < (_FEWEST_ROUNDS if longest else 2) * size:
        return 0
    between, within = steps[size - 1 :: size], np.delete(steps, slice(size - 1, None, size))
    usual, inside = float(np.median(between)), float(np.median(within))
    whole = not (between <= longest).any()  # a line that was lost would move all others to another GPU
    late = int((within > longest).sum()) <= _RESTARTS * len(between)
    even = (between < usual / 2).mean() <= _RESTARTS and (between > _PAUSE * usual).mean() <= 2 * _RESTARTS
    apart = usual >= max(_PAUSE * inside, _CLOSE_US)
    return size if whole and late and even and apart and inside <= _CLOSE_US else 0


def gpus_at_once(at_us: np.ndarray, readings: Mapping[str, np.ndarray], models: Sequence[str | None]) -> int:
    """How many GPUs the lines of one instant are of, where each differs from the one before by what no GPU changes so
    fast; else 0.
    """
    steps = np.diff(at_us)
    if not len(steps) or steps.sum() >= _INSTANT_US or (steps < 0).any() or (steps > 2 * _CLOSE_US).any():
        return 0
    known = [(readings[s.column], s.apart) for s in _SIGNS if s.column in readings]
    if any(_takes_turns(values, by, size) for values, by in known for size in range(2, len(at_us) // 2 + 1)):
        return 0
    apart = [np.abs(np.diff(readings[s.column])) > 0 for s in _SIGNS if s.column in readings and s.apart > 1]
    differ = np.logical_or.reduce(apart) if apart else np.zeros(len(steps), bool)
    named = np.array([a != b for a, b in pairwise(models)] or [False] * len(steps))
    return len(at_us) if (differ | named).any() and len(at_us) <= _MOST_IN_ROUND else 0


def gpus_in_turn(at_us: np.ndarray, readings: Mapping[str, np.ndarray], models: Sequence[str | None]) -> int:
    """How many GPUs take turns in a log without rounds, where their times and either a reading or their models agree on
    it without one exception; else 0.
    """
    steps = np.diff(at_us)
    size = 0 if not len(steps) or (steps <= 0).any() else _rounds(steps) or _uneven(steps)
    if not size:
        return 0
    turns = any(_takes_turns(readings[s.column], s.apart, size) for s in _SIGNS if s.column in readings)
    named = len(set(models[:size])) > 1 and all(a == b for a, b in zip(models[size:], models, strict=False))
    return size if turns or named else 0


def _takes_turns(values: np.ndarray, apart: float, size: int) -> bool:
    """Whether a reading is back after each round, and differs within it."""
    known = np.nan_to_num(values, nan=_SILENT)
    return _share_apart(known, size, apart) == 0 and _share_apart(known, 1, apart) > 0


def why_several_untimed(readings: Mapping[str, np.ndarray]) -> str:
    """Both ways to see rows without times that may be of several GPUs; empty where nothing speaks for several."""
    rows = max((len(values) for values in readings.values()), default=0)
    if rows < _FEWEST_ROUNDS * _MOST:
        shown = f"{rows:,} rows with memory or temperature"
        return f"without times, {shown} do not show whether they are of several GPUs or of one"
    for column, values in readings.items():
        known = np.nan_to_num(values, nan=_SILENT)
        steps = np.abs(np.diff(known)).mean()
        for size in range(2, _MOST + 1):
            if np.abs(known[size:] - known[:-size]).mean() < steps * _HALF:
                return (
                    f"{column} is nearer to that of {size} lines before than to that of the line before: {size} GPUs"
                    " taking turns, or one whose work changes as fast as it was read"
                )
    return ""


def _by_times(steps: np.ndarray) -> str:
    if (same := steps == 0).any():
        return f"{int(same.sum()) + 1:,} lines share a time: several GPUs in one round, or one GPU read twice"
    if (steps < 0).any():
        return "its times go back: the logs of several GPUs or hosts, or of one whose clock was set back"
    usual = float(np.median(steps))
    close = steps < min(_ROUND_BELOW_US, usual / 2)
    if usual >= _ROUND_BELOW_US and close.mean() > _RESTARTS:
        count = f"{int(close.sum()):,} lines are within half a second of the one before"
        return f"{count}: several GPUs, or one that two programs logged"
    return _by_pauses(steps, usual)


def _by_pauses(steps: np.ndarray, usual: float) -> str:
    if steps.sum() < _INSTANT_US and len(steps) < _MOST_IN_ROUND:
        return f"its {len(steps) + 1} lines are of one instant: as many GPUs, or one that was read quickly"
    if len(steps) < _NEIGHBORS and usual <= _CLOSE_US and steps.max() >= _NEIGHBORS * usual:
        many = f"its {len(steps) + 1} lines are {usual / 1000:g} ms apart but for a pause"
        return f"{many}: several GPUs, or one that was read quickly"
    if size := _rounds(steps):
        return f"its lines come in rounds of {size}: {size} GPUs, or one that was read in bursts"
    if size := _uneven(steps):
        return f"its lines are unevenly spaced, the same way every {size} lines: {size} GPUs, or one read unevenly"
    return ""


def _by_readings(steps: np.ndarray, readings: Mapping[str, np.ndarray]) -> str:
    return why_turns(readings, fast=bool(np.median(steps) < _FAST_US))


def why_turns(readings: Mapping[str, np.ndarray], *, fast: bool = False) -> str:
    """Both ways to see readings that jump from line to line and are back a round later; empty where none does."""
    for sign in (*_SIGNS, *_FAST_SIGNS) if fast else _SIGNS:
        if sign.column in readings and (size := _turns(readings[sign.column], sign)):
            return (
                f"{sign.in_words} from line to line and is back {size} lines later: {size} GPUs taking turns, or one"
                " whose work changes as fast as it was read"
            )
    return ""


def _rounds(steps: np.ndarray) -> int:
    """How many lines a round has, where most rows are in rounds of one size; else 0."""
    least, most, rows = int(steps.min()), int(steps.max()), len(steps) + 1
    limit = min(_ROUND_BELOW_US, most)
    if least >= limit or least >= most / 2:
        return 0
    needed = _ROWS_IN_ROUNDS + 1 / rows**0.5  # chance makes more of few rows
    longest = least
    while longest < limit:
        between = steps > longest
        starts = np.flatnonzero(between) + 1
        sizes = np.bincount(np.diff(np.concatenate(([0], starts, [rows]))), minlength=_MOST_IN_ROUND + 1)[
            : _MOST_IN_ROUND + 1
        ]
        within = sizes * np.arange(_MOST_IN_ROUND + 1)
        within[:2] = 0
        best = int(within.argmax())
        clear = np.median(steps[between]) >= _PAUSE * np.median(steps[~between])
        if clear and sizes[best] > 1 and within[best] >= needed * rows:
            return best
        longest = min(2 * longest, limit) if longest < limit // 2 else limit
    return 0


def _turns(values: np.ndarray, sign: _Sign) -> int:
    """After how many lines a reading is back that jumps from line to line; 0 where it does not."""
    known = np.nan_to_num(values, nan=_SILENT)
    rows = len(known)
    if rows < _FEWEST_ROWS:
        return 0
    apart = _share_apart(known, 1, sign.apart)
    few = rows <= _NEIGHBORS  # then only turns without one exception, and of what no GPU does by itself
    if not apart > sign.more_than or (few and (apart < 1 or sign.more_than != _HALF)):
        return 0
    for size in range(2, min(_MOST, rows // 3) + 1):
        back = _share_apart(known, size, sign.apart)
        if back == 0 or (not few and back < sign.less_than):
            return size
    return 0


def _share_apart(values: np.ndarray, lines: int, apart: float) -> float:
    return float((np.abs(values[lines:] - values[:-lines]) > apart).mean())


def _uneven(steps: np.ndarray) -> int:
    """After how many lines the spacing of lines repeats, in most of the log; 0 where it is even or without order."""
    parts = [steps[start : start + _LOOKED_AT] for start in range(0, len(steps), _LOOKED_AT)]
    found = [_uneven_here(part) for part in parts if len(part) >= 2 * _REPEATS]
    return max(found) if 2 * sum(size > 0 for size in found) > len(found) else 0


def _uneven_here(steps: np.ndarray) -> int:
    for size in range(2, min(_MOST, len(steps) // _REPEATS) + 1):
        rounds = steps[: len(steps) // size * size].reshape(-1, size)
        usual = np.median(rounds, axis=0)
        spread = float(np.ptp(usual))
        if spread >= _UNEVEN * usual.mean() and (np.abs(rounds - usual) < spread / 2).mean() >= _SAME:
            return size
    return 0
