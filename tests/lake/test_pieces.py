"""Into how many pieces is a file cut, and how long does it take to share them out?"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuledger.lake import pieces
from gpuledger.lake.by_day import grouped
from gpuledger.lake.pieces import pieces_of
from gpuledger.lake.taking import Piece, Reading
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR

FIRST_DAY = 20_600


def write_groups(file: Path, groups: int, rows: int) -> None:
    """A file whose row groups are each of another day than the one before, five days in all."""
    at_ms = (FIRST_DAY + np.arange(groups * rows) // rows % 5) * MS_PER_DAY + np.arange(groups * rows) % MS_PER_HOUR
    columns = {
        "timestamp": pa.array(at_ms).cast(pa.timestamp("ms", "UTC")),
        "UUID": pa.array(["GPU-0"] * len(at_ms)),
        "DCGM_FI_DEV_GPU_UTIL": pa.array(np.full(len(at_ms), 50.0)),
    }
    pq.write_table(pa.table(columns), file, row_group_size=rows)


def test_small_row_groups_of_changing_days_are_taken_together(tmp_path: Path) -> None:
    file = tmp_path / "small.parquet"
    write_groups(file, 400, 10)
    (piece,) = pieces_of([file], Reading())
    assert (piece.groups, piece.days, piece.rows) == ((0, 399), (FIRST_DAY, FIRST_DAY + 4), 4000)


def test_a_file_of_very_many_row_groups_has_few_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 20)
    file = tmp_path / "many.parquet"
    write_groups(file, 3000, 2)
    found = pieces_of([file], Reading())
    assert len(found) <= 300
    assert [p.before for p in found] == np.cumsum([0, *(p.rows for p in found[:-1])]).tolist()
    assert sum(p.rows for p in found) == 6000
    assert [n for p in found if p.groups for n in range(p.groups[0], p.groups[1] + 1)] == list(range(3000))


@pytest.mark.parametrize("days", [2, 30, 3000])
def test_sharing_out_pieces_takes_no_time_to_speak_of(days: int) -> None:
    spread = [(FIRST_DAY - days - n % 50, FIRST_DAY + n % 3) for n in range(256)]
    found = [Piece("file", n, groups=(n, n), days=span, rows=1000 + n) for n, span in enumerate(spread)]
    before = time.process_time()
    groups = grouped(found, 64)
    assert time.process_time() - before < 2.0
    assert groups is not None
    assert sorted(p.number for group in groups for p in group.pieces) == list(range(256))
