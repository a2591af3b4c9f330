"""Does report.html open offline, hold the statement's figures and trust no label?"""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest

from gpuledger.efficiency.statement import EfficiencyStatement, NotKnown, to_json
from gpuledger.physics.causes import LikelyCause
from gpuledger.report.charts import CHARTS, chart_names
from gpuledger.report.document import Bullets
from gpuledger.report.documents.efficiency import (
    Comparison,
    efficiency_document,
    facts,
    headline,
    key_figures,
    next_target,
)
from gpuledger.report.outline import load_outline
from gpuledger.report.render.html import render_html
from gpuledger.report.written import NARROW, percent
from reading import Page

HOSTILE = '<script>alert("x")</script>'


def page_of(s: EfficiencyStatement, *, charts: bool = True, comparison: Comparison = ()) -> str:
    return render_html(efficiency_document(s, comparison=comparison), None if charts else {})


@pytest.fixture(scope="module")
def page(statement: EfficiencyStatement) -> str:
    return page_of(statement)


def test_nothing_is_fetched(page: str) -> None:
    for tag, attributes in Page(page).tags:
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_well_formed_small_and_whole(page: str) -> None:
    parsed = Page(page)
    assert parsed.open == []
    assert len(page.encode()) < 2_500_000
    assert parsed.count("h1") == 1
    assert parsed.count("svg") == parsed.count("figure") == len(chart_names("efficiency")) > 0
    assert not re.search(r"\$[a-z]", page)


