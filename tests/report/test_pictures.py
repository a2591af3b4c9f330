"""Does one definition give PNG, SVG, HTML and a notebook chart?"""

from __future__ import annotations

import dataclasses
import re
import struct
from pathlib import Path

import altair as alt
import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.errors import FileFault, InputError
from gpuledger.report.charts import chart as chart_of
from gpuledger.report.charts import chart_names
from gpuledger.report.documents.efficiency import EfficiencyView
from gpuledger.report.render.pictures import save, to_html, to_png, to_svg


def chart(name: str, s: EfficiencyStatement, theme: str = "light") -> alt.TopLevelMixin:
    return chart_of(name, EfficiencyView(s, load_thresholds()), theme)


HOSTILE = "</script><script>alert(1)</script>"


def test_each_chart_is_a_picture_of_page_width(statement: EfficiencyStatement) -> None:
    for name in chart_names("efficiency"):
        svg = to_svg(chart(name, statement))
        width = float(re.search(r'viewBox="0 0 (\S+)', svg)[1])  # type: ignore[index]
        assert 600 < width <= 960, name


def test_png_has_twice_the_points(statement: EfficiencyStatement) -> None:
    made = chart("roi", statement)
    png = to_png(made)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    wide = struct.unpack(">I", png[16:20])[0]
    points = float(re.search(r'viewBox="0 0 (\S+)', to_svg(made))[1])  # type: ignore[index]
    assert wide == pytest.approx(2 * points, abs=2)


def test_a_notebook_gets_an_altair_chart(statement: EfficiencyStatement) -> None:
    made = chart("fleet_over_time", statement, "dark")
    assert isinstance(made, alt.VConcatChart)
    assert made.to_dict()["config"]["background"] == "#14181d"


def test_html_needs_no_network_and_no_label_ends_its_script(statement: EfficiencyStatement) -> None:
    evil = dataclasses.replace(statement, by_namespace=(dataclasses.replace(statement.by_namespace[0], name=HOSTILE),))
    page = to_html(chart("namespaces", evil))
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)\s*=\s*["\']?http', page)


def test_save_by_suffix(statement: EfficiencyStatement, tmp_path: Path) -> None:
    made = chart("roi", statement)
    assert save(made, tmp_path / "roi.svg").read_text().startswith("<svg")
    assert save(made, tmp_path / "roi.PNG").read_bytes()[1:4] == b"PNG"
    with pytest.raises(InputError, match=r"\.png, \.svg or \.html"):
        save(made, tmp_path / "roi.gif")
    with pytest.raises(FileFault, match="no such file or folder"):
        save(made, tmp_path / "nowhere" / "roi.svg")
