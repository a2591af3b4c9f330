"""What is known of rows that were put in order and spilled, without reading them?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from gpuledger.lake.batch import board_of
from gpuledger.lake.sorting.narrow import Narrow, SeriesNote
from gpuledger.native.packing import Packing
from gpuledger.units import MS_PER_DAY


class Slice(msgspec.Struct, frozen=True):
    """Consecutive rows of one day in a run: its devices in order of name, how many rows each has.

    `constants`: readings that are the same in all rows of its run, which then lacks them; `packings`: how it keeps the
    others; `first_ms`: the first instant of that run.
    """

    day: int
    devices: list[str]
    counts: list[int]
    index: int
    constants: dict[str, float | int | None] = {}
    packings: dict[str, Packing] = {}
    first_ms: int = 0


class Run(msgspec.Struct, frozen=True):
    """A spilled run: its file, its slices, and which note tells the labels of its rows."""

    file: str
    slices: list[Slice]
    note: int = -1


class Handed(msgspec.Struct, frozen=True):
    """All that a sorter took in, spilled, for another to go on with.

    `full`: columns that every row has filled; `spoken`: those that some row has.
    """

    runs: list[Run]
    notes: list[SeriesNote]
    full: list[str]
    spoken: list[str]
    repeats: int = 0


@dataclass(frozen=True)
class Piece:
    """A slice at hand: in a run that was spilled, or in memory among the `rows` of its run, from `start` on."""

    slice: Slice
    run: int
    rows: Narrow | None = None
    start: int = 0

    def own(self) -> Narrow:
        """The rows of the slice, where it is in memory."""
        assert self.rows is not None
        return self.rows.at(self.start, sum(self.slice.counts))

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        assert self.rows is not None
        return sum(self.slice.counts) * sum(column.type.bit_width for column in self.rows.columns.values()) // 8


def pieces_of(rows: Narrow, key: np.ndarray, first_ms: int, names: list[str], most: int) -> list[Piece]:
    """The rows of a run, in order of key, in slices of whole devices of a day, of up to `most` rows where they can be.

    A key is the day, counted from that of the first instant, and then the device by its place in `names`.
    """
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    values, rows_of, at = key[starts], np.diff(starts, append=len(key)).tolist(), 0
    days, codes = (values // len(names) + first_ms // MS_PER_DAY).tolist(), (values % len(names)).tolist()
    out, how = list[Piece](), (rows.constants, rows.packings, first_ms)
    while at < len(rows_of):
        end, count = at + 1, rows_of[at]
        while end < len(rows_of) and days[end] == days[at] and count + rows_of[end] <= most:
            count += rows_of[end]
            end += 1
        note = Slice(days[at], [names[c] for c in codes[at:end]], rows_of[at:end], -1, *how)
        out.append(Piece(note, -1, rows, int(starts[at])))
        at = end
    return out


def moved(handed: Handed, move: Callable[[list[str]], list[str]]) -> Handed:
    """The same rows, in files that were moved: `move` returns where to."""
    files = move([run.file for run in handed.runs])
    runs = [msgspec.structs.replace(run, file=file) for run, file in zip(handed.runs, files, strict=True)]
    return msgspec.structs.replace(handed, runs=runs)


def shares_of(pieces: Sequence[Piece], rows: int, first: str = "", last: str = "\U0010ffff") -> Iterator[list[str]]:
    """The devices from `first` to `last` in shares of about `rows` rows; a board is never in two."""
    held: dict[str, int] = defaultdict(int)
    for piece in pieces:
        for device, count in zip(piece.slice.devices, piece.slice.counts, strict=True):
            held[device] += count
    share, total = list[str](), 0
    for device in sorted(d for d in held if first <= d <= last):
        if share and total + held[device] > rows and board_of(device) != board_of(share[-1]):
            yield share
            share, total = [], 0
        share.append(device)
        total += held[device]
    if share:
        yield share
