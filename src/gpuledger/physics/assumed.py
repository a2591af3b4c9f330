"""What was assumed of the work in each row, in words?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gpuledger.physics.pipes import INTEGER

Sums = Mapping[str, np.ndarray]

TENSOR_ONLY = "only the tensor pipe is recorded: a lower bound"
NO_TENSOR = "the tensor pipe is not recorded: a lower bound"
PART_VECTOR = "vector pipes are recorded for part of the time: a lower bound"
NO_CLOCK = "the SM clock is not recorded: the rated clock is assumed, a range and no point"
THIN = "few warps and vector work next to products: taken as decoding, where part of the tensor activity is padding"
_DECIDES = {
    "sm_ms": "SM activity",
    "occupancy_ms": "SM occupancy",
    "dram_ms": "memory activity",
    "engine_ms": "engine activity",
}
LOOSE = "the counters do not tell what the tensor pipe works on, as in decoding for few users: a range, no point"


class Rated(Protocol):
    """What decides the notes of a kind of rows."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of all rows."""

    @property
    def thin(self) -> Any:
        """Whether rows were taken to decode."""

    @property
    def blind(self) -> Any:
        """Whether a counter that decides is missing."""

    @property
    def ranges_only(self) -> frozenset[str]:
        """Pipes of which only a range is known."""


def blind(missing: Sequence[bool]) -> str:
    """The note on counters that are not recorded, of those that decide."""
    names = [name for name, gone in zip(_DECIDES.values(), missing, strict=True) if gone]
    return f"not recorded: {', '.join(names) or 'a counter for part of the time'}: a range, no point"


def note_rows(
    notes: list[frozenset[str]],
    sums: Sums,
    rows: np.ndarray,
    rates: Rated,
    hidden: np.ndarray,
    ranged: np.ndarray,
) -> None:
    integer = (INTEGER in rates.notes) | ((sums["imma"][rows] > 0) & ("imma" in rates.ranges_only))
    thin, unseen = (np.broadcast_to(np.asarray(flag, dtype=bool), len(rows)) for flag in (rates.thin, rates.blind))
    columns = [sums[name][rows] > 0 for name in ("counters_ms", "matrix_ms", "vector_ms", "unclocked_ms")]
    missing = [(sums[name][rows] == 0) & unseen & ranged for name in _DECIDES]
    cases = dict[tuple[bool, ...], frozenset[str]]()
    flags = (*columns, hidden, thin & ~ranged, ranged & ~unseen & ~integer, integer & columns[1], unseen & ranged)
    for row, *case in zip(rows.tolist(), *(c.tolist() for c in (*flags, *missing)), strict=True):
        key = tuple(case)
        if key not in cases:
            cases[key] = _assumed(rates.notes, key[: len(columns)], key[len(columns) : len(flags)], key[len(flags) :])
        notes[row] = cases[key]


def _assumed(
    general: Sequence[str], columns: tuple[bool, ...], flags: tuple[bool, ...], missing: tuple[bool, ...]
) -> frozenset[str]:
    (recorded, matrix, vector, unclocked), (hidden, thin, loose, integer, unseen) = columns, flags
    if not recorded:
        return frozenset()
    seen = {THIN: thin, LOOSE: loose, INTEGER: integer, NO_CLOCK: unclocked}
    said = [*(n for n in general if n != INTEGER), *(note for note, holds in seen.items() if holds)]
    if unseen:
        said.append(blind(missing))
    if hidden:
        said.append(TENSOR_ONLY if matrix and not vector else NO_TENSOR if not matrix else PART_VECTOR)
    return frozenset(said)
