"""Books made of lines written by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.units import utc_day

sys.path.insert(0, str(Path(__file__).parent))

from handmade import Books


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """Writes lines into a lake of their own."""

    def write(*rows: dict[str, Any]) -> Lake:
        lake = Lake(tmp_path / "lake")
        with lake.locked():
            lake.commit([])
            for day in sorted({utc_day(r["hour_ms"]) for r in rows}):
                table = pa.Table.from_pylist([r for r in rows if utc_day(r["hour_ms"]) == day], lines.arrow_schema())
                Ledger(lake).put(PostedDay(day, 1, (1,), (), table.num_rows, 0), {"lines": table})
        return lake

    return write
