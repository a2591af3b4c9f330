"""Do the audit's files land whole, with the same figures in each?"""

from __future__ import annotations

import csv
import json
from decimal import Decimal

import pytest

from gpuledger.advice.statement import to_json
from gpuledger.cost.statement import BUCKETS
from gpuledger.errors import UnknownName
from gpuledger.report.write_audit import write_audit


def test_all_files(audit, tmp_path):
    heard = []
    out = write_audit(audit, tmp_path / "new", progress=heard.append)
    charts = {f"charts/{n}.{k}" for n in ("bill", "savings", "owners") for k in ("png", "svg")}
    assert set(out) == {"audit.html", "audit.md", "audit.json", "cost_by_gpu.csv", "recommendations.csv"} | charts
    assert all(path.stat().st_size > 100 for path in out.values())
    assert json.loads(out["audit.json"].read_text()) == json.loads(json.dumps(to_json(audit)))
    assert "](<charts/bill.png>)" in out["audit.md"].read_text()
    assert heard[0] == "drawing the charts"


def test_csv_rows_hold_unrounded_dollars(audit, unpriced_audit, tmp_path):
    out = write_audit(audit, tmp_path, formats=("csv",), charts=False)
    rows = list(csv.DictReader(out["cost_by_gpu.csv"].read_text().splitlines()))
    assert [r["gpu_uuid"] for r in rows] == [g.gpu_uuid for g in audit.cost.by_gpu]
    paid = sum(Decimal(r["paid_usd"]) for r in rows)
    assert paid == audit.cost.paid_usd == sum(Decimal(r[f"{b}_usd"]) for r in rows for b in BUCKETS)
    assert all(Decimal(r["unrated_usd"]) > 0 for r in rows)
    advice = list(csv.DictReader(out["recommendations.csv"].read_text().splitlines()))
    assert [r["id"] for r in advice] == [r.id for r in audit.recommendations]
    blank = write_audit(unpriced_audit, tmp_path / "b", formats=("csv",), charts=False)
    rows = list(csv.DictReader(blank["cost_by_gpu.csv"].read_text().splitlines()))
    assert {r[name] for r in rows for name in ("paid_usd", *(f"{b}_usd" for b in BUCKETS))} == {""}
    assert [r["price_words"] for r in rows] == [g.price_words for g in unpriced_audit.cost.by_gpu]


def test_only_what_is_asked_for(audit, tmp_path):
    assert list(write_audit(audit, tmp_path, formats=("md",), charts=False)) == ["audit.md"]
    with pytest.raises(UnknownName, match="did you mean html"):
        write_audit(audit, tmp_path, formats=("htm",))
