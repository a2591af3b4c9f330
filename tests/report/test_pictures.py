"""Does one definition give PNG, SVG and a notebook chart?"""

from __future__ import annotations

import re
import struct

import altair as alt
import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.charts import chart as chart_of
from gpuledger.report.charts import chart_names
from gpuledger.report.documents.efficiency import EfficiencyView
from gpuledger.report.render.pictures import svg_to_png, to_svg


def chart(name: str, s: EfficiencyStatement, theme: str = "light") -> alt.TopLevelMixin:
    return chart_of(name, EfficiencyView(s, load_thresholds()), theme)


def test_each_chart_is_a_picture_of_page_width(statement: EfficiencyStatement) -> None:
    for name in chart_names("efficiency"):
        svg = to_svg(chart(name, statement))
        width = float(re.search(r'viewBox="0 0 (\S+)', svg)[1])  # type: ignore[index]
        assert 600 < width <= 960, name


def test_png_has_twice_the_points(statement: EfficiencyStatement) -> None:
    made = chart("roi", statement)
    png = svg_to_png(to_svg(made))
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    wide = struct.unpack(">I", png[16:20])[0]
    points = float(re.search(r'viewBox="0 0 (\S+)', to_svg(made))[1])  # type: ignore[index]
    assert wide == pytest.approx(2 * points, abs=2)


def test_a_notebook_gets_an_altair_chart(statement: EfficiencyStatement) -> None:
    made = chart("fleet_over_time", statement, "dark")
    assert isinstance(made, alt.VConcatChart)
    assert made.to_dict()["config"]["background"] == "#14181d"
