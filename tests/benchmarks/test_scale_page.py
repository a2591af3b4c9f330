"""Is the scale page what the measured weeks make of it, and does its model follow them?"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEEKS = json.loads((ROOT / "docs" / "results" / "scale.json").read_text())


@pytest.fixture(scope="module")
def scale_page():
    spec = importlib.util.spec_from_file_location("scale_page", ROOT / "benchmarks" / "scale_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_figures_of_the_kept_weeks(scale_page):
    text = (ROOT / "docs" / "scale.md").read_text()
    begin, end = text.index(scale_page.BEGIN), text.index(scale_page.END) + len(scale_page.END)
    assert text[begin:end] == scale_page.page(WEEKS, 5000)


def test_the_model_has_memory_for_every_fleet(scale_page):
    head, _, *rows = scale_page.modeled(scale_page.costs(WEEKS, 5000)).splitlines()
    names = [cell.strip() for cell in head.strip("|").split("|")]
    cells = [dict(zip(names, (c.strip() for c in row.strip("|").split("|")), strict=True)) for row in rows]
    assert len(cells) == len(scale_page.FLEETS)
    assert {row["memory of both"] for row in cells} == {"1.5 GiB"}
    of_statements = [float(row["its memory"].removesuffix(" GiB")) for row in cells]
    assert of_statements == sorted(of_statements)


def test_the_model_of_a_measured_fleet_is_near_what_was_measured(scale_page):
    found = scale_page.costs(WEEKS, 5000)
    for number, week in enumerate(WEEKS, 1):
        modeled = found["statement_base_mib"] + found["statement_mib"] * 5000 * 7 * number
        assert modeled == pytest.approx(week["analyze"]["peak_mib"], rel=0.15)
