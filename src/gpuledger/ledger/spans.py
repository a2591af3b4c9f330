"""How much time does each sample stand for?

A sample stands for the time to its device's next sample, at most 2.5 times the day's median step of its series (one
device, one recorded run); the last one for the median step. What crosses the edge of an hour is cut there, each piece
posted to its own hour. Owners that share a device at an instant split its time evenly, whole milliseconds, the first
owners taking what is left over.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from gpuledger.lake.batch import Batch, board_of
from gpuledger.units import MS_PER_HOUR

# How many median steps a sample may stand for before the rest counts as a gap: 5 halves, kept whole.
CAP_HALVES = 5


class Edge(msgspec.Struct, frozen=True, array_like=True):
    """The first sample after a piece of a device's series: its instant, and its counters by name."""

    at_ms: int
    counters: dict[str, float] = {}


class Stamps(msgspec.Struct, frozen=True):
    """The distinct instants of devices in order, the instant after each (-1: none) and the span of each.

    `row` is the first row of each instant and `owners` how many rows share it; None where each row is one instant.
    """

    at_ms: np.ndarray
    next_ms: np.ndarray
    span_ms: np.ndarray
    device_starts: np.ndarray
    row: np.ndarray | None
    owners: np.ndarray | None

    def of(self, values: np.ndarray) -> np.ndarray:
        """Per-row values, one for each instant."""
        return values if self.row is None else values[self.row]

    def last(self) -> np.ndarray:
        """The last instant of each device."""
        return np.append(self.device_starts[1:], len(self.at_ms)) - 1

    def per_row(self, values: np.ndarray) -> np.ndarray:
        """Per-instant values, one for each row."""
        return values if self.owners is None else np.repeat(values, self.owners)

    def place(self) -> tuple[np.ndarray, np.ndarray]:
        """For shared instants: each row's place among its owners, and their number."""
        assert self.owners is not None
        assert self.row is not None
        n = np.repeat(self.owners, self.owners)
        return np.arange(len(n)) - np.repeat(self.row, self.owners), n


class Pieces(msgspec.Struct, frozen=True):
    """Samples cut at hour edges. `row` is the sample of each piece (None: every sample is one piece, in order), `opens`
    whether the piece begins where its sample does (None: all do).
    """

    row: np.ndarray | None
    hour: np.ndarray
    low_ms: np.ndarray
    high_ms: np.ndarray
    ms: np.ndarray
    opens: np.ndarray | None = None


def median_step(at_ms: np.ndarray) -> int:
    """The (lower) median step of one series; 0 where it has one sample only."""
    steps = np.diff(at_ms)
    if not len(steps):
        return 0
    if steps[0] == steps[-1] and (steps == steps[0]).all():
        return int(steps[0])
    middle = (len(steps) - 1) // 2
    return int(np.partition(steps, middle)[middle])


def _even_step(gap: np.ndarray, starts: np.ndarray, last: np.ndarray) -> int | None:
    """The one step all devices keep, where they do; `gap`: the way to the next instant, of no account for the last."""
    if (last == starts).any():  # one sample only has no step
        return None
    usual = int(gap[0])
    others = np.count_nonzero(gap[last] != usual)
    return usual if np.count_nonzero(gap != usual) == others else None


