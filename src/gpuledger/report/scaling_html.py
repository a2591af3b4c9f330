"""What does scaling.html look like? The result first, then what it stands on and what is claimed of it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from gpuledger.encode import encode
from gpuledger.report.charts import Drawing
from gpuledger.report.outline import Section
from gpuledger.report.page import Page, figure, html_cards, html_list, html_table, render_page
from gpuledger.report.scaling_charts import scaling_drawings
from gpuledger.report.scaling_lines import SHOWN, faults_of, lines_of
from gpuledger.report.scaling_view import TABLES, ScalingView
from gpuledger.report.tables import build_table
from gpuledger.report.theme import load_theme
from gpuledger.report.written import tie
from gpuledger.scaling.statement import ScalingStatement

BACK = (
    ("words", "What each number means"),
    ("assumptions", "Assumptions"),
    ("faults", "Faults"),
    ("not-known", "Not known"),
    ("provenance", "Provenance"),
)


def _words(text: str) -> str:
    return escape(tie(text))


def _recommendations(statement: ScalingStatement) -> str:
    parts = []
    for horizon, lines in statement.recommendations:
        parts.append(f"<h3>{escape(horizon.capitalize())}</h3>{html_list(lines)}")
    return "\n".join(parts)


def _section(section: Section, view: ScalingView, drawn: Mapping[str, Drawing]) -> str:
    parts = [f'<section aria-labelledby="{section.id}"><h2 id="{section.id}">{escape(section.title)}</h2>']
    if section.text:
        parts.append(f'<p class="lead">{_words(section.text)}</p>')
    parts += [figure(name, drawn[name]) for name in section.charts if name in drawn]
    parts += [html_table(build_table(name, view, TABLES)) for name in section.tables]
    lines = lines_of(section.block, view.statement)
    if section.block == "recommendations":
        parts.append(_recommendations(view.statement))
    elif section.block in {"summary", "readiness"}:
        parts.append(html_list(lines, "findings"))
    else:
        parts += [f"<p>{_words(line)}</p>" for line in lines]
    return "\n".join((*parts, "</section>"))


def _closing(view: ScalingView) -> str:
    """The back of the report: words, assumptions, faults, what is not known, where it comes from."""
    facts = view.statement.facts
    terms = "".join(f"<dt>{escape(t.term)}</dt><dd>{_words(t.meaning)}</dd>" for t in view.outline.glossary)
    missing = [f"{n['figure']}: {n['why']}" for n in encode("scaling", view.statement)["not_known"]]
    folded = (
        f"<details><summary>{len(missing)} figures</summary>{html_list(missing)}</details>"
        if missing
        else "<p>None.</p>"
    )
    faults = (
        html_list(faults_of(view.statement, SHOWN)) if facts.faults else "<p>No line of the results was at fault.</p>"
    )
    return "\n".join(
        (
            f'<h2 id="words">What each number means</h2><dl>{terms}</dl>',
            f'<h2 id="assumptions">Assumptions</h2>{html_list(facts.assumptions)}',
            f'<h2 id="faults">Faults in the results</h2>{faults}',
            f'<h2 id="not-known">Not known</h2>{folded}',
            f'<h2 id="provenance">Provenance</h2>{html_table(build_table("sources", view, TABLES))}',
            f"<p>Seed of every interval: {facts.seed}. The same files and seed give the same figures.</p>",
        )
    )


def render_scaling_html(
    statement: ScalingStatement, *, charts: bool = True, drawn: Mapping[str, Drawing] | None = None
) -> str:
    """The whole page. `drawn`: charts made already."""
    if not charts:
        drawn = {}
    elif drawn is None:
        drawn = scaling_drawings(statement, load_theme("light"))
    view = ScalingView(statement)
    return render_page(
        Page(
            title=f"Scaling report, {view.head[0]}",
            kind="Scaling report",
            headline=statement.headline,
            second=statement.second,
            facts=view.head,
            cards=html_cards(view.cards),
            top="",
            contents=[(s.id, s.title) for s in view.sections] + list(BACK),
            sections=[_section(s, view, drawn) for s in view.sections],
            closing=_closing(view),
            json_name="scaling.json",
        )
    )
