"""Where are rows kept until their day is given out: in memory while they are little, in files when they are much?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from gpuledger.lake.sorting.runs import Piece, Run
from gpuledger.lake.sorting.spilling import spilled

# Which part of the memory is given up at a time where it is not enough.
_MADE_ROOM = 16


class Kept:
    """Slices of rows that are in order. `runs`: those in files; `held`: those in memory."""

    def __init__(self, folder: Path, memory_bytes: int, *, by_day: bool) -> None:
        """`memory_bytes`: how much is held before it is spilled; `by_day`: no file has rows of two days."""
        self._folder, self._memory_bytes, self._by_day = folder, memory_bytes, by_day
        self.runs: list[Run] = []
        self.held: list[Piece] = []
        self._bytes = 0

    def add(self, pieces: Sequence[Piece]) -> None:
        """Keep some more; where that is too much, what has been held for longest goes to files."""
        self.held += pieces
        self._bytes += sum(piece.bytes for piece in pieces)
        if self._bytes > self._memory_bytes:
            room = self._memory_bytes - self._memory_bytes // _MADE_ROOM
            sizes = accumulate((piece.bytes for piece in self.held), initial=0)
            some = next(count for count, size in enumerate(sizes) if self._bytes - size <= room)
            self._move(self.held[:some], self.held[some:])

    def spill(self, kept: Collection[int] = ()) -> None:
        """Move what is in memory to files, but for days that are `kept`."""
        wanted = [piece for piece in self.held if piece.slice.day not in kept]
        self._move(wanted, [piece for piece in self.held if piece.slice.day in kept])

    def spill_much(self, kept: Collection[int], bytes_: int) -> None:
        """The same, where that is more than some bytes."""
        if sum(piece.bytes for piece in self.held if piece.slice.day not in kept) > bytes_:
            self.spill(kept)

    def drop(self, day: int) -> None:
        """Let go of the rows of a day."""
        self._hold([piece for piece in self.held if piece.slice.day != day])
        for number, run in enumerate(self.runs):
            left = [note for note in run.slices if note.day != day]
            if run.slices and not left and Path(run.file).parent == self._folder:  # else another may still read it
                Path(run.file).unlink()
            self.runs[number] = msgspec.structs.replace(run, slices=left)

    def pieces(self) -> list[Piece]:
        """All slices, those in files first."""
        return [*(Piece(s, number) for number, run in enumerate(self.runs) for s in run.slices), *self.held]

    def _move(self, wanted: Sequence[Piece], rest: list[Piece]) -> None:
        self.runs += spilled(wanted, self._folder, len(self.runs), by_day=self._by_day)
        self._hold(rest)

    def _hold(self, held: list[Piece]) -> None:
        self.held, self._bytes = held, sum(piece.bytes for piece in held)
