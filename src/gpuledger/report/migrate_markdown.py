"""What does migrate.md say? The migration page's Markdown twin."""

from __future__ import annotations

from gpuledger import __version__
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.report.markdown import bullets, md_table, safe, with_range
from gpuledger.report.migrate_html import cards, headline
from gpuledger.report.documents.migrate import (
    facts,
    guidelines_table,
    measures_table,
    options_table,
    ranges_table,
    refused_table,
    set_table,
)


def render_migrate_markdown(found: MigrationSet) -> str:
    """The whole document."""
    one = len(found.plans) == 1
    out = [f"# {safe(found.plans[0].recommendation if one else headline(found))}"]
    figures = [f"| {safe(c.label)} | {safe(with_range(c.value, c.range))} | {safe(c.note)} |" for c in cards(found)]
    out.append("\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *figures]))
    if not one:
        out.append(md_table(set_table(found)))
        out += [bullets(c.words for c in found.consolidation)] if found.consolidation else []
    for plan in found.plans:
        out += _plan(plan)
    known = dict.fromkeys(a for plan in found.plans for a in plan.assumptions)
    out += ["## Assumptions", bullets(known)]
    out.append(f"Made by gpuledger {__version__}. Every figure here is in migrate.json under the same name.")
    return "\n\n".join(part for part in out if part) + "\n"


def _plan(plan: MigrationPlan) -> list[str]:
    out = [f"## {safe(plan.job.name or plan.job.model.name)}", safe(plan.recommendation)]
    out.append(bullets(plan.warnings) if plan.warnings else "")
    out.append("\n".join(["| | |", "| --- | --- |", *(f"| {safe(n)} | {safe(w)} |" for n, w in facts(plan))]))
    tables = (options_table, ranges_table, measures_table, guidelines_table, refused_table)
    out += [md_table(made(plan)) for made in tables]
    out.append(bullets(s.words for s in plan.sharing) if plan.sharing else "")
    return out
