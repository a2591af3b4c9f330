"""What should each namespace move to, by what its GPUs really did?

Demand comes from the ledger, dollars from the same charges as the audit's, prices from the market or the user's own
rates. What a move claims is capped by the waste measured on the GPUs it moves: a saving comes out of idle, underused
and stalled time, never out of productive time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Unpack

from gpuledger.advice.limits import Limits, load_limits
from gpuledger.catalog.prices.offers import facts
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Paying
from gpuledger.cost.money import ZERO, usd
from gpuledger.cost.statement import CostStatement
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.move.holdings import NOTHING_PAID, clouds_of, read_fleet
from gpuledger.plan.move.market import Market
from gpuledger.plan.move.statement import WELL_OPTIMIZED, HoldingPlan, LakePlan, MonthRange, NamespacePlan
from gpuledger.plan.move.verdict import plan_holding, settings_file
from gpuledger.settings import changed
from gpuledger.units import Unknown


def migrate_from_lake(
    lake: Lake | str | Path,
    scope: Scope | None = None,
    *,
    today: dt.date,
    clouds: Collection[str] = (),
    regions: Collection[str] = (),
    anywhere: bool = False,
    limits: Limits | None = None,
    market: Market | None = None,
    **paying: Unpack[Paying],
) -> LakePlan:
    """A proposal for each namespace in scope; the ledger must be posted.

    `paying`: what is paid now, as for the audit.
    `clouds`, `regions`: move only there. Without them a move stays in the cloud of the inventory's instances, so that
    prices of one cloud are compared; `anywhere` lifts that. `market`: other prices than the shipped ones.
    """
    rules, own = limits or load_limits(), paying.get("own", ())
    where = market or Market(
        today, own=own, clouds=clouds, regions=regions, clouds_from=rules.smaller.clouds_from
    )  # fmt: skip
    fleet = read_fleet(lake, scope or Scope(), rules, **paying)
    cost = fleet.cost
    plans = [
        plan_holding(h, rules, where if anywhere else where.within(clouds_of(h)), fleet.month) for h in fleet.holdings
    ]
    return _whole(cost, plans, today, assumptions(cost, rules, where, anywhere=anywhere))


def _whole(cost: CostStatement, plans: Sequence[HoldingPlan], today: dt.date, assumed: Iterable[str]) -> LakePlan:
    grouped: dict[str, list[HoldingPlan]] = {}
    for plan in plans:
        grouped.setdefault(plan.namespace, []).append(plan)
    spaces = [_namespace(name, members) for name, members in grouped.items()]
    spaces.sort(key=lambda s: _expensive_first(s.paid_usd, s.namespace))
    now, after = _add_known(s.month_now_usd for s in spaces), _add_known(s.month_after_usd for s in spaces)
    saving, dollars = _add([s.saving_month for s in spaces]), cost.dollars
    unpriced = sum(s.unpriced_gpus for s in spaces)
    return LakePlan(
        start_ms=cost.start_ms,
        end_ms=cost.end_ms,
        today=today,
        gpus=cost.gpus,
        unpriced_gpus=unpriced,
        paid_usd=cost.paid_usd,
        waste_usd=dollars if isinstance(dollars, Unknown) else dollars.waste_usd,
        month_now_usd=now,
        month_after_usd=after,
        saving_month=saving,
        saving_pct=_saved_pct(now, after),
        headline=headline(spaces, now, after, saving, unpriced),
        beside_audit=BESIDE_AUDIT,
        namespaces=tuple(spaces),
        not_known=tuple(not_known(plans)),
        assumptions=tuple(assumed),
        price_source=facts().source,
    )


def _expensive_first(paid: Decimal | Unknown, name: str) -> tuple[bool, Decimal, str]:
    return (True, ZERO, name) if isinstance(paid, Unknown) else (False, -paid, name)


def _namespace(name: str, plans: Sequence[HoldingPlan]) -> NamespacePlan:
    now, after = _add_known(p.month_now_usd for p in plans), _add_known(p.month_after_usd for p in plans)
    stays = MonthRange(ZERO, ZERO, ZERO)
    months = [
        p.month_now_usd if isinstance(p.month_now_usd, Unknown) else p.move.saving_month if p.move else stays
        for p in plans
    ]
    return NamespacePlan(
        namespace=name,
        gpus=sum(p.measured.gpus for p in plans),
        unpriced_gpus=sum(p.unpriced_gpus for p in plans),
        paid_usd=_add_known(p.paid_usd for p in plans),
        waste_usd=_add_known(p.waste_usd for p in plans),
        month_now_usd=now,
        month_after_usd=after,
        saving_month=_add(months),
        saving_pct=_saved_pct(now, after),
        verdict=namespace_verdict(plans),
        holdings=tuple(sorted(plans, key=lambda p: _expensive_first(p.paid_usd, str(p.gpu_model)))),
    )


def _add_known(amounts: Iterable[Decimal | Unknown]) -> Decimal | Unknown:
    """The sum of what is known; the first reason where nothing is."""
    given = list(amounts)
    known = [a for a in given if not isinstance(a, Unknown)]
    return sum(known, ZERO) if known else next((a for a in given if isinstance(a, Unknown)), NOTHING_PAID)


def _add(months: Sequence[MonthRange | Unknown]) -> MonthRange | Unknown:
    known = [m for m in months if not isinstance(m, Unknown)]
    if not known:
        return next((m for m in months if isinstance(m, Unknown)), NOTHING_PAID)
    names = ("low_usd", "middle_usd", "high_usd")
    return MonthRange(*(sum((getattr(m, n) for m in known), ZERO) for n in names))


def _saved_pct(now: Decimal | Unknown, after: Decimal | Unknown) -> Decimal | Unknown:
    if isinstance(now, Unknown):
        return now
    if isinstance(after, Unknown):
        return after
    return usd(Fraction((now - after) * 100) / Fraction(now)) if now else NOTHING_PAID


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
    """The verdicts on its holdings, the most expensive move first."""
    moving = [p for p in plans if p.move is not None]
    moving.sort(key=lambda p: (-p.move.saving.middle_pct if p.move else Decimal(0), str(p.gpu_model)))
    if moving:
        return "; ".join(f"{p.verdict} ({p.gpu_model})" for p in moving)
    verdicts = list(dict.fromkeys(p.verdict for p in plans))
    if all(p.outcome == "well optimized" for p in plans):
        return WELL_OPTIMIZED
    return verdicts[0] if len(verdicts) == 1 else "stay: no move carries the demand for less"


def not_known(plans: Sequence[HoldingPlan]) -> Iterator[tuple[str, str]]:
    """Figures the plan has to do without."""
    for plan in plans:
        what = f"{plan.namespace} on {plan.gpu_model or 'a GPU without a model name'}"
        if isinstance(plan.paid_usd, Unknown):
            yield f"price of {what}", plan.paid_usd.why
        for figure in ("busy_hours_tflops", "busy_hours_dram_bytes_per_s", "memory_max_bytes", "nvlink_bytes_per_s"):
            value = getattr(plan.measured, figure)
            if isinstance(value, Unknown):
                yield f"{figure} of {what}", value.why


def assumptions(cost: CostStatement, limits: Limits, market: Market, *, anywhere: bool) -> Iterator[str]:
    """Every choice that changes a figure."""
    fill, smaller = limits.fill, limits.smaller
    if not isinstance(rate := cost.projection, Unknown) and rate.projection_basis.sparse:
        yield f"dollars per month: {rate.projection_basis.words}"
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
    yield "a saving comes out of idle, underused and stalled time of the GPUs that move, never out of productive time"
    yield "a GPU that exchanges data over its links shares with no other load and moves only to GPUs with links"
    yield "the range of a move to another GPU is that of its price (p10 to p90) and of how full it is planned"
    yield (
        "a GPU is priced as in the cheapest instance type of each region, median over regions, each cloud counting the "
        "same (over all offers where the present GPUs are priced so too); vCPUs and host memory are not checked"
    )
    if market.clouds or market.regions:
        yield f"moves only to {', '.join((*market.clouds, *market.regions))}"
    elif not anywhere:
        yield "where the inventory names instances of a cloud, moves stay in it unless another is allowed"
    yield f"list prices are stale from {facts().stale_after_days['on_demand']} days on ({facts().stale_basis})"
    yield f"a move must save {100 * settings_file().worth_from_ratio:.0f} % of the cost ({settings_file().source})"
    yield "a month is 30 days; copying data, contracts and the work of moving are not in the dollars"
    yield from changed(efficiency_classes=load_thresholds().origin, advice=limits.origin)
    yield from cost.assumptions
