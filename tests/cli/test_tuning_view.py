"""Is the ladder of a tuned job whole on a narrow screen, and does it say no more than was measured?"""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from gpuledger.cli.views.tuning import parts

KEPT = Path(__file__).parents[2] / "docs" / "results" / "training_h200.json"


@pytest.fixture
def told():
    return copy.deepcopy(json.loads(KEPT.read_text(encoding="utf-8"))["worked"])


def drawn(told, width=80):
    out = io.StringIO()
    console = Console(file=out, width=width)
    for part in parts(told):
        console.print(part)
    assert all(len(line.rstrip()) <= width for line in out.getvalue().splitlines())
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_figure_is_cut(told, width):
    shown = drawn(told, width)
    for rung in told["ladder"]:
        assert f"{rung['mfu_pct']:.1f} %" in shown
        assert rung["parity"] is None or f"{100 * rung['parity']['deviation_ratio']:.2f} %" in shown
    assert "loss off" in shown


def test_what_was_measured_nowhere_has_no_column(told):
    for rung in told["ladder"]:
        rung |= {"mfu_pct": None, "mfu_in_use_pct": None, "utilization_pct": None}
    told["ladder"][0]["utilization_pct"] = 36.0
    head = next(line for line in drawn(told, 120).splitlines() if "samples/s" in line)
    assert "MFU" not in head
    assert "util" in head, "known at one step"


def test_an_interval_that_holds_one_is_said_to_be_noise(told):
    assert "too noisy to say" not in " ".join(drawn(told).split())
    told["total"] |= {"low": 0.93}
    assert "too noisy to say that it is faster" in " ".join(drawn(told).split())
