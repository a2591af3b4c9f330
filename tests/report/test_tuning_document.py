"""Is the ladder of a tuned job whole on a narrow screen, and does it say no more than was measured?"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from gpuledger.cli.screen import Screen
from gpuledger.cli.showing import show
from gpuledger.report.documents.tuning import tuning_document

KEPT = Path(__file__).parents[2] / "docs" / "results" / "training_h200.json"


@pytest.fixture
def tuning():
    kept = copy.deepcopy(json.loads(KEPT.read_text(encoding="utf-8"))["worked"])
    # Written before all statements listed what is unknown in one shape.
    kept["not_known"] = [{"figure": name, "why": why, "count": 1} for name, why in kept["not_known"].items()]
    return kept


@pytest.fixture
def drawn(capsys, monkeypatch):
    def draw(tuning, width=80):
        monkeypatch.setenv("COLUMNS", str(width))
        show(tuning_document(tuning), {}, Screen())
        shown = capsys.readouterr().out.replace("\u202f", " ")
        assert all(len(line.rstrip()) <= width for line in shown.splitlines())
        return shown

    return draw


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_figure_is_cut(tuning, drawn, width):
    shown = drawn(tuning, width)
    for rung in tuning["ladder"]:
        assert f"{rung['mfu_pct']:.1f} %" in shown
        assert rung["parity"] is None or f"{100 * rung['parity']['deviation_ratio']:.2f} %" in shown
    assert "Loss" in shown


def test_what_was_measured_nowhere_has_no_column(tuning, drawn):
    for rung in tuning["ladder"]:
        rung |= {"mfu_pct": None, "mfu_in_use_pct": None, "utilization_pct": None}
    tuning["ladder"][0]["utilization_pct"] = 36.0
    head = next(line for line in drawn(tuning, 120).splitlines() if "Samples/s" in line)
    assert "MFU" not in head
    assert "Util" in head, "known at one step"


def test_an_interval_that_holds_one_is_said_to_be_noise(tuning, drawn):
    assert "Too noisy to say" not in " ".join(drawn(tuning).split())
    tuning["total"] |= {"low": 0.93}
    assert "Too noisy to say that it is faster" in " ".join(drawn(tuning).split())
