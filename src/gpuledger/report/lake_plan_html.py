"""What does the page of the plan from the ledger look like? The proposals, what they rest on, what was refused."""

from __future__ import annotations

from html import escape

from gpuledger.plan.move.statement import LakePlan
from gpuledger.report.lake_plan_tables import (
    measured_table,
    moves_table,
    namespaces_table,
    refused_table,
    risks,
    saved,
    share,
    span,
    usd,
)
from gpuledger.report.outline import Card
from gpuledger.report.page import Page, html_cards, html_list, html_table, render_page
from gpuledger.report.written import gpus
from gpuledger.units import Unknown, utc


def render_lake_plan_html(plan: LakePlan) -> str:
    """The whole page."""
    days = f"{utc(plan.start_ms):%Y-%m-%d} to {utc(plan.end_ms):%Y-%m-%d}"
    sections = {
        "moves": ("Moves", html_table(moves_table(plan)) + html_list(risks(plan))),
        "measured": ("What was measured", html_table(measured_table(plan))),
        "refused": ("What was refused", html_table(refused_table(plan))),
    }
    unknown = [f"{figure}: {why}" for figure, why in plan.not_known]
    closing = f'<h2 id="assumptions">Assumptions</h2>{html_list(plan.assumptions)}'
    if unknown:
        closing += f'<h2 id="unknown">Not known</h2>{html_list(unknown)}'
    return render_page(
        Page(
            title="Migration plan from the ledger",
            kind="Migration plan",
            headline=plan.headline,
            facts=[days, gpus(plan.gpus), f"ages of prices counted to {plan.today}", plan.price_source],
            cards=html_cards(cards(plan)),
            top=f"<p>{escape(plan.beside_audit)}</p>{html_table(namespaces_table(plan))}",
            contents=[*((id_, title) for id_, (title, _) in sections.items()), ("assumptions", "Assumptions")],
            sections=[_section(id_, title, body) for id_, (title, body) in sections.items()],
            closing=closing,
            json_name="migrate.json",
        )
    )


def _section(id_: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{id_}"><h2 id="{id_}">{title}</h2>{body}</section>'


def cards(plan: LakePlan) -> list[Card]:
    """The key figures."""
    moving = sum(h.move is not None for s in plan.namespaces for h in s.holdings)
    whole = sum(len(s.holdings) for s in plan.namespaces)
    return [
        Card("Now", usd(plan.month_now_usd).text, "", "dollars per month", False),
        Card("As proposed", usd(plan.month_after_usd).text, "", "dollars per month", False),
        Card(
            "Saving",
            saved(plan.saving_month).text,
            "" if isinstance(plan.saving_month, Unknown) else span(plan.saving_month),
            f"{share(plan.saving_pct).text} of now",
            False,
        ),
        Card("Moves", f"{moving} of {whole}", "", "groups of GPUs by namespace and model", False),
    ]
