"""Do the benchmarks of plans run what needs no outside data, say what they leave out, and write no half page?"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

PLANS = Path(__file__).parents[2] / "benchmarks" / "plans"


def run(monkeypatch, name, *args):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, args)])
    monkeypatch.syspath_prepend(PLANS)
    runpy.run_path(str(PLANS / f"{name}.py"), run_name="__main__")


@pytest.mark.parametrize(("name", "shown"), [("tco", "308,281.728"), ("capacity", "")])
def test_what_needs_no_data_is_run_and_the_rest_named(monkeypatch, capsys, name, shown):
    run(monkeypatch, name)
    out = capsys.readouterr().out
    assert shown in out
    assert "Left out without" in out


@pytest.mark.parametrize("name", ["tco", "regions", "batch", "autoscale", "capacity"])
def test_a_page_is_not_written_without_data(monkeypatch, capsys, tmp_path, name):
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, name, "--update", tmp_path / "page.md")
    assert ended.value.code == 2
    assert "--update needs --data" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()
