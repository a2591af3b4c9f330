"""Are the documents written where charts cannot be drawn?"""

from __future__ import annotations

import pytest

from gpuledger.cli import drawing
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet


@pytest.mark.parametrize(("command", "page"), [("analyze", "report.html"), ("audit", "audit.html")])
def test_documents_without_the_extra(command, page, tmp_path, cli, monkeypatch):
    write_fleet(FleetSpec(gpus=3, days=0.1), tmp_path / "f.parquet")
    assert cli("import", tmp_path / "f.parquet", "--lake", tmp_path / "lake", "--json").code == 0
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    done = cli(command, "--lake", tmp_path / "lake", "--out", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert "gpuledger[charts]" in done.err
    assert done.json()
    assert (tmp_path / "out" / page).is_file()
    assert not (tmp_path / "out" / "charts").exists()
