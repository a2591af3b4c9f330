"""What does the Markdown twin of the plan from the ledger say?"""

from __future__ import annotations

from gpuledger import __version__
from gpuledger.plan.move.statement import LakePlan
from gpuledger.report.lake_plan_html import cards
from gpuledger.report.lake_plan_tables import (
    measured_table,
    moves_table,
    namespaces_table,
    refused_table,
    risks,
)
from gpuledger.report.markdown import bullets, md_table, safe, with_range


def render_lake_plan_markdown(plan: LakePlan) -> str:
    """The whole document."""
    figures = [f"| {safe(c.label)} | {safe(with_range(c.value, c.range))} | {safe(c.note)} |" for c in cards(plan)]
    unknown = [f"{figure}: {why}" for figure, why in plan.not_known]
    out = [
        f"# {safe(plan.headline)}",
        safe(plan.beside_audit),
        "\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *figures]),
        md_table(namespaces_table(plan)),
        "## Moves",
        md_table(moves_table(plan)) or moves_table(plan).empty,
        bullets(risks(plan)) if risks(plan) else "",
        "## What was measured",
        md_table(measured_table(plan)),
        "## What was refused",
        md_table(refused_table(plan)),
        "## Assumptions",
        bullets(plan.assumptions),
        f"## Not known\n\n{bullets(unknown)}" if unknown else "",
        f"Prices: {safe(plan.price_source)}; ages are counted to {plan.today}.",
        f"Made by gpuledger {__version__}. Every figure here is in migrate.json under the same name.",
    ]
    return "\n\n".join(part for part in out if part) + "\n"
