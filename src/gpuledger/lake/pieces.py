"""Into which pieces are files cut, for several processes to take?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger.lake.taking import Piece, Reading
from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.mapping import bind
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.units import MS_PER_DAY

# Rows of a piece, and of one whose times are known.
PIECE_ROWS = 1_000_000
DAY_PIECE_ROWS = 250_000
MOST_DAYS = 3660
# Pieces of a file; each takes some milliseconds to open.
MOST_PIECES = 256
# Where a file does not say how many rows it has: bytes that make a row, packed or not.
_ROW_BYTES = 64


def pieces_of(files: Sequence[Path], reading: Reading) -> list[Piece]:
    """The files, large ones in pieces where they can be cut: by day where they say of what times their rows are."""
    may_cut, pieces = reading.zone.upper() == "UTC" and reading.given.at_ms is None, list[Piece]()
    for file in files:
        opened = open_shaped(file, reading.mapping)
        groups = opened.groups if may_cut else None
        ends_ms = groups.ends_ms(_time_of(file, opened, reading)) if groups is not None else None
        if groups is not None and ends_ms and _plausible(ends_ms):
            before = 0
            for first, last in _runs_of_groups(groups.rows, ends_ms):
                rows = sum(groups.rows[first : last + 1])
                ends = ends_ms[first : last + 1]
                first_ms, last_ms = min(low for low, _ in ends), max(high for _, high in ends)
                days = first_ms // MS_PER_DAY, last_ms // MS_PER_DAY
                pieces.append(Piece(str(file), len(pieces), 0, 1, (first, last), days, rows, before, first_ms))
                before += rows
            continue
        rows = opened.rows_expected or file.stat().st_size // _ROW_BYTES
        parts = max(1, round(rows / PIECE_ROWS)) if opened.cut is not None and may_cut else 1
        pieces += [Piece(str(file), len(pieces) + part, part, parts, rows=rows // parts) for part in range(parts)]
    return pieces


def _plausible(ends_ms: Sequence[tuple[int, int]]) -> bool:
    """Whether each group is of times a sample may have, and not of a lifetime."""
    limits = schema.columns()[schema.TIME]
    assert limits.min is not None
    assert limits.max is not None
    low, high = min(first for first, _ in ends_ms), max(last for _, last in ends_ms)
    return limits.min <= low and high <= limits.max and all(b - a < MOST_DAYS * MS_PER_DAY for a, b in ends_ms)


def _time_of(file: Path, opened: Opened, reading: Reading) -> str:
    """The column of a file that its times are in; empty where there is none."""
    return bind(file, opened.names, reading.mapping or opened.mapping, reading.given).time


def _runs_of_groups(rows: Sequence[int], ends_ms: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Groups that follow each other and end on the same day, or are small: the first and the last of each piece."""
    total = sum(rows)
    few, most = max(DAY_PIECE_ROWS // 10, total // MOST_PIECES), max(DAY_PIECE_ROWS, total // MOST_PIECES)
    runs, held = list[tuple[int, int]](), 0
    for number, (_, last_ms) in enumerate(ends_ms):
        same = number > 0 and ends_ms[number - 1][1] // MS_PER_DAY == last_ms // MS_PER_DAY
        if runs and (held < few or (same and held + rows[number] <= most)):
            runs[-1] = runs[-1][0], number
            held += rows[number]
        else:
            runs.append((number, number))
            held = rows[number]
    return runs
