"""Does audit.md say what the page says, and stay Markdown whatever the labels are?"""

from __future__ import annotations

import dataclasses
import re

from gpuledger.report.audit_markdown import fenced, render_audit_markdown
from gpuledger.report.markdown import safe


def test_money_first_then_what_to_do(audit):
    lines = render_audit_markdown(audit).splitlines()
    assert lines[0] == f"# {safe(audit.headline[0])}"
    assert lines[2] == f"**{safe(audit.headline[1])}**"


def test_every_recommendation_with_its_snippet(audit):
    text = render_audit_markdown(audit)
    for i, r in enumerate(audit.recommendations, 1):
        assert f"### {i}. {r.title}" in text
        assert r.change.text.splitlines()[0] in text
    for words in (*audit.savings.words, *audit.assumptions):
        assert safe(words) in text
    assert "price of Homemade X1: not known: not in the catalog" in text


def test_a_snippet_cannot_leave_its_fence():
    made = fenced("python", "print('''```''')\n````\n")
    assert made.startswith("`````python\n")
    assert made.endswith("\n`````")


def test_tables_are_whole(audit, compared_audit, unpriced_audit):
    for made in (audit, compared_audit, unpriced_audit):
        text = render_audit_markdown(made)
        for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, block


def test_pictures_only_where_there_are_files(audit):
    assert "![" not in render_audit_markdown(audit)


def test_labels_stay_words(audit):
    rows = tuple(dataclasses.replace(r, name="a|b*c_d`e") for r in audit.cost.by_namespace)
    text = render_audit_markdown(dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_namespace=rows)))
    assert r"a\|b\*c\_d\`e" in text
