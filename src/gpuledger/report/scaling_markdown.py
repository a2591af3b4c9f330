"""What does scaling.md say? The scaling page's Markdown twin."""

from __future__ import annotations

from collections.abc import Mapping

from gpuledger import __version__
from gpuledger.encode import encode
from gpuledger.report.charts import Drawing
from gpuledger.report.markdown import bullets, md_table, safe, with_range
from gpuledger.report.outline import Section
from gpuledger.report.scaling_lines import SHOWN, faults_of, lines_of
from gpuledger.report.scaling_view import TABLES, ScalingView
from gpuledger.report.tables import build_table
from gpuledger.scaling.statement import ScalingStatement


def _section(section: Section, view: ScalingView, charts: Mapping[str, str], drawn: Mapping[str, Drawing]) -> list[str]:
    out = [f"## {safe(section.title)}"]
    if section.text:
        out.append(safe(section.text))
    for name in section.charts:
        if name in charts and name in drawn:
            shown = drawn[name]
            out += [f"### {safe(shown.title)}", safe(shown.subtitle), f"![{safe(shown.alt)}](<{charts[name]}>)"]
    out += [text for name in section.tables if (text := md_table(build_table(name, view, TABLES)))]
    if section.block == "recommendations":
        for horizon, lines in view.statement.recommendations:
            out += [f"### {safe(horizon.capitalize())}", bullets(lines)]
    elif said := lines_of(section.block, view.statement):
        out.append(bullets(said))
    return out


def render_scaling_markdown(
    statement: ScalingStatement, *, charts: Mapping[str, str] | None = None, drawn: Mapping[str, Drawing] | None = None
) -> str:
    """The whole document; `charts` gives the picture files by chart name, as paths from the document."""
    view = ScalingView(statement)
    out = [f"# {safe(statement.headline)}", f"**{safe(statement.second)}**"]
    out.append("Scaling report. " + safe("; ".join(view.head)) + ".")
    figures = [f"| {safe(c.label)} | {safe(with_range(c.value, c.range))} | {safe(c.note)} |" for c in view.cards]
    out.append("\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *figures]))
    for section in view.sections:
        out += _section(section, view, charts or {}, drawn or {})
    facts = statement.facts
    out += ["## What each number means", *(f"**{safe(t.term)}.** {safe(t.meaning)}" for t in view.outline.glossary)]
    out += ["## Assumptions", bullets(facts.assumptions)]
    out += [
        "## Faults in the results",
        bullets(faults_of(statement, SHOWN)) if facts.faults else "No line was at fault.",
    ]
    missing = [f"{n['figure']}: {n['why']}" for n in encode("scaling", statement)["not_known"]]
    out += ["## Not known", bullets(missing) if missing else "Nothing was left out."]
    out += ["## Provenance", md_table(build_table("sources", view, TABLES))]
    end = (
        f"Made by gpuledger {__version__}, seed {facts.seed}. Every figure here is in scaling.json under the same name."
    )
    return "\n\n".join((*out, end)) + "\n"
