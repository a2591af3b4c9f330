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
    """Pieces in order of device and time, and the lines they make.

    `runs` is where runs of pieces of one line start, `run_line` the line of each; there are `count` lines.
    """

    pieces: Pieces
    runs: np.ndarray
    run_line: np.ndarray
    count: int

    def of(self, values: np.ndarray) -> np.ndarray:
        """Per-sample values, one for each piece."""
        return values if self.pieces.row is None else values.take(self.pieces.row)  # a third faster than an index

    def opening(self, marked: np.ndarray) -> np.ndarray:
        """Per-sample marks, each on the piece that opens its sample."""
        opens = self.pieces.opens
        return self.of(marked) if opens is None else self.of(marked) & opens

    def line_of(self, pieces: np.ndarray) -> np.ndarray:
        """The line of some pieces."""
        return np.asarray(self.run_line[np.searchsorted(self.runs, pieces, side="right") - 1])

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
        return np.where(there, self.line_of(place), -1)

    def lengths(self) -> np.ndarray:
        """How many pieces each line has."""
        lengths = np.diff(self.runs, append=len(self.pieces.ms))
        return np.bincount(self.run_line, lengths, self.count).astype(np.int64)

    @cached_property
    def samples(self) -> np.ndarray:
        """The first sample of each line."""
        return self.first if self.pieces.row is None else self.pieces.row[self.first]

    @cached_property
    def first(self) -> np.ndarray:
        """The first piece of each line."""
        out = np.empty(self.count, dtype=np.int64)
        out[self.run_line[::-1]] = self.runs[::-1]  # of several runs the first is written last
        return out

    @property
    def last(self) -> np.ndarray:
        """The last piece of each line."""
        out = np.empty(self.count, dtype=np.int64)
        out[self.run_line] = np.append(self.runs[1:], len(self.pieces.ms)) - 1
        return out


def by_line(pieces: Pieces, batch: Batch, kind: np.ndarray) -> Grouped:
    """Find the pieces of each line; `kind`: by sample a number, equal where a line may hold both."""
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
    together, run_line = None, np.empty(len(runs), dtype=np.int64)
    if (np.diff(code) < 0).any():
        together = np.argsort(code.astype(np.uint16) if int(code.max()) < 1 << 16 else code, kind="stable")
        code = code[together]
    number = np.cumsum(np.diff(code, prepend=-1) != 0) - 1
    run_line[slice(None) if together is None else together] = number
    return Grouped(pieces, runs, run_line, int(number[-1]) + 1)


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
