"""Is report.md the twin of the page?"""

from __future__ import annotations

import dataclasses
import re

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.markdown import render_markdown, safe
from gpuledger.report.written import NARROW

HOSTILE = "a|b <script>alert(1)</script>\n# not a heading"


def test_headings_findings_and_figures(statement: EfficiencyStatement) -> None:
    text = render_markdown(statement)
    assert text.startswith("# 31.4 % of active GPU time")
    assert "- Reaching 70 % RFU would be worth 3.9 GPUs." in text
    assert f"| GPU utilization | 70.9{NARROW}% |" in text
    assert "## Not known\n\n- peak\\_tflops of Homemade X1: not known: the model" in text
    assert "not known: the source sends no pipe activity" in text


def test_every_table_has_as_many_cells_as_heads(statement: EfficiencyStatement) -> None:
    tables = re.findall(r"(?:^\|.*\|\n?)+", render_markdown(statement), flags=re.MULTILINE)
    assert len(tables) == 12
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().splitlines()}
        assert len(widths) == 1


def test_charts_are_pictures_where_given(statement: EfficiencyStatement) -> None:
    assert "![" not in render_markdown(statement)
    text = render_markdown(statement, charts={"roi": "charts/roi.png"})
    assert "](<charts/roi.png>)" in text
    assert f"### Reaching 70{NARROW}% RFU would be worth 3.9 more GPUs" in text


def test_hostile_labels_stay_in_their_cell(statement: EfficiencyStatement) -> None:
    evil = dataclasses.replace(statement, by_namespace=(dataclasses.replace(statement.by_namespace[0], name=HOSTILE),))
    text = render_markdown(evil)
    assert "<script>" not in text
    assert "\n# not" not in text
    assert safe("a|b") == "a\\|b"


def test_comparison_and_corners(one_gpu: EfficiencyStatement, unknown_statement: EfficiencyStatement) -> None:
    assert "| PIF | 0.655 | 0.649 |" in render_markdown(one_gpu, comparison=[("PIF", 0.655, 0.649)])
    assert "No sample gives a namespace." in render_markdown(one_gpu)
    assert "not known: the source was silent" in render_markdown(unknown_statement)
