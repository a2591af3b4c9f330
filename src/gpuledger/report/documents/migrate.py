"""What does a migration plan show? The recommendation, the options behind it, and what was refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

from gpuledger.encode import encode
from gpuledger.plan.guide.placed_job import Misfit
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.plan.guide.words import dollars
from gpuledger.report.charts import can_draw
from gpuledger.report.document import Block, Bullets, Chart, Document, KeyFigure, Prose, Section, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.documents.migrate_rows import ALL, TABLES, comes_to, options_table, set_table
from gpuledger.report.tables import make_table
from gpuledger.report.written import amount
from gpuledger.units import Unknown

# Kinds of refusals, as a count of candidates is followed by them.
REFUSED_FOR = {
    "CANNOT FIT MODEL": "cannot fit the model",
    "PRECISION": "lack the precision",
    "SPLIT": "cannot split the model",
    "SPOT": "on spot, which production must not be",
    "SPOT NOT ASKED": "on spot, which was not asked for",
    "SLOW": "too slow",
    "SPEED": "with an unknown speed",
    "COUNT": "with another number of GPUs",
    "PRICE": "with an unknown price",
    "GPU": "with an unknown GPU",
}


@document_for(MigrationSet)
def migrate_document(found: MigrationSet) -> Document:
    """The document of one plan, or of several with their sum."""
    one = found.plans[0] if len(found.plans) == 1 else None
    sections = [_section(place, plan, alone=one is not None) for place, plan in enumerate(found.plans, 1)]
    assumed = list(dict.fromkeys(a for plan in found.plans for a in plan.assumptions))
    shared: list[Block] = [Bullets([c.words for c in found.consolidation], "Sharing")] if found.consolidation else []
    summary: list[Block] = [] if one else [set_table(found), *shared]
    about = ". ".join(words for words in (found.purpose, found.use_case) if words)
    notes = [Prose(words, "warning") for words in one.warnings] if one else []
    return Document(
        name="migrate",
        kind="Migration plan",
        title=f"Migration plan{'' if one else f', {found.name}'}",
        headline=one.recommendation if one else headline(found),
        facts=[amount(str(len(found.plans)), "setup"), found.plans[0].prices],
        notes=notes if one else [Prose(f"{found.name}: {about}" if about else found.name, "lead")],
        figures=key_figures(found),
        summary=summary,
        sections=[*sections, Section("assumptions", "Assumptions", [Bullets(assumed)])],
        screen=_screen(one) if one else summary,
        data=lambda: encode("migration", found),
    )


def _screen(plan: MigrationPlan) -> list[Block]:
    """What runs now, the options, and how many were refused for what."""
    table = options_table(plan)
    now = [pair for pair in facts(plan) if pair[0] in {"now", "memory now", "priority"}]
    kinds = Counter(refused.kind for refused in plan.refused)
    refused = ", ".join(f"{count} {REFUSED_FOR.get(kind, kind)}" for kind, count in kinds.most_common())
    last: list[Block] = [Bullets(said, "Common patterns")] if (said := _patterns(plan)) else []
    return [Terms(now), table, *last, *([Prose(f"Refused: {refused}. --full has why.", "dim")] if refused else [])]


def _patterns(plan: MigrationPlan) -> list[str]:
    """The common patterns that apply, with what they come to and what is claimed for them."""
    return [f"{p.words}: {comes_to(p)} (claimed: {p.claim})" for p in plan.patterns if p.applies]


def headline(found: MigrationSet) -> str:
    """What the set comes to, in one sentence."""
    if isinstance(found.saving_pct, Unknown):
        return f"What {len(found.plans)} setups would cost elsewhere is {found.saving_pct}."
    now, then = dollars(found.now_usd), dollars(found.then_usd)
    more = "saves" if found.saving_pct >= 0 else "adds"
    pct = f"{abs(found.saving_pct):.0f} %"
    return f"{len(found.plans)} setups cost {now} per month; moved as proposed, {then}: it {more} {pct}.{_lost(found)}"


def _lost(found: MigrationSet) -> str:
    """A setup that cannot run now has a price but does no work: running it elsewhere is not an increase."""
    if not found.cannot_run_now:
        return ""
    n, usd = found.cannot_run_now, dollars(found.cannot_run_then_usd)
    where = "where it is: to run it" if n == 1 else "where they are: to run them"
    return f" {n} of them cannot run {where} takes {usd} of that."


def key_figures(found: MigrationSet) -> list[KeyFigure]:
    """Cost now, cost as proposed and saving; for one plan also speed, risk and effort."""
    pct = found.saving_pct
    share = "dollars per month" if isinstance(pct, Unknown) else f"{pct:.0f} % of now"
    made = [
        _money("Now", found.now_usd, "dollars per month"),
        _money("As proposed", found.then_usd, "dollars per month"),
        _money("Saving", found.saving_usd, share),
    ]
    if len(found.plans) == 1 and (chosen := found.plans[0].chosen) is not None:
        ratio = chosen.speed_ratio
        unknown = isinstance(ratio, Unknown)
        made += [
            KeyFigure("Speed", str(ratio) if unknown else f"{ratio:.2f}x", "", "compared with now", unknown),
            KeyFigure("Risk", chosen.risk.level, "", "; ".join(chosen.risk.reasons)),
            KeyFigure("Effort", f"{chosen.effort.amount:g} h", "", "; ".join(chosen.effort.reasons)),
        ]
    return made


def _money(label: str, value: Decimal | Unknown, note: str) -> KeyFigure:
    return KeyFigure(label, dollars(value), "", note, isinstance(value, Unknown))


def _section(place: int, plan: MigrationPlan, *, alone: bool) -> Section:
    opening: list[Block] = [] if alone else [Prose(plan.recommendation, "lead")]
    if plan.warnings and not alone:
        opening.append(Bullets(plan.warnings, "Warnings"))
    job = make_table(f"job-{place}", "The job", ("What", "Value"), "ww", facts(plan), screen_rows=ALL)
    charts = [Chart("options", plan, place)] if can_draw() else []
    sharing = [Bullets([s.words for s in plan.sharing], "One GPU for several, or a slice for one")]
    tables = [made(plan) for made in TABLES]
    if not alone:
        tables = [replace(table, name=f"{table.name}-{place}") for table in tables]
    blocks = [*opening, job, *charts, *tables[:-1], *(sharing if plan.sharing else []), tables[-1]]
    title = plan.job.name or f"{plan.job.model.name}, {_kind(plan)}"
    return Section(f"plan-{place}", title, blocks)


def _kind(plan: MigrationPlan) -> str:
    return plan.job.workload.value.replace("_", "-")


def facts(plan: MigrationPlan) -> list[tuple[str, str]]:
    """The question in words: what runs now, for what purpose, what is expected."""
    job, now = plan.job, plan.current
    placed = now.placement
    holds = (
        placed.why if isinstance(placed, Misfit) else f"fits, {100 * placed.headroom_ratio:.0f} % free: {placed.words}"
    )
    weights = ", ".join(f"{name} {share:g}" for name, share in plan.weights.items())
    other = "on demand" if now.candidate.purchase == "spot" else "spot"
    more = "" if isinstance(now.other_purchase_usd, Unknown) else f" ({other}: {dollars(now.other_purchase_usd)})"
    found = [
        ("workload", f"{job.name} [{job.workload_id}]" if job.workload_id else ""),
        ("description", job.description),
        ("expected", job.expected_outcome),
        ("tags", ", ".join(job.tags)),
        ("use case", f"{job.use_case.replace('_', ' ')}; {'spot is suitable' if job.spot_suitable else 'no spot'}"),
        ("model", f"{job.model.name}, {_kind(plan)}, {job.precision}, {float(job.monthly_h):g} h per month"),
        ("priority", f"{job.priority} ({weights})"),
        ("now", f"{now.candidate.name}: {dollars(now.monthly_usd)} per month{more}"),
        ("memory now", holds),
        ("memory rule", plan.memory.words),
        ("prices", plan.prices),
    ]
    return [(name, words) for name, words in found if words]
