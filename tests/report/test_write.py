"""Does the report land whole, or not at all?"""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.advice.statement import to_json as audit_json
from gpuledger.cost.statement import BUCKETS
from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.errors import FileFault, GpuledgerError, UnknownName
from gpuledger.report.charts import chart_names
from gpuledger.report.documents.audit import audit_document
from gpuledger.report.documents.efficiency import efficiency_document
from gpuledger.report.write import write_document, write_whole


def test_all_files(statement: EfficiencyStatement, tmp_path: Path) -> None:
    heard: list[str] = []
    out = write_document(efficiency_document(statement), tmp_path / "new" / "out", progress=heard.append)
    pictures = {f"charts/{name}.{kind}" for name in chart_names("efficiency") for kind in ("png", "svg")}
    tables = {"gpu_summary.csv", "bottlenecked_gpus.csv", "hourly_fleet.csv", "gpu_health.csv"}
    assert set(out) == {"report.html", "report.md", "report.json"} | tables | pictures
    assert all(path.stat().st_size > (1000 if path.suffix != ".csv" else 40) for path in out.values())
    assert json.loads(out["report.json"].read_text()) == json.loads(json.dumps(to_json(statement)))
    for name in chart_names("efficiency"):
        assert f"charts/{name}.png" in out["report.md"].read_text()
    left = [p.name for p in (tmp_path / "new" / "out").rglob("*") if p.name.startswith(".")]
    assert left == []
    assert heard[:2] == ["drawing the charts", "charts/utilization_vs_power"]
    assert heard[-7:-4] == ["report.html", "report.md", "report.json"]


def test_only_what_is_asked_for(statement: EfficiencyStatement, tmp_path: Path) -> None:
    out = write_document(efficiency_document(statement), tmp_path, formats=("md",), charts=False)
    assert [p.name for p in tmp_path.iterdir()] == ["report.md"] == list(out)
    assert "charts/" not in out["report.md"].read_text()


def test_same_statement_same_bytes(statement: EfficiencyStatement, tmp_path: Path) -> None:
    first = write_document(efficiency_document(statement), tmp_path / "a", formats=("html", "json"), charts=False)
    second = write_document(efficiency_document(statement), tmp_path / "b", formats=("html", "json"), charts=False)
    assert all(first[name].read_bytes() == second[name].read_bytes() for name in first)


def test_unknown_format_writes_nothing(statement: EfficiencyStatement, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean html"):
        write_document(efficiency_document(statement), tmp_path, formats=("md", "htm"), charts=False)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write_whole(tmp_path / "report.html", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpuledger.lake.stores.folder.os.fsync", full)
    with pytest.raises(GpuledgerError, match="disk is full"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises((FileFault, GpuledgerError), match="cannot write the report"):
        write_whole(tmp_path / "out" / "report.html", "x")


def test_all_files_of_an_audit(audit, tmp_path):
    heard = []
    out = write_document(audit_document(audit), tmp_path / "new", progress=heard.append)
    charts = {f"charts/{n}.{k}" for n in ("bill", "savings", "owners") for k in ("png", "svg")}
    assert set(out) == {"audit.html", "audit.md", "audit.json", "cost_by_gpu.csv", "recommendations.csv"} | charts
    assert all(path.stat().st_size > 100 for path in out.values())
    assert json.loads(out["audit.json"].read_text()) == json.loads(json.dumps(audit_json(audit)))
    assert "](<charts/bill.png>)" in out["audit.md"].read_text()
    assert heard[0] == "drawing the charts"


def test_csv_rows_hold_unrounded_dollars(audit, unpriced_audit, tmp_path):
    out = write_document(audit_document(audit), tmp_path, formats=("csv",), charts=False)
    rows = list(csv.DictReader(out["cost_by_gpu.csv"].read_text().splitlines()))
    assert [r["gpu_uuid"] for r in rows] == [g.gpu_uuid for g in audit.cost.by_gpu]
    paid = sum(Decimal(r["paid_usd"]) for r in rows)
    assert paid == audit.cost.paid_usd == sum(Decimal(r[f"{b}_usd"]) for r in rows for b in BUCKETS)
    assert all(Decimal(r["unrated_usd"]) > 0 for r in rows)
    advice = list(csv.DictReader(out["recommendations.csv"].read_text().splitlines()))
    assert [r["id"] for r in advice] == [r.id for r in audit.recommendations]
    blank = write_document(audit_document(unpriced_audit), tmp_path / "b", formats=("csv",), charts=False)
    rows = list(csv.DictReader(blank["cost_by_gpu.csv"].read_text().splitlines()))
    assert {r[name] for r in rows for name in ("paid_usd", *(f"{b}_usd" for b in BUCKETS))} == {""}
    assert [r["price_words"] for r in rows] == [g.price_words for g in unpriced_audit.cost.by_gpu]


def test_only_what_is_asked_for_of_an_audit(audit, tmp_path):
    assert list(write_document(audit_document(audit), tmp_path, formats=("md",), charts=False)) == ["audit.md"]
    with pytest.raises(UnknownName, match="did you mean html"):
        write_document(audit_document(audit), tmp_path, formats=("htm",))
