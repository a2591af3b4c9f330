"""Which tables does a migration plan fill, on a screen and on a page alike?"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan, Misfit, Option
from gpuledger.plan.guide.words import dollars
from gpuledger.report.tables import Cell, Table
from gpuledger.units import Unknown

Value = str | float | int | Decimal | Unknown | None


def cell(text: str, key: Value = None) -> Cell:
    """A cell that sorts by its own text, or by a figure."""
    if isinstance(key, Unknown):
        return Cell(text, None, unknown=True)
    return Cell(text, float(key) if isinstance(key, Decimal | float | int) else key or text)


def table(
    name: str, caption: str, heads: Sequence[str], words: str, rows: Sequence[Sequence[Cell]], **more: str
) -> Table:
    """A table; `words` has a w for each column of words and an n for each of numbers."""
    return Table(
        name=name,
        caption=caption,
        heads=tuple(heads),
        words=tuple(w == "w" for w in words),
        below=tuple(False for _ in words),
        rows=tuple(tuple(row) for row in rows),
        total=None,
        note=more.get("note", ""),
        empty=more.get("empty", ""),
    )


def _money(value: Decimal | Unknown) -> Cell:
    return cell("not known" if isinstance(value, Unknown) else dollars(value), value)


def _ratio(value: float | Unknown, form: str) -> Cell:
    return cell("not known" if isinstance(value, Unknown) else format(value, form), value)


def _per_million(value: Decimal | Unknown) -> Cell:
    return cell(
        "not known" if isinstance(value, Unknown) else f"${value:,.3g}" if value < 1 else f"${value:,.2f}", value
    )


def _saving(option: Option) -> Cell:
    found = option.saving_pct
    return cell("not known" if isinstance(found, Unknown) else f"{found:.0f} %", found)


def _other(option: Option) -> Cell:
    other = option.other_purchase_usd
    return cell("none listed" if isinstance(other, Unknown) else dollars(other), other)


def mark(plan: MigrationPlan, option: Option) -> str:
    """What an option is in this plan."""
    if option is plan.chosen:
        return "keep" if option.current else "chosen"
    return (
        "now"
        if option.current
        else "cheapest"
        if option is plan.cheapest
        else "fastest"
        if option is plan.fastest
        else ""
    )


def shown(plan: MigrationPlan) -> list[Option]:
    """The chosen option, its runners-up, and the present setup, the cheapest and the fastest wherever they rank."""
    stay = next((o for o in plan.options if o.current), None)
    wanted = [plan.chosen, *plan.runners_up, stay, plan.cheapest, plan.fastest]
    seen: list[Option] = []
    for option in wanted:
        if option is not None and not any(option is s for s in seen):
            seen.append(option)
    return sorted(seen, key=lambda o: -o.score)


def options_table(plan: MigrationPlan) -> Table:
    """The options worth looking at, best first."""
    spot = plan.chosen is not None and plan.chosen.candidate.purchase == "spot"
    heads = (
        "Option", "", "$ a month", "On demand" if spot else "Or spot", "Saves", "Speed", "$ per M tokens", "Free",
        "Risk", "Effort", "Score",
    )  # fmt: skip
    rows = [
        (
            cell(o.candidate.name),
            cell(mark(plan, o)),
            _money(o.monthly_usd),
            _other(o),
            _saving(o),
            _ratio(o.speed_ratio, ".2f"),
            _per_million(o.usd_per_million),
            cell(f"{o.placement.headroom_ratio:.0%}", o.placement.headroom_ratio),
            cell(o.risk.level, o.risk.amount),
            cell(f"{o.effort.amount:g} h", o.effort.amount),
            cell(f"{o.score:.3f}", o.score),
        )
        for o in shown(plan)
    ]
    w = ", ".join(f"{name} {share:g}" for name, share in plan.weights.items())
    note = f"Score by {plan.job.priority} ({w}). Speed is against now. Free is the fullest GPU's memory left over."
    return table(
        "options", "Options, best first", heads, "wwnnnnnnwnn", rows, note=note, empty="No option can run this."
    )


def ranges_table(plan: MigrationPlan) -> Table:
    """How each option is placed, and the range of its cost."""
    heads = ("Option", "Placed", "$ low", "$ high", "Tokens/s", "At least", "At most", "Price of")
    rows = []
    for o in shown(plan):
        rate = o.placement.rate
        speeds = (
            [cell("not known", rate)] * 3
            if isinstance(rate, Unknown)
            else [cell(f"{v:,.0f}", v) for v in (rate.middle, rate.low, rate.high)]
        )
        rows.append(
            (cell(o.candidate.name), cell(o.placement.words), _money(o.low_monthly_usd), _money(o.high_monthly_usd),
             *speeds, cell(o.candidate.price_date))
        )  # fmt: skip
    note = "Dollars a month at both ends of the price over zones and, where faster work ends sooner, of the speed."
    return table("ranges", "Where each is placed, and its range", heads, "wwnnnnnw", rows, note=note)


def _measure(value: float | Unknown | None) -> Cell:
    return cell("unknown") if value is None or isinstance(value, Unknown) else cell(f"{value:.2f}", value)


def measures_table(plan: MigrationPlan) -> Table:
    """The seven measures behind the scores."""
    names = ("dollars", "throughput", "headroom", "interconnect", "availability", "risk", "effort")
    heads = ("Option", *(n.capitalize() for n in names), "Cost", "Performance", "Reliability")
    rows = [
        (
            cell(o.candidate.name),
            *(_measure(o.measures.get(n)) for n in names),
            *(_measure(v) for v in (o.cost_score, o.performance_score, o.reliability_score)),
        )
        for o in shown(plan)
    ]
    note = "Each from 0 to 1, 1 the best. Cost is dollars; performance and reliability are means of the others."
    return table("measures", "What the scores are made of", heads, "w" + "n" * 10, rows, note=note)


def refused_table(plan: MigrationPlan) -> Table:
    """What was refused, why, and what would change that."""
    rows = [
        (
            cell(g.gpu_name),
            cell(", ".join(map(str, g.counts))),
            cell(g.kind),
            cell(g.why.removeprefix("CANNOT FIT MODEL: ")),
            cell("; ".join(g.remedies)),
            cell(", ".join(g.instances)),
        )
        for g in plan.refused_groups
    ]
    heads = ("GPU", "Counts", "Refused for", "Why", "Remedy", "Instances")
    return table("refused", "Refused, and what would change that", heads, "wwwwww", rows, empty="Nothing was refused.")


def guidelines_table(plan: MigrationPlan) -> Table:
    """The guide's rules, as the chosen option keeps them."""
    verdicts = plan.chosen.guidelines if plan.chosen else ()
    rows = [(cell(v.words), cell("kept" if v.kept else "not kept")) for v in verdicts]
    return table("guidelines", "The guide's rules", ("Rule", "By the chosen option"), "ww", rows)


