"""Which tables does a migration plan fill: options, ranges, scores, patterns, what was refused?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuledger.plan.guide.judging import less_for_less
from gpuledger.plan.guide.placed_job import Misfit
from gpuledger.plan.guide.schema import MEASURES
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan, Option, Pattern
from gpuledger.plan.guide.words import dollars, slow_network
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import number
from gpuledger.units import Unknown

ALL = 1_000  # rows a terminal shows with everything


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
    if less_for_less(option):
        return Cell(f"work +{option.same_work_pct:.0f} %", None)
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
    if any(less_for_less(o) for o in shown(plan)):
        note += " Work +X %: fewer dollars, but the same work costs X % more, so nothing is saved."
    empty = "No option can run this."
    return make_table("options", "Options, best first", heads, "wwwnnnnNNWNn", rows, note=note, empty=empty)


def _other(option: Option) -> Cell:
    other = option.other_purchase_usd
    return cell("none listed" if isinstance(other, Unknown) else dollars(other), other)


def ranges_table(plan: MigrationPlan) -> Table:
    """How each option is placed, and the range of its cost."""
    heads = ("Option", "Placed", "$ low", "$ high", "Tokens/s", "At least", "At most", "Per GPU", "Price of")
    rows: list[Row] = []
    for o in shown(plan):
        rate, usd = o.placement.rate, (o.low_monthly_usd, o.high_monthly_usd)
        speeds = (rate, rate, rate) if isinstance(rate, Unknown) else (rate.middle, rate.low, rate.high)
        rows.append(
            [o.candidate.name, o.placement.words, *(figure(v, dollars) for v in usd),
             *(figure(v, _ratio(",.0f")) for v in speeds), _per_gpu(o), o.candidate.price_date]
        )  # fmt: skip
    note = (
        "Dollars per month at both ends of the price over zones and, where faster work ends sooner, of the speed. "
        "Per GPU: its work compared with the fewest GPUs of its kind that can do the job; over several instances, down "
        f"to a network of {slow_network()}."
    )
    return make_table("ranges", "Where each is placed, and its range", heads, "wwnnnNNNW", rows, note=note)


def _per_gpu(option: Option) -> Cell:
    found = option.scaling
    if isinstance(found, Unknown):
        return figure(found, str)
    low, high = round(100 * found.low_ratio), round(100 * found.ratio)
    return cell(f"{low} to {high} %" if low < high else f"{high} %", found.ratio)


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


def comes_to(pattern: Pattern) -> str:
    saving, speed = pattern.saving_pct, pattern.speed_ratio
    if isinstance(saving, Unknown) and isinstance(speed, Unknown):
        return saving.why
    money = (
        saving.why
        if isinstance(saving, Unknown)
        else f"saves {saving:.0f} %"
        if saving >= 0
        else f"costs {-saving:.0f} % more"
    )
    fast = "" if isinstance(speed, Unknown) or speed == 1 else f"{speed:.2f} x the speed"
    return f"{pattern.option}: {', '.join(words for words in (money, fast) if words)}"


def patterns_table(plan: MigrationPlan) -> Table:
    """The common migration patterns of GPU Fleet Optimizer, and what each comes to here."""
    rows = [[p.words, p.claim, comes_to(p) if p.applies else f"does not apply: {p.why_not}"] for p in plan.patterns]
    heads = ("Pattern", "Claimed", "Here")
    note = "Claimed by GPU Fleet Optimizer, undated. Here: compared with the present setup, for the same work."
    return make_table("patterns", "Common migration patterns", heads, "www", rows, note=note)


TABLES = (options_table, ranges_table, measures_table, guidelines_table, patterns_table, refused_table)


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
