"""Does report.html open offline, hold the statement's figures and trust no label?"""

from __future__ import annotations

import dataclasses
import itertools
import re
from html.parser import HTMLParser

import pytest

from gpuledger.efficiency.statement import EfficiencyStatement, NotKnown, to_json
from gpuledger.physics.causes import LikelyCause
from gpuledger.report.html import render_html
from gpuledger.report.written import NARROW, percent

HOSTILE = '<script>alert("x")</script>'
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Tags with attributes, the text of the page, and whether every tag is closed by its own end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(t == tag for t, _ in self.tags)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@pytest.fixture(scope="module")
def page(statement: EfficiencyStatement) -> str:
    return render_html(statement)


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
    assert parsed.count("svg") == 6
    assert parsed.count("figure") == 6
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
    assert '<table class="sorts" id="table-per_gpu">' in page


def test_unknown_is_said_with_its_reason(
    statement: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    assert "not known: the source sends no pipe activity" in Page(render_html(statement, charts=False)).text
    text = Page(render_html(unknown_statement)).text
    assert "not known: the source was silent" in text
    assert "nan" not in text.lower().split()


def test_one_gpu_without_namespaces(one_gpu: EfficiencyStatement) -> None:
    parsed = Page(render_html(one_gpu))
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
    page = render_html(evil, comparison=[(HOSTILE, HOSTILE, 1.0)])
    assert "<script>alert" not in page
    assert Page(page).count("script") == 1
    assert (
        "$headline"
        not in render_html(dataclasses.replace(statement, findings=("$headline costs $5",)), charts=False)[:900]
    )


def test_published_figures_only_when_given(statement: EfficiencyStatement) -> None:
    assert "published findings" not in render_html(statement, charts=False)
    text = Page(render_html(statement, charts=False, comparison=[("PIF", 0.655, 0.649)])).text
    assert "Beside the published findings" in text
    assert "0.655" in text


def test_without_charts_no_chart_is_drawn(statement: EfficiencyStatement) -> None:
    assert "<svg" not in render_html(statement, charts=False)