def usual_steps(batch: Batch, at_ms: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The median step of each instant's series: one device, one recorded run (or all of what is not one)."""
    runs = batch.recorded_runs
    out = np.zeros(len(at_ms), dtype=np.int64)
    ends = np.append(starts[1:], len(at_ms))
    for first, last in zip(starts.tolist(), ends.tolist(), strict=True):
        of_run = np.full(last - first, -1) if runs is None else runs[rows[first:last]]
        for code in np.unique(of_run):
            mine = first + np.flatnonzero(of_run == code)
            out[mine] = median_step(at_ms[mine])
    return out


def stamps_of(batch: Batch, edges: Mapping[str, Edge]) -> Stamps:
    """The distinct instants of rows in order."""
    row = owners = None
    at, starts = batch.at_ms, batch.device_starts
    if batch.same_instant.any():
        row = np.flatnonzero(np.append(True, ~batch.same_instant))
        owners = np.diff(row, append=batch.n)
        at, starts = at[row], np.searchsorted(row, starts)
    last = np.append(starts[1:], len(at)) - 1
    next_ms = np.empty_like(at)
    next_ms[:-1] = at[1:]
    next_ms[last] = [edges[d].at_ms if d in edges else -1 for d in batch.devices]
    gap = next_ms - at
    open_end = last[next_ms[last] < 0]
    even = _even_step(gap, starts, last) if batch.recorded_runs is None else None
    if even is not None:
        span = np.minimum(gap, even * CAP_HALVES // 2)
        span[open_end] = even
        return Stamps(at, next_ms, _until_cut_anew(batch, at, next_ms, span, starts), starts, row, owners)
    median = usual_steps(batch, at, starts, np.arange(batch.n) if row is None else row)
    # A series with one sample has no step of its own: the way to the device's next sample must do.
    lone = np.flatnonzero((median == 0) & (next_ms >= 0))
    median[lone] = gap[lone]
    span = np.minimum(gap, median * CAP_HALVES // 2)
    span[open_end] = median[open_end]
    return Stamps(at, next_ms, _until_cut_anew(batch, at, next_ms, span, starts), starts, row, owners)


def _until_cut_anew(
    batch: Batch, at: np.ndarray, next_ms: np.ndarray, span: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Spans before a hole end where the board is seen in its other form: whole, or cut into MIG instances."""
    boards = [board_of(d) for d in batch.devices]
    if len(set(boards)) == len(boards):
        return span
    ends, whole = np.append(starts[1:], len(at)), [b == d for b, d in zip(boards, batch.devices, strict=True)]
    places: dict[str, list[int]] = {}
    for i, board in enumerate(boards):
        places.setdefault(board, []).append(i)
    for devices in places.values():
        for form in (True, False):
            mine = [np.arange(starts[i], ends[i]) for i in devices if whole[i] == form]
            others = [at[starts[i] : ends[i]] for i in devices if whole[i] != form]
            if not mine or not others:
                continue
            rows, seen = np.concatenate(mine), np.sort(np.concatenate(others))
            rows = rows[(at[rows] + span[rows] < next_ms[rows]) | (next_ms[rows] < 0)]
            after = np.searchsorted(seen, at[rows], side="right")
            cut = np.where(after < len(seen), seen[np.minimum(after, len(seen) - 1)] - at[rows], span[rows])
            span[rows] = np.minimum(span[rows], cut)
    return span


def shared_out(stamps: Stamps) -> np.ndarray:
    """Each row's part of its instant's span, where several owners share an instant."""
    if stamps.owners is None:
        return stamps.span_ms
    place, n = stamps.place()
    span = stamps.per_row(stamps.span_ms)
    return span // n + (place < span % n)


def cut_at_hours(start_ms: np.ndarray, full_ms: np.ndarray, own_ms: np.ndarray) -> Pieces:
    """Cut [start, start + full) at hour edges; `own` (this owner's part of it) is cut in proportion, to the digit."""
    hour = start_ms // MS_PER_HOUR
    end_ms = start_ms + full_ms
    if (end_ms <= (hour + 1) * MS_PER_HOUR).all():
        return Pieces(None, hour, start_ms, end_ms, own_ms)
    last_hour = np.where(full_ms > 0, (end_ms - 1) // MS_PER_HOUR, hour)
    count = last_hour - hour + 1
    row = np.repeat(np.arange(len(start_ms)), count)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    piece_hour = hour[row] + place
    low = np.maximum(start_ms[row], piece_hour * MS_PER_HOUR)
    high = np.minimum(end_ms[row], (piece_hour + 1) * MS_PER_HOUR)
    cut = Pieces(row, piece_hour, low, high, own_ms[row], place == 0)
    return msgspec.structs.replace(cut, ms=share_out(own_ms, start_ms, full_ms, cut))


def share_out(amount: np.ndarray, start_ms: np.ndarray, full_ms: np.ndarray, pieces: Pieces) -> np.ndarray:
    """Whole amounts of samples over their pieces in proportion to time, adding up exactly."""
    if pieces.row is None:
        return amount
    if pieces.opens is None:  # nothing was cut
        return amount[pieces.row]
    total, whole = amount[pieces.row], np.maximum(full_ms[pieces.row], 1)
    start = start_ms[pieces.row]
    return total * (pieces.high_ms - start) // whole - total * (pieces.low_ms - start) // whole


class Clip(msgspec.Struct, frozen=True):
    """Instants between which pieces are kept."""

    since_ms: int | None = None
    until_ms: int | None = None

    def within(self, since_ms: int | None, until_ms: int | None) -> Clip:
        """The part of it within a window."""
        lows = [t for t in (self.since_ms, since_ms) if t is not None]
        highs = [t for t in (self.until_ms, until_ms) if t is not None]
        return Clip(max(lows, default=None), min(highs, default=None))

    def cut(self, pieces: Pieces) -> Pieces:
        """The pieces within, those that cross an edge cut in proportion to time."""
        if self.since_ms is None and self.until_ms is None:
            return pieces
        low = pieces.low_ms if self.since_ms is None else np.maximum(pieces.low_ms, self.since_ms)
        high = pieces.high_ms if self.until_ms is None else np.minimum(pieces.high_ms, self.until_ms)
        # A sample that stands for no time is in the window its instant is in.
        at, until = pieces.low_ms, np.inf if self.until_ms is None else self.until_ms
        inside = np.flatnonzero((high > low) | ((pieces.high_ms == at) & (low == at) & (at < until)))
        row = inside if pieces.row is None else pieces.row[inside]
        start, whole = pieces.low_ms[inside], np.maximum(pieces.high_ms - pieces.low_ms, 1)[inside]
        low, high, ms = low[inside], high[inside], pieces.ms[inside]
        kept = ms * (high - start) // whole - ms * (low - start) // whole
        opens = low == start if pieces.opens is None else pieces.opens[inside] & (low == start)
        return Pieces(row, pieces.hour[inside], low, high, kept, opens)
