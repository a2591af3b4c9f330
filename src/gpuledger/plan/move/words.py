"""What are the plan's first line, its verdict on a namespace, its assumptions and its gaps?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuledger.advice.limits import Limits
from gpuledger.catalog.prices.offers import facts
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.statement import CostStatement
from gpuledger.plan.move.market import Market
from gpuledger.plan.move.statement import WELL_OPTIMIZED, HoldingPlan, MonthRange, NamespacePlan
from gpuledger.plan.move.verdict import settings_file
from gpuledger.settings import changed
from gpuledger.units import Unknown

BESIDE_AUDIT = (
    "This is what changing GPUs alone saves. The saving of an audit is what fixing the work on the present GPUs could "
    "free. Both come out of the same idle, underused and stalled dollars: they overlap and must not be added."
)


def headline(
    spaces: Sequence[NamespacePlan],
    now: Decimal | Unknown,
    after: Decimal | Unknown,
    saving: MonthRange | Unknown,
    unpriced: int,
) -> str:
    """What it costs, what it could cost, and where to begin."""
    if isinstance(now, Unknown) or isinstance(after, Unknown) or isinstance(saving, Unknown):
        why = next(x.why for x in (now, after, saving) if isinstance(x, Unknown))
        return f"What the GPUs cost is unknown ({why}), so no saving is given in dollars: give a price or an inventory."
    left_out = f" {unpriced} GPU{'s' * (unpriced != 1)} without a price not included." if unpriced else ""
    moving = [(s.saving_month.middle_usd, s) for s in spaces if not isinstance(s.saving_month, Unknown)]
    worth = [(amount, s) for amount, s in moving if amount > 0]
    if not worth:
        return f"${now:,.0f} per month: {WELL_OPTIMIZED}, or no move carries the demand for less.{left_out}"
    first = max(worth, key=lambda pair: (pair[0], pair[1].namespace))[1]
    share = 100 * (now - after) / now
    return (
        f"${now:,.0f} per month could be ${after:,.0f}: {share:.0f} % less (${saving.low_usd:,.0f} to "
        f"${saving.high_usd:,.0f} saved). First: {first.namespace}, {first.verdict}.{left_out}"
    )


def namespace_verdict(plans: Sequence[HoldingPlan]) -> str:
    """The verdicts on its holdings, the dearest move first."""
    moving = [p for p in plans if p.move is not None]
    moving.sort(key=lambda p: (-p.move.saving.middle_pct if p.move else Decimal(0), str(p.gpu_model)))
    if moving:
        return "; ".join(f"{p.verdict} ({p.gpu_model})" for p in moving)
    verdicts = list(dict.fromkeys(p.verdict for p in plans))
    if all(p.outcome == "well optimized" for p in plans):
        return WELL_OPTIMIZED
    return verdicts[0] if len(verdicts) == 1 else "stay: no move carries the demand for less"


def not_known(plans: Sequence[HoldingPlan]) -> Iterator[tuple[str, str]]:
    """Figures the plan had to do without."""
    for plan in plans:
        what = f"{plan.namespace} on {plan.gpu_model or 'a GPU without a model name'}"
        if isinstance(plan.paid_usd, Unknown):
            yield f"price of {what}", plan.paid_usd.why
        for figure in ("busy_hours_tflops", "busy_hours_dram_bytes_per_s", "memory_max_bytes", "nvlink_bytes_per_s"):
            value = getattr(plan.measured, figure)
            if isinstance(value, Unknown):
                yield f"{figure} of {what}", value.why


def assumptions(cost: CostStatement, limits: Limits, market: Market, *, anywhere: bool) -> Iterator[str]:
    """Every choice that moves a figure."""
    fill, smaller = limits.fill, limits.smaller
    if not isinstance(cost.projection, Unknown) and cost.projection.projection_basis.sparse:
        yield f"dollars per month: {cost.projection.projection_basis.words}"
    yield "a plan carries each GPU's busy hours (95th percentile over its hours), its peak memory at all times"
    yield (
        f"a shared GPU is planned {100 * fill.cautious_ratio:.0f}, {100 * fill.middle_ratio:.0f} and "
        f"{100 * fill.bold_ratio:.0f} % full (cautious, middle, bold); {100 * smaller.memory_margin_ratio:.0f} % "
        "of the memory stays free"
    )
    yield "work by counters is taken at the high end of what they can mean; by power it is a ceiling"
    yield (
        "each pipe and precision is compared with its own peak on the other GPU; tensor work without a precision label "
        "is taken as the reference precision (bf16, or fp16 on older GPUs)"
    )
    yield "a saving comes out of idle, underused and stalled time of the GPUs that move, never out of time put to use"
    yield "a GPU that exchanges data over its links shares with nobody and moves only to GPUs with links"
    yield "the range of a move to another GPU is that of its price (p10 to p90) and of how full it is planned"
    yield (
        "a GPU is priced as in the cheapest instance type of each region, median over regions, each cloud counting the "
        "same (over all offers where the present GPUs are priced so too); vCPUs and host memory are not checked"
    )
    if market.clouds or market.regions:
        yield f"moves only to {', '.join((*market.clouds, *market.regions))}"
    elif not anywhere:
        yield "where the inventory names instances of a cloud, moves stay in it: --cloud NAME or --cloud any lifts that"
    yield f"list prices are stale from {facts().stale_after_days['on_demand']} days on ({facts().stale_basis})"
    least = settings_file()
    yield f"a move must save {100 * least.worth_from_ratio:.0f} % of what these GPUs cost ({least.source})"
    yield "a month is 30 days; copying data, contracts and the work of moving are not in the dollars"
    yield from changed(efficiency_classes=load_thresholds().origin, advice=limits.origin)
    yield from cost.assumptions
