"""Is report.md the twin of the page?"""

from __future__ import annotations

import dataclasses
import re

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.document import Code, Document
from gpuledger.report.documents.audit import audit_document
from gpuledger.report.documents.efficiency import Comparison, efficiency_document
from gpuledger.report.render.html import draw_charts
from gpuledger.report.render.markdown import render_markdown, safe
from gpuledger.report.written import NARROW


def text_of(s: EfficiencyStatement, comparison: Comparison = ()) -> str:
    return render_markdown(efficiency_document(s, comparison=comparison))


HOSTILE = "a|b <script>alert(1)</script>\n# not a heading"


def test_headings_findings_and_figures(statement: EfficiencyStatement) -> None:
    text = text_of(statement)
    assert text.startswith("# 31.4 % of active GPU time")
    assert "- Reaching 70 % RFU would be worth 3.9 GPUs." in text
    assert f"| GPU utilization | 70.9{NARROW}% |" in text
    assert "## Unknown\n\n**peak\\_tflops of Homemade X1.** the model" in text
    assert "not known: the source sends no pipe activity" in text


def test_every_table_has_as_many_cells_as_heads(statement: EfficiencyStatement) -> None:
    tables = re.findall(r"(?:^\|.*\|\n?)+", text_of(statement), flags=re.MULTILINE)
    assert len(tables) == 12
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().splitlines()}
        assert len(widths) == 1


def test_charts_are_pictures_where_given(statement: EfficiencyStatement) -> None:
    assert "![" not in text_of(statement)
    document = efficiency_document(statement)
    text = render_markdown(document, {"roi": (draw_charts(document)["roi"], "charts/roi.png")})
    assert "](<charts/roi.png>)" in text
    assert f"### Reaching 70{NARROW}% RFU would be worth 3.9 more GPUs" in text


def test_hostile_labels_stay_in_their_cell(statement: EfficiencyStatement) -> None:
    evil = dataclasses.replace(statement, by_namespace=(dataclasses.replace(statement.by_namespace[0], name=HOSTILE),))
    text = text_of(evil)
    assert "<script>" not in text
    assert "\n# not" not in text
    assert safe("a|b") == "a\\|b"


def test_comparison_and_corners(one_gpu: EfficiencyStatement, unknown_statement: EfficiencyStatement) -> None:
    assert "| PIF | 0.655 | 0.649 |" in text_of(one_gpu, comparison=[("PIF", 0.655, 0.649)])
    assert "No sample gives a namespace." in text_of(one_gpu)
    assert "not known: the source was silent" in text_of(unknown_statement)


def audit_text(audit):
    return render_markdown(audit_document(audit))


def test_money_first_then_what_to_do(audit):
    lines = audit_text(audit).splitlines()
    assert lines[0] == f"# {safe(audit.headline[0])}"
    assert lines[2] == safe(audit.headline[1])


def test_every_recommendation_with_its_snippet(audit):
    text = audit_text(audit)
    for i, r in enumerate(audit.recommendations, 1):
        assert f"### {i}. {r.title}" in text
        assert r.change.text.splitlines()[0] in text
    for words in (*audit.savings.words, *audit.assumptions):
        assert safe(words) in text
    assert "**price of Homemade X1.** not in the catalog" in text


def test_a_snippet_cannot_leave_its_fence():
    code = Code("print('''```''')\n````\n", "python")
    made = render_markdown(Document("x", "X", "x", "x", summary=[code]))
    assert "\n`````python\n" in made
    assert "\n`````\n" in made


def test_tables_are_whole(audit, compared_audit, unpriced_audit):
    for made in (audit, compared_audit, unpriced_audit):
        text = audit_text(made)
        for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, block


def test_pictures_only_where_there_are_files(audit):
    assert "![" not in audit_text(audit)


def test_labels_stay_words(audit):
    rows = tuple(dataclasses.replace(r, name="a|b*c_d`e") for r in audit.cost.by_namespace)
    text = audit_text(dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_namespace=rows)))
    assert r"a\|b\*c\_d\`e" in text
