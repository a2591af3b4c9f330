"""Do charts in the page follow its colours and stay quiet about their makings?"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.charts import chart_names, drawing
from gpuledger.report.documents.efficiency import EfficiencyView
from gpuledger.report.render.pictures import page_svg
from gpuledger.report.theme import load_theme


@pytest.fixture(scope="module")
def pictures(statement: EfficiencyStatement) -> dict[str, str]:
    light, limits = load_theme("light"), load_thresholds()
    return {
        name: page_svg(name, drawing(name, EfficiencyView(statement, limits), light))
        for name in chart_names("efficiency")
    }


def test_every_colour_is_a_variable_of_the_page(pictures: dict[str, str]) -> None:
    for name, svg in pictures.items():
        assert not re.findall(r'(?:fill|stroke)="#', svg), name
        roles = {role.replace("_", "-") for role in load_theme("light").palette.roles()}
        assert set(re.findall(r"var\(--([a-z-]+)\)", svg)) <= roles


def test_well_formed_with_words_for_those_who_cannot_see(pictures: dict[str, str]) -> None:
    for name, svg in pictures.items():
        root = ET.fromstring(svg)
        assert root.get("role") == "img"
        assert len(root.get("aria-label", "")) > 20, name


def test_marks_tell_their_figures(pictures: dict[str, str], statement: EfficiencyStatement) -> None:
    assert pictures["bottlenecked_gpus"].count("data-tip=") == 50
    assert pictures["utilization_vs_power"].count("data-tip=") == len(statement.util_power)
    assert pictures["fleet_over_time"].count("data-tip=") == 3 * len(statement.hours)


def test_the_title_is_left_to_the_page(pictures: dict[str, str], statement: EfficiencyStatement) -> None:
    title = drawing("roi", EfficiencyView(statement, load_thresholds()), load_theme("light")).title
    assert f">{title}<" not in pictures["roi"]
