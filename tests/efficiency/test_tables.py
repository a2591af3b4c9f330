"""Do the CSV rows hold what the statement says, under names that end in their unit?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.lake.layout import Lake
from gpuledger.report.documents.efficiency import csv_rows

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]


def dicts(table: list[list[Any]]) -> list[dict[str, Any]]:
    header, *rows = table
    assert len(set(header)) == len(header)
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_every_gpu_once(small_fleet: tuple[Lake, Path]) -> None:
    statement = efficiency_statement(small_fleet[0])
    rows = dicts(csv_rows("gpu_summary.csv", statement))
    assert [r["gpu_uuid"] for r in rows] == [g.gpu_uuid for g in statement.per_gpu]
    first, gpu = rows[0], statement.per_gpu[0]
    assert first["gpu_util_pct"] == gpu.means.gpu_util_pct
    assert first["rfu_counters_pct"] == gpu.means.rfu_counters_pct.middle  # type: ignore[union-attr]
    assert first["class"] == gpu.klass
    assert first["consistently_bottlenecked"] in ("yes", "no")


def test_bottlenecked_worst_first(small_fleet: tuple[Lake, Path]) -> None:
    statement = efficiency_statement(small_fleet[0])
    rows = dicts(csv_rows("bottlenecked_gpus.csv", statement))
    assert len(rows) == len(statement.bottlenecked_gpus) > 1
    shares = [r["bottlenecked_pct_of_active"] for r in rows]
    assert shares == sorted(shares, reverse=True)
    assert all(r["cause_evidence"] for r in rows)


def test_every_hour_once(small_fleet: tuple[Lake, Path]) -> None:
    statement = efficiency_statement(small_fleet[0])
    rows = dicts(csv_rows("hourly_fleet.csv", statement))
    assert len(rows) == 30
    assert (rows[0]["start_utc"], rows[0]["start_ms"]) == ("2026-01-20T00:00:00Z", statement.hours[0].start_ms)
    assert rows[0]["power_kw"] == statement.hours[0].power_kw


def test_unknown_is_an_empty_cell(state: State, line: Line) -> None:
    (row,) = dicts(csv_rows("gpu_summary.csv", state(line(0, util=0.5))))
    assert row["pif"] is None
    assert row["rfu_counters_note"] is None
    assert row["gpu_instance_id"] is None
