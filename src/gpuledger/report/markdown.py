"""What does report.md say? The page's Markdown twin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpuledger import __version__
from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.plain_text import visible
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
from gpuledger.report.tables import Cell, Table, build_table
from gpuledger.report.theme import load_theme

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def safe(text: str) -> str:
    """Words as words: nothing in a label is taken for markup, and a line stays one line."""
    one_line = visible(text.replace("\n", " ").replace("\r", " "))
    return _SPECIAL.sub(r"\\\1", one_line).replace("&", "&amp;")


def md_table(table: Table) -> str:
    """A table in pipes, figures to the right."""
    if not table.rows:
        return f"**{safe(table.caption)}.** {safe(table.empty)}" if table.empty else ""

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def row(cells: tuple[Cell, ...], strong: bool = False) -> str:
        return line([f"**{safe(c.text)}**" if strong and c.text else safe(c.text) for c in cells])

    out = [f"**{safe(table.caption)}**", "", line([safe(h) for h in table.heads])]
    out.append(line(["---" if words else "---:" for words in table.words]))
    out += [row(cells) for cells in table.rows]
    if table.total:
        out.append(row(table.total, strong=True))
    if table.note:
        out += ["", safe(table.note)]
    return "\n".join(out)


def _section(
    section: Section, s: EfficiencyStatement, charts: Mapping[str, str], drawn: Mapping[str, Drawing]
) -> list[str]:
    out = [f"## {safe(section.title)}"]
    if section.text:
        out.append(safe(section.text))
    if said := words_of(section.block, s):
        out.append(safe(said))
    for name in section.charts:
        if name in charts:
            shown = drawn[name]
            out += [f"### {safe(shown.title)}", safe(shown.subtitle), f"![{safe(shown.alt)}](<{charts[name]}>)"]
    out += [text for name in section.tables if (text := md_table(build_table(name, s)))]
    return out


def bullets(items: Iterable[str]) -> str:
    """Sentences, one a line."""
    return "\n".join(f"- {safe(item)}" for item in items) or "None."


def render_markdown(
    statement: EfficiencyStatement,
    *,
    comparison: Comparison | None = None,
    charts: Mapping[str, str] | None = None,
    limits: Thresholds | None = None,
    drawn: Mapping[str, Drawing] | None = None,
) -> str:
    """The whole document; `charts` gives the picture files by chart name, as paths from the document."""
    outline = load_outline()
    if charts and drawn is None:
        drawn = drawings(statement, load_theme("light"), limits or load_thresholds())
    out = [f"# {safe(headline(statement))}", "Efficiency statement. " + safe("; ".join(facts(statement))) + "."]
    figures = [f"| {safe(c.label)} | {safe(with_range(c.value, c.range))} | {safe(c.note)} |" for c in cards(statement)]
    out.append("\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *figures]))
    if statement.findings[1:]:
        out += ["## Findings", bullets(list(statement.findings[1:]))]
    if comparison:
        rows = [f"| {' | '.join(safe(compared(v)) for v in row)} |" for row in comparison]
        out += ["## Beside the published findings"]
        out.append("\n".join(["| Figure | Published | Ours |", "| --- | ---: | ---: |", *rows]))
    for section in outline.sections:
        out += _section(section, statement, charts or {}, drawn or {})
    out += ["## What each number means", *(f"**{safe(t.term)}.** {safe(t.meaning)}" for t in outline.glossary)]
    out += ["## Evidence", bullets(evidence(statement)), "## Assumptions", bullets(list(statement.assumptions))]
    missing = [f"{n.figure}: not known: {n.why}" for n in statement.not_known]
    out += ["## Not known", bullets(missing) if missing else "Nothing was left out."]
    out.append(f"Made by gpuledger {__version__}. Every figure here is in report.json under the same name.")
    return "\n\n".join(out) + "\n"


def with_range(value: str, span: str) -> str:
    """A figure and its range."""
    return f"{value} ({span})" if span else value
