"""Which pieces of samples make one line?

A line is one device, hour, owner, state, power limit and MIG share. Samples stand in order of device and time, where
owners and states take turns: pieces are brought together run by run, which is several times as fast as row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuledger.lake.batch import Batch
from gpuledger.ledger.spans import Pieces
from gpuledger.native.line_sums import whole
from gpuledger.units import PPM


@dataclass(frozen=True)
class Grouped:
    """Pieces with each line's together, those of a line in order of time.

    `pieces` stay in order of device and time; `order` is where each is found there (None: they stand together already).
    `starts` is where lines start in the new order; `runs` is where runs of pieces of one line start in the old order,
    `run_line` the line of each.
    """

    pieces: Pieces
    order: np.ndarray | None
    starts: np.ndarray
    runs: np.ndarray
    run_line: np.ndarray

    @cached_property
    def line(self) -> np.ndarray:
        """The line of each piece, in the new order."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.pieces.ms)))

    @cached_property
    def row(self) -> np.ndarray | None:
        """The sample of each piece; None: every sample is one piece, in order."""
        return self.order if self.pieces.row is None else self.ordered(self.pieces.row)

    def of(self, values: np.ndarray) -> np.ndarray:
        """Per-sample values, one for each piece."""
        return values if self.row is None else values.take(self.row)  # a third faster than an index

    def ordered(self, values: np.ndarray) -> np.ndarray:
        """Values per piece in order of time, in order of line."""
        return values if self.order is None else values.take(self.order)

    def opening(self, marked: np.ndarray) -> np.ndarray:
        """Per-sample marks, each on the piece that opens its sample."""
        opens = self.pieces.opens
        return self.of(marked) if opens is None else self.of(marked) & self.ordered(opens)

    def lines_opened(self, rows: np.ndarray) -> np.ndarray:
        """The line of the piece that opens each of some samples; -1 where it is not among the pieces."""
        pieces, place, there = self.pieces, rows, np.ones(len(rows), dtype=bool)
        if pieces.row is not None:
            place = np.searchsorted(pieces.row, rows)
            there = place < len(pieces.row)
            place = np.where(there, place, 0)
            there &= pieces.row[place] == rows
            if pieces.opens is not None:
                there &= pieces.opens[place]
        return np.where(there, self.run_line[np.searchsorted(self.runs, place, side="right") - 1], -1)

    def ordered_ms(self) -> np.ndarray:
        """The time of each piece, as floats."""
        ms = self.pieces.ms.astype(np.float64)
        return ms if self.order is None or (ms == ms[0]).all() else ms.take(self.order)

    @cached_property
    def samples(self) -> np.ndarray:
        """The first sample of each line."""
        return self.first if self.pieces.row is None else self.pieces.row[self.first]

    @cached_property
    def first(self) -> np.ndarray:
        """The first piece of each line, in order of time."""
        return self.starts if self.order is None else self.order[self.starts]

    @property
    def last(self) -> np.ndarray:
        """The last piece of each line, in order of time."""
        ends = np.append(self.starts[1:], len(self.pieces.ms)) - 1
        return ends if self.order is None else self.order[ends]


def by_line(pieces: Pieces, batch: Batch, kind: np.ndarray) -> Grouped:
    """Bring the pieces of each line together; `kind`: by sample a number, equal where a line may hold both."""
    size = len(pieces.ms)
    turn = batch.owner_changes.copy()
    turn[batch.device_starts] = True
    if pieces.row is not None:
        kind, turns = kind[pieces.row], np.cumsum(turn)[pieces.row]
        turn = np.diff(turns, prepend=-1) != 0
    turn[1:] |= pieces.hour[1:] != pieces.hour[:-1]
    change = turn.copy()
    change[1:] |= kind[1:] != kind[:-1]
    runs = np.flatnonzero(change)
    of_run = kind[runs]
    head = _heads(np.flatnonzero(turn), pieces, batch)[np.cumsum(turn[runs]) - 1]
    code = head * (int(of_run.max()) + 1) + of_run
    lengths, order, run_line = np.diff(runs, append=size), None, np.zeros(len(runs), dtype=np.int64)
    together = np.arange(len(runs))
    if (np.diff(code) < 0).any():
        together = np.argsort(code.astype(np.uint16) if int(code.max()) < 1 << 16 else code, kind="stable")
        lengths = lengths[together]
        order = np.repeat(runs[together] - (np.cumsum(lengths) - lengths), lengths) + np.arange(size)
    opens = np.diff(code[together], prepend=-1) != 0
    run_line[together] = np.cumsum(opens) - 1
    starts = (np.cumsum(lengths) - lengths)[opens]
    return Grouped(pieces, order, starts, runs, run_line)


def _heads(starts: np.ndarray, pieces: Pieces, batch: Batch) -> np.ndarray:
    """A small number for device, hour and owner of some pieces, rising in this order."""
    row = starts if pieces.row is None else pieces.row[starts]
    owner = batch.owners_at(row)
    heads = (batch.devices_at(row) * (1 << 24) + pieces.hour[starts]) * (int(owner.max()) + 1) + owner
    if (np.diff(heads) > 0).all():
        return np.arange(len(starts))
    return np.unique(heads, return_inverse=True)[1].reshape(-1)  # owners take turns within the hour


def kinds(state: np.ndarray, readings: Mapping[str, np.ndarray], limit_w: np.ndarray) -> np.ndarray:
    """A small number per row, equal where state, power limit and MIG share are: a line holds one of each."""
    kind = state.astype(np.int64)
    share = readings.get("slice_ratio")
    for values, factor in ((share, PPM), (limit_w, 1e3)):  # as finely as lines write them
        if values is not None and len(values):
            codes, count = _run_codes(values, factor)
            kind = kind if codes is None else kind * count + codes
    return kind


def _run_codes(values: np.ndarray, factor: float) -> tuple[np.ndarray | None, int]:
    """Numbers for values that change seldom, equal where values x factor round alike (None: all do); how many."""
    if (blank := np.isnan(values)).any():
        values = np.where(blank, -1.0, values)
    heads = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    found, codes = np.unique(whole(values[heads], factor), return_inverse=True)
    if len(found) == 1:
        return None, 1
    return np.repeat(codes.reshape(-1), np.diff(heads, append=len(values))), len(found)
