"""Does the report land whole, or not at all?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.errors import FileFault, GpuledgerError, UnknownName
from gpuledger.report.charts import chart_names
from gpuledger.report.write import write_report, write_whole


def test_all_files(statement: EfficiencyStatement, tmp_path: Path) -> None:
    heard: list[str] = []
    out = write_report(statement, tmp_path / "new" / "out", progress=heard.append)
    pictures = {f"charts/{name}.{kind}" for name in chart_names() for kind in ("png", "svg")}
    assert set(out) == {"report.html", "report.md", "report.json"} | pictures
    assert all(path.stat().st_size > 1000 for path in out.values())
    assert json.loads(out["report.json"].read_text()) == json.loads(json.dumps(to_json(statement)))
    for name in chart_names():
        assert f"charts/{name}.png" in out["report.md"].read_text()
    left = [p.name for p in (tmp_path / "new" / "out").rglob("*") if p.name.startswith(".")]
    assert left == []
    assert heard[:2] == ["drawing the charts", "charts/utilization_vs_power"]
    assert heard[-3:] == ["report.html", "report.md", "report.json"]


def test_only_what_is_asked_for(statement: EfficiencyStatement, tmp_path: Path) -> None:
    out = write_report(statement, tmp_path, formats=("md",), charts=False)
    assert [p.name for p in tmp_path.iterdir()] == ["report.md"] == list(out)
    assert "charts/" not in out["report.md"].read_text()


def test_same_statement_same_bytes(statement: EfficiencyStatement, tmp_path: Path) -> None:
    first = write_report(statement, tmp_path / "a", formats=("html", "json"), charts=False)
    second = write_report(statement, tmp_path / "b", formats=("html", "json"), charts=False)
    assert all(first[name].read_bytes() == second[name].read_bytes() for name in first)


def test_unknown_format_writes_nothing(statement: EfficiencyStatement, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean html"):
        write_report(statement, tmp_path, formats=("md", "htm"), charts=False)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write_whole(tmp_path / "report.html", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpuledger.report.write.os.fsync", full)
    with pytest.raises(GpuledgerError, match="disk is full"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises((FileFault, GpuledgerError), match="cannot write the report"):
        write_whole(tmp_path / "out" / "report.html", "x")
