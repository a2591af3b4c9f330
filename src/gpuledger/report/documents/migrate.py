"""What does a migration plan show? The recommendation, the options behind it, and what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from gpuledger.encode import encode
from gpuledger.plan.guide.placed_job import Misfit
from gpuledger.plan.guide.schema import MEASURES
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan, Option
from gpuledger.plan.guide.words import dollars
from gpuledger.report.charts import can_draw
from gpuledger.report.document import Block, Bullets, Chart, Document, KeyFigure, Prose, Section, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, number
from gpuledger.units import Unknown

ALL = 1_000  # rows a terminal shows with everything


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
    refused = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return [Terms(now), table, *([Prose(f"Refused: {refused}.", "dim")] if refused else [])]


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
    tables = [made(plan) for made in (options_table, ranges_table, measures_table, guidelines_table, refused_table)]
    if not alone:
        tables = [replace(table, name=f"{table.name}-{place}") for table in tables]
    blocks = [*opening, job, *charts, *tables[:4], *(sharing if plan.sharing else []), tables[4]]
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


def mark(plan: MigrationPlan, option: Option) -> str:
    """What an option is in this plan."""
    if option is plan.chosen:
        return "keep" if option.current else "chosen"
    marks = ((option.current, "now"), (option is plan.cheapest, "cheapest"), (option is plan.fastest, "fastest"))
    return next((name for holds, name in marks if holds), "")


def shown(plan: MigrationPlan) -> list[Option]:
    """The chosen option, its runners-up, and the present setup, the cheapest and the fastest wherever they rank."""
    stay = next((o for o in plan.options if o.current), None)
    wanted = [plan.chosen, *plan.runners_up, stay, plan.cheapest, plan.fastest]
    unique = {id(option): option for option in wanted if option is not None}
    return sorted(unique.values(), key=lambda o: -o.score)


def _ratio(form: str) -> Callable[[Any], str]:
    return lambda value: format(value, form)


def _saving(option: Option) -> Cell:
    return figure(option.saving_pct, lambda pct: f"{number(pct)} %")


def options_table(plan: MigrationPlan) -> Table:
    """The options worth looking at, best first."""
    spot = plan.chosen is not None and plan.chosen.candidate.purchase == "spot"
    heads = (
        "Option", "Instance", "", "$/month", "On demand" if spot else "Or spot", "Saves", "Speed",
        "$ per M tokens", "Free", "Risk", "Effort", "Score",
    )  # fmt: skip
    rows: list[Row] = [
        [
            f"{o.candidate.gpus} x {o.candidate.gpu_name}", f"{o.candidate.instance}, {o.candidate.purchase}",
            mark(plan, o), figure(o.monthly_usd, dollars), _other(o), _saving(o),
            figure(o.speed_ratio, _ratio(".2f")),
            figure(o.usd_per_million, lambda usd: f"${usd:,.3g}" if usd < 1 else f"${usd:,.2f}"),
            figure(100 * o.placement.headroom_ratio, lambda pct: f"{pct:.0f} %"), cell(o.risk.level, o.risk.amount),
            figure(o.effort.amount, lambda hours: f"{hours:g} h"), figure(o.score, _ratio(".3f")),
        ]
        for o in shown(plan)
    ]  # fmt: skip
    weights = ", ".join(f"{name} {share:g}" for name, share in plan.weights.items())
    note = (
        f"Score by {plan.job.priority} ({weights}). Speed: compared with now. "
        "Free: memory left over on the fullest GPU."
    )
    empty = "No option can run this."
    return make_table("options", "Options, best first", heads, "wwwnnnnNNWNn", rows, note=note, empty=empty)


def _other(option: Option) -> Cell:
    other = option.other_purchase_usd
    return cell("none listed" if isinstance(other, Unknown) else dollars(other), other)


def ranges_table(plan: MigrationPlan) -> Table:
    """How each option is placed, and the range of its cost."""
    heads = ("Option", "Placed", "$ low", "$ high", "Tokens/s", "At least", "At most", "Price of")
    rows: list[Row] = []
    for o in shown(plan):
        rate, usd = o.placement.rate, (o.low_monthly_usd, o.high_monthly_usd)
        speeds = (rate, rate, rate) if isinstance(rate, Unknown) else (rate.middle, rate.low, rate.high)
        rows.append(
            [o.candidate.name, o.placement.words, *(figure(v, dollars) for v in usd),
             *(figure(v, _ratio(",.0f")) for v in speeds), o.candidate.price_date]
        )  # fmt: skip
    note = "Dollars per month at both ends of the price over zones and, where faster work ends sooner, of the speed."
    return make_table("ranges", "Where each is placed, and its range", heads, "wwnnnNNW", rows, note=note)


def measures_table(plan: MigrationPlan) -> Table:
    """The seven measures behind the scores."""
    heads = ("Option", *(n.capitalize() for n in MEASURES), "Cost", "Performance", "Reliability")
    missing = Unknown("not measured")
    rows: list[Row] = []
    for o in shown(plan):
        values = [o.measures.get(n, missing) for n in MEASURES]
        scores = (o.cost_score, o.performance_score, o.reliability_score)
        rows.append([o.candidate.name, *(figure(v, _ratio(".2f")) for v in (*values, *scores))])
    note = "Each from 0 to 1, 1 the best. Cost is dollars; performance and reliability are means of the others."
    return make_table("measures", "What the scores are made of", heads, "wNNNNNNNnnn", rows, note=note)


def refused_table(plan: MigrationPlan) -> Table:
    """What was refused, why, and what would change that."""
    rows = [
        [
            g.gpu_name, ", ".join(map(str, g.counts)), g.kind, g.why.removeprefix(f"{g.kind}: "),
            "; ".join(g.remedies), ", ".join(g.instances),
        ]
        for g in plan.refused_groups
    ]  # fmt: skip
    heads = ("GPU", "Counts", "Refused for", "Why", "Remedy", "Instances")
    return make_table(
        "refused", "Refused, and what would change that", heads, "wwwwwW", rows, empty="Nothing was refused.",
        screen_rows=ALL,
    )  # fmt: skip


def guidelines_table(plan: MigrationPlan) -> Table:
    """The rules of thumb of GPU Fleet Optimizer, and whether the chosen option follows them."""
    rows = [[v.words, "kept" if v.kept else "not kept"] for v in (plan.chosen.guidelines if plan.chosen else ())]
    return make_table("guidelines", "Rules of thumb", ("Rule", "By the chosen option"), "ww", rows)


def set_table(found: MigrationSet) -> Table:
    """One row for each plan of a set."""
    heads = ("Workload", "Now", "$/month", "Then", "$/month", "Saves", "Speed")
    rows: list[Row] = []
    for plan in found.plans:
        chosen, job = plan.chosen, plan.job
        now = plan.current.candidate.name
        now += " CANNOT FIT MODEL" if isinstance(plan.current.placement, Misfit) else ""
        then: Row = ["nothing fits", "", "", ""]
        if chosen is not None:
            name = "as now: already well optimized" if chosen.current else chosen.candidate.name
            speed = figure(chosen.speed_ratio, _ratio(".2f"))
            then = [name, figure(chosen.monthly_usd, dollars), _saving(chosen), speed]
        title = job.workload_id or job.name or job.model.name
        rows.append([title, now, figure(plan.current.monthly_usd, dollars), *then])
    return make_table("set", "All of them", heads, "wwnwnnN", rows, screen_rows=ALL)