def set_table(found: MigrationSet) -> Table:
    """One row for each plan of a set."""
    heads = ("Workload", "Now", "$ a month", "Then", "$ a month", "Saves", "Speed", "Expected")
    rows = []
    for plan in found.plans:
        chosen = plan.chosen
        misfit = isinstance(plan.current.placement, Misfit)
        now = plan.current.candidate.name + (" CANNOT FIT MODEL" if misfit else "")
        then = (
            [cell("nothing fits"), cell(""), cell(""), cell("")]
            if chosen is None
            else [
                cell("as now: already well optimized" if chosen.current else chosen.candidate.name),
                _money(chosen.monthly_usd), _saving(chosen), _ratio(chosen.speed_ratio, ".2f"),
            ]
        )  # fmt: skip
        name = plan.job.workload_id or plan.job.name or plan.job.model.name
        rows.append((cell(name), cell(now), _money(plan.current.monthly_usd), *then, cell(plan.job.expected_outcome)))
    return table("set", "All of them", heads, "wwnwnnnw", rows)


def facts(plan: MigrationPlan) -> list[tuple[str, str]]:
    """The question in words: what runs now, for whom, what is expected."""
    job, now = plan.job, plan.current
    placed = now.placement
    holds = placed.why if isinstance(placed, Misfit) else f"fits, {placed.headroom_ratio:.0%} free: {placed.words}"
    w = ", ".join(f"{name} {share:g}" for name, share in plan.weights.items())
    other = "on demand" if now.candidate.purchase == "spot" else "spot"
    beside = "" if isinstance(now.other_purchase_usd, Unknown) else f" ({other}: {dollars(now.other_purchase_usd)})"
    kind = job.workload.value.replace("_", "-")
    found = [
        ("workload", f"{job.name} [{job.workload_id}]" if job.workload_id else ""),
        ("", job.description),
        ("expected", job.expected_outcome),
        ("tags", ", ".join(job.tags)),
        ("use case", f"{job.use_case.replace('_', ' ')}; {'spot is suitable' if job.spot_suitable else 'no spot'}"),
        ("model", f"{job.model.name}, {kind}, {job.precision}, {float(job.monthly_h):g} h a month"),
        ("priority", f"{job.priority} ({w})"),
        ("now", f"{now.candidate.name}: {dollars(now.monthly_usd)} a month{beside}"),
        ("memory now", holds),
        ("memory rule", plan.memory.words),
        ("prices", plan.prices),
    ]
    return [(name, words) for name, words in found if words]
