"""What does report.html look like? One file that opens offline."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.charts import Drawing, drawings
from gpuledger.report.outline import (
    Comparison,
    Section,
    cards,
    compared,
    evidence,
    facts,
    headline,
    load_outline,
    words_of,
)
from gpuledger.report.page import Page, figure, html_cards, html_list, html_table, render_page
from gpuledger.report.tables import Cell, Table, build_table
from gpuledger.report.theme import load_theme
from gpuledger.report.written import period, tie


def _section(section: Section, s: EfficiencyStatement, drawn: Mapping[str, Drawing]) -> str:
    parts = [f'<section aria-labelledby="{section.id}"><h2 id="{section.id}">{escape(section.title)}</h2>']
    if section.text:
        parts.append(f'<p class="lead">{escape(section.text)}</p>')
    if said := words_of(section.block, s):
        parts.append(f"<p>{escape(tie(said))}</p>")
    parts += [figure(name, drawn[name]) for name in section.charts if name in drawn]
    tables = [build_table(name, s) for name in section.tables]
    small = [html_table(t) for t in tables if len(t.heads) <= 2]
    parts += [html_table(t) for t in tables if len(t.heads) > 2]
    if small:
        parts.append(f'<div class="pair">{"".join(f"<div>{t}</div>" for t in small)}</div>')
    parts.append("</section>")
    return "\n".join(parts)


def _findings(s: EfficiencyStatement) -> str:
    rest = list(s.findings[1:])
    return f'<h2 id="findings">Findings</h2>{html_list(rest, "findings")}' if rest else ""


def _comparison(rows: Comparison | None) -> str:
    if not rows:
        return ""
    table = Table(
        "comparison",
        "Published figures beside ours",
        ("Figure", "Published", "Ours"),
        (True, False, False),
        (False, False, False),
        tuple(tuple(Cell(compared(v), None) for v in row) for row in rows),
        None,
        "",
        "",
    )
    return f'<h2 id="comparison">Beside the published findings</h2>{html_table(table)}'


def _closing(s: EfficiencyStatement) -> str:
    """The back of the statement: words, evidence, assumptions, and what is not known."""
    terms = "".join(f"<dt>{escape(t.term)}</dt><dd>{escape(t.meaning)}</dd>" for t in load_outline().glossary)
    missing = "".join(f"<dt>{escape(n.figure)}</dt><dd>not known: {escape(n.why)}</dd>" for n in s.not_known)
    return "\n".join(
        (
            f'<h2 id="words">What each number means</h2><dl>{terms}</dl>',
            f'<h2 id="evidence">Evidence</h2>{html_list(evidence(s))}',
            f'<h2 id="assumptions">Assumptions</h2>{html_list(list(s.assumptions))}',
            f'<h2 id="not-known">Not known</h2>{f"<dl>{missing}</dl>" if missing else "<p>Nothing was left out.</p>"}',
        )
    )


def _contents() -> list[tuple[str, str]]:
    back = [("words", "What each number means"), ("evidence", "Evidence"), ("not-known", "Not known")]
    return [(s.id, s.title) for s in load_outline().sections] + back


def render_html(
    statement: EfficiencyStatement,
    *,
    comparison: Comparison | None = None,
    charts: bool = True,
    limits: Thresholds | None = None,
    drawn: Mapping[str, Drawing] | None = None,
) -> str:
    """The whole page. `comparison` is (name, published, ours), printed only where given. `drawn`: charts made."""
    if not charts:
        drawn = {}
    elif drawn is None:
        drawn = drawings(statement, load_theme("light"), limits or load_thresholds())
    sections = [_section(section, statement, drawn) for section in load_outline().sections]
    return render_page(
        Page(
            title=f"Efficiency statement, {period(statement.start_ms, statement.end_ms)}",
            kind="Efficiency statement",
            headline=headline(statement),
            facts=facts(statement),
            cards=html_cards(cards(statement)),
            top=_findings(statement) + _comparison(comparison),
            contents=_contents(),
            sections=sections,
            closing=_closing(statement),
        )
    )