def test_accessible(page: str) -> None:
    parsed = Page(page)
    assert ("html", {"lang": "en"}) in parsed.tags
    assert all(a.get("scope") in {"col", "row"} for t, a in parsed.tags if t == "th")
    assert all(a.get("aria-label") for t, a in parsed.tags if t == "svg")
    assert parsed.count("caption") == parsed.count("table")
    levels = [int(t[1]) for t, _ in parsed.tags if re.fullmatch(r"h[1-6]", t)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    ids = [a["id"] for _, a in parsed.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    links = [a["href"] for t, a in parsed.tags if t == "a"]
    assert {str(link)[1:] for link in links} <= set(ids)


def test_both_palettes_by_system_and_by_button(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert ":root[data-theme=dark]" in page
    assert "@media print" in page


def test_figures_are_those_of_the_json(page: str, statement: EfficiencyStatement) -> None:
    figures = to_json(statement)
    text = Page(page).text
    for name in ("gpu_util_pct", "rfu_power_pct", "rfu_counters_pct", "bottlenecked_pct_of_active"):
        assert percent(figures[name]) in text, name
    for row in figures["roi"]:
        assert f"{row['equivalent_gpus']:.1f}" in text
    for row in figures["by_namespace"]:
        assert percent(row["means"]["gpu_util_pct"]) in text
    assert f"{figures['samples']:,} samples" in text
    for finding in statement.findings:
        assert finding.replace(" %", f"{NARROW}%") in text


def test_every_table_sorts_and_unknown_carries_no_key(page: str, statement: EfficiencyStatement) -> None:
    parsed = Page(page)
    rows = [a for t, a in parsed.tags if t == "td" and "unknown" in str(a.get("class"))]
    assert rows
    assert all("data-k" not in a for a in rows)
    assert parsed.count("tbody") >= len(statement.bottlenecked_gpus)
    assert '<table class="sorts many" id="table-per_gpu">' in page


def test_unknown_is_said_with_its_reason(
    statement: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    assert "not known: the source sends no pipe activity" in Page(page_of(statement, charts=False)).text
    text = Page(page_of(unknown_statement)).text
    assert "not known: the source was silent" in text
    assert "nan" not in text.lower().split()


def test_one_gpu_without_namespaces(one_gpu: EfficiencyStatement) -> None:
    parsed = Page(page_of(one_gpu))
    assert "1 GPU" in parsed.text
    assert "No sample gives a namespace." in parsed.text
    assert parsed.open == []


def test_hostile_labels_stay_words(statement: EfficiencyStatement) -> None:
    def mark(row: object) -> object:
        return dataclasses.replace(row, name=HOSTILE)  # type: ignore[type-var]

    evil = dataclasses.replace(
        statement,
        by_namespace=tuple(mark(g) for g in statement.by_namespace),  # type: ignore[misc]
        by_model=tuple(mark(g) for g in statement.by_model),  # type: ignore[misc]
        per_gpu=tuple(
            dataclasses.replace(
                g, host=HOSTILE, namespace=HOSTILE, gpu_uuid=f'{HOSTILE}"{i}', cause=LikelyCause(None, HOSTILE, HOSTILE)
            )
            for i, g in enumerate(statement.per_gpu)
        ),
        findings=(HOSTILE, HOSTILE),
        assumptions=(HOSTILE,),
        not_known=(NotKnown(HOSTILE, HOSTILE),),
    )
    page = page_of(evil, comparison=[(HOSTILE, HOSTILE, 1.0)])
    assert "<script>alert" not in page
    assert Page(page).count("script") == 1
    assert (
        "$headline" not in page_of(dataclasses.replace(statement, findings=("$headline costs $5",)), charts=False)[:900]
    )


def test_published_figures_only_when_given(statement: EfficiencyStatement) -> None:
    assert "GPU Efficiency Analytics (2026-01)" not in page_of(statement, charts=False)
    text = Page(page_of(statement, charts=False, comparison=[("PIF", 0.655, 0.649)])).text
    assert "Compared with GPU Efficiency Analytics (2026-01)" in text
    assert "0.655" in text


def test_without_charts_no_chart_is_drawn(statement: EfficiencyStatement) -> None:
    assert "<svg" not in page_of(statement, charts=False)


def evidence_of(s: EfficiencyStatement) -> str:
    section = next(part for part in efficiency_document(s).sections if part.id == "evidence")
    (items,) = section.blocks
    assert isinstance(items, Bullets)
    return " ".join(items.items)


def test_every_table_has_its_place_once() -> None:
    outline = load_outline("efficiency")
    placed = [name for section in outline.sections for name in section.tables]
    assert sorted(placed) == sorted(outline.tables)
    assert len({section.id for section in outline.sections}) == len(outline.sections)
    assert {CHARTS.get(name).section for name in chart_names("efficiency")} <= {s.id for s in outline.sections}


def test_cards_are_the_statement_s(statement: EfficiencyStatement) -> None:
    shown = {card.label: card for card in key_figures(statement)}
    assert shown["GPU utilization"].value == f"70.9{NARROW}%"
    assert "watts" in shown["RFU by power"].note
    assert shown["RFU by counters"].value == f"24.3{NARROW}%"
    assert shown["RFU by counters"].range == f"12.2{NARROW}% to 48.6{NARROW}%"
    assert shown["Bottlenecked"].value == f"31.4{NARROW}%"
    assert shown[f"Worth at 70{NARROW}% RFU"].value == "3.9 GPUs"


def test_cards_say_what_is_not_known(unknown_statement: EfficiencyStatement) -> None:
    assert all(card.unknown and card.value.startswith("not known: ") for card in key_figures(unknown_statement))


def test_no_target_left_is_said(statement: EfficiencyStatement) -> None:
    last = key_figures(dataclasses.replace(statement, roi=()))[-1]
    assert (last.value, last.unknown) == ("None left", False)


def test_the_next_target_is_the_lowest_worth_something(statement: EfficiencyStatement) -> None:
    found = next_target(dataclasses.replace(statement, roi=statement.roi[::-1]))
    assert found is not None
    assert found.target_rfu_pct == 70.0
    assert next_target(dataclasses.replace(statement, roi=())) is None


def test_headline_is_the_top_finding_or_says_why_not(
    statement: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    assert headline(statement) == statement.findings[0]
    assert headline(unknown_statement) == "What this fleet did is not known: the source was silent."
    assert headline(dataclasses.replace(statement, findings=())).startswith(f"31.4{NARROW}% of active")


def test_facts_count_in_words(one_gpu: EfficiencyStatement) -> None:
    assert facts(one_gpu) == [
        "2026-01-20 00:00 to 2026-01-20 03:00 UTC",
        "1 GPU",
        "1 cluster",
        "0 namespaces",
        "180 samples",
    ]


def test_evidence_names_its_source(statement: EfficiencyStatement, unknown_statement: EfficiencyStatement) -> None:
    said = evidence_of(statement)
    assert "rests on counters (tensor pipe only, lower bound)" in said
    assert "come from: GPU Efficiency Analytics, as published" in said
    assert "RFU by counters: not known: the source was silent" in evidence_of(unknown_statement)
