"""Books made of lines written by hand, and the demo fleet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines, spells
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.posting import PODS
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.telemetry.schema import DEVICE
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import utc_day

sys.path.insert(0, str(Path(__file__).parent))


def _spells(rows: list[dict[str, Any]]) -> pa.Table:
    """A line's idle time as a spell at its start."""
    found = [
        {c: row[c] for c in DEVICE} | {"start_ms": row["first_ms"], "end_ms": row["first_ms"] + ms, "kind": kind}
        for row in rows
        for kind in ("idle", "idle_held", "idle_unknown")
        if (ms := row[f"{kind}_ms"])
    ]
    return pa.Table.from_pylist(found, spells.SCHEMA)


def _pods(rows: list[dict[str, Any]]) -> pa.Table:
    """The pod of each line that names one."""
    return pa.Table.from_pylist([{c: row.get(c) for c in PODS.names} for row in rows if row["pod"]], PODS)


@pytest.fixture
def books(tmp_path: Path) -> Callable[..., Lake]:
    """Writes lines into a lake of their own."""

    def write(*rows: dict[str, Any]) -> Lake:
        lake = Lake(tmp_path / "lake")
        with lake.locked():
            lake.commit([])
            for day in sorted({utc_day(r["hour_ms"]) for r in rows}):
                mine = [r for r in rows if utc_day(r["hour_ms"]) == day]
                table = pa.Table.from_pylist(mine, lines.arrow_schema())
                posted = PostedDay(day, 1, (1,), (), table.num_rows, 0)
                Ledger(lake).put(posted, {"lines": table, "spells": _spells(mine), "pods": _pods(mine)})
                if any(r["state"] is None for r in mine):  # version 1 had no sums by day
                    Ledger(lake).commit(posted)
        return lake

    return write


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The demo fleet, a sample every ten minutes."""
    folder = tmp_path_factory.mktemp("audit-demo")
    write_fleet(FleetSpec(step_s=600), folder / "fleet.parquet")
    lake = Lake(folder / "lake")
    import_files(lake, [folder / "fleet.parquet"])
    post_lake(lake, load_thresholds())
    return lake
