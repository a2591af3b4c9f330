"""What does migrate.html look like? The recommendation first, then the options, what was refused, what it stands on."""

from __future__ import annotations

from html import escape

from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.plan.guide.words import dollars
from gpuledger.report.charts import can_draw
from gpuledger.report.documents.migrate import (
    facts,
    guidelines_table,
    measures_table,
    options_table,
    ranges_table,
    refused_table,
    set_table,
)
from gpuledger.report.outline import Card
from gpuledger.report.page import Page, figure, html_cards, html_list, html_table, render_page
from gpuledger.report.theme import load_theme
from gpuledger.report.written import tie
from gpuledger.units import Unknown

NOT_KNOWN = "Not known"


def render_migrate_html(found: MigrationSet) -> str:
    """The whole page."""
    one = found.plans[0] if len(found.plans) == 1 else None
    contents = [(f"plan-{i}", _title(plan)) for i, plan in enumerate(found.plans, 1)]
    sections = [_section(i, plan) for i, plan in enumerate(found.plans, 1)]
    return render_page(
        Page(
            title=f"Migration plan{'' if one else f', {found.name}'}",
            kind="Migration plan",
            headline=one.recommendation if one else headline(found),
            facts=[f"{len(found.plans)} {'setup' if one else 'setups'}", found.plans[0].prices],
            cards=html_cards(cards(found)),
            top="" if one else html_table(set_table(found)) + _shared(found),
            contents=[*contents, ("assumptions", "Assumptions")],
            sections=sections,
            closing=f'<h2 id="assumptions">Assumptions</h2>{html_list(_assumptions(found))}',
            json_name="migrate.json",
        )
    )


def headline(found: MigrationSet) -> str:
    """What the set comes to, in one sentence."""
    if isinstance(found.saving_pct, Unknown):
        return f"What {len(found.plans)} setups would cost elsewhere is {found.saving_pct}."
    now, then = dollars(found.now_usd), dollars(found.then_usd)
    more = "saves" if found.saving_pct >= 0 else "adds"
    pct = f"{abs(found.saving_pct):.0f} %"
    return f"{len(found.plans)} setups cost {now} a month; moved as proposed, {then}: it {more} {pct}.{_lost(found)}"


def _lost(found: MigrationSet) -> str:
    """A setup that cannot run now has a price and no worth: what running it costs is not dearer than that."""
    if not found.cannot_run_now:
        return ""
    n, usd = found.cannot_run_now, dollars(found.cannot_run_then_usd)
    where = "where it is: to run it" if n == 1 else "where they are: to run them"
    return f" {n} of them cannot run {where} takes {usd} of that."


def cards(found: MigrationSet) -> list[Card]:
    """The key figures."""
    pct = found.saving_pct
    made = [
        _card("Now", found.now_usd, "dollars a month"),
        _card("As proposed", found.then_usd, "dollars a month"),
        _card("Saving", found.saving_usd, "dollars a month" if isinstance(pct, Unknown) else f"{pct:.0f} % of now"),
    ]
    if len(found.plans) == 1 and (chosen := found.plans[0].chosen) is not None:
        ratio = chosen.speed_ratio
        text = NOT_KNOWN if isinstance(ratio, Unknown) else f"{ratio:.2f} x"
        made.append(Card("Speed", text, "", "against now", isinstance(ratio, Unknown)))
        made.append(Card("Risk", chosen.risk.level, "", "; ".join(chosen.risk.reasons), False))
        made.append(Card("Effort", f"{chosen.effort.amount:g} h", "", "; ".join(chosen.effort.reasons), False))
    return made


def _card(label: str, value: object, note: str) -> Card:
    unknown = isinstance(value, Unknown)
    return Card(label, str(value) if unknown else dollars(value), "", note, unknown)  # type: ignore[arg-type]


def _title(plan: MigrationPlan) -> str:
    return plan.job.name or f"{plan.job.model.name}, {plan.job.workload.value.replace('_', '-')}"


def _section(number: int, plan: MigrationPlan) -> str:
    told = "".join(
        f'<tr><th scope="row" class="words short">{escape(name)}</th><td class="words">{escape(tie(words))}</td></tr>'
        for name, words in facts(plan)
    )
    parts = [
        f'<section aria-labelledby="plan-{number}"><h2 id="plan-{number}">{escape(_title(plan))}</h2>',
        f'<p class="lead">{escape(tie(plan.recommendation))}</p>',
        html_list(plan.warnings) if plan.warnings else "",
        f'<div class="scroll"><table><tbody>{told}</tbody></table></div>',
        _chart(number, plan),
        *(html_table(t) for t in (options_table(plan), ranges_table(plan), measures_table(plan))),
        html_table(guidelines_table(plan)),
        f"<h3>One GPU for several, or a slice for one</h3>{html_list(s.words for s in plan.sharing)}"
        if plan.sharing
        else "",
        html_table(refused_table(plan)),
        "</section>",
    ]
    return "\n".join(p for p in parts if p)


def _chart(number: int, plan: MigrationPlan) -> str:
    """Dollars against speed, where charts can be drawn at all: every figure of it is in the tables too."""
    if not can_draw():
        return ""
    from gpuledger.report.migrate_chart import draw

    drawn = draw(plan, load_theme("light"))
    return figure(f"options-{number}", drawn) if drawn else ""


def _shared(found: MigrationSet) -> str:
    return html_list(c.words for c in found.consolidation) if found.consolidation else ""


def _assumptions(found: MigrationSet) -> list[str]:
    return list(dict.fromkeys(a for plan in found.plans for a in plan.assumptions))
