"""What should each namespace move to, by what its GPUs really did?

Demand comes from the ledger, dollars from the same charges as the audit's, prices from the market or the user's own
rates. What a move claims is capped by the waste measured on the GPUs it moves: a saving comes out of idle, underused
and stalled time, never out of productive time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Unpack

from gpuledger.advice.limits import Limits, load_limits
from gpuledger.arguments import takes
from gpuledger.catalog.prices.offers import facts
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Paying
from gpuledger.cost.judged import known_waste
from gpuledger.cost.money import ZERO, usd
from gpuledger.cost.statement import CostStatement
from gpuledger.lake.layout import AnyLake
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.market import Market
from gpuledger.plan.move.boards import assumed
from gpuledger.plan.move.holdings import NOTHING_PAID, Fleet, clouds_of, read_fleet
from gpuledger.plan.move.statement import WELL_OPTIMIZED, HoldingPlan, LakePlan, NamespacePlan
from gpuledger.plan.move.verdict import plan_holding, settings_file
from gpuledger.settings import changed
from gpuledger.units import Unknown


@takes(Paying)
def migrate_from_lake(
    lake: AnyLake,
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
    plans = [
        plan_holding(h, rules, where if anywhere else where.within(clouds_of(h)), fleet.months) for h in fleet.holdings
    ]
    return _whole(fleet.cost, plans, today, assumptions(fleet, rules, where, anywhere=anywhere))


def _whole(cost: CostStatement, plans: Sequence[HoldingPlan], today: dt.date, assumed: Iterable[str]) -> LakePlan:
    grouped: dict[str, list[HoldingPlan]] = {}
    for plan in plans:
        grouped.setdefault(plan.namespace, []).append(plan)
    spaces = [
        NamespacePlan(
            namespace=name,
            gpus=sum(p.measured.gpus for p in members),
            verdict=namespace_verdict(members),
            holdings=tuple(sorted(members, key=lambda p: _expensive_first(p.paid_usd, str(p.gpu_model)))),
            **_totals(members),
        )
        for name, members in grouped.items()
    ]
    spaces.sort(key=lambda s: _expensive_first(s.paid_usd, s.namespace))
    total = _totals(spaces) | {"paid_usd": cost.paid_usd, "waste_usd": known_waste(cost.dollars)}
    return LakePlan(
        start_ms=cost.start_ms,
        end_ms=cost.end_ms,
        today=today,
        gpus=cost.gpus,
        headline=headline(spaces, total),
        beside_audit=settings_file().beside_audit,
        namespaces=tuple(spaces),
        not_known=tuple(not_known(plans)),
        assumptions=tuple(assumed),
        price_source=facts().source,
        **total,
    )


def _expensive_first(paid: Decimal | Unknown, name: str) -> tuple[bool, Decimal, str]:
    return (True, ZERO, name) if isinstance(paid, Unknown) else (False, -paid, name)


def _totals(parts: Sequence[HoldingPlan] | Sequence[NamespacePlan]) -> dict[str, Any]:
    """The sums over some GPUs of what is known, by field; the first reason where nothing is."""

    def add(name: str) -> Any:
        each = [getattr(part, name) for part in parts]
        known = [amount for amount in each if not isinstance(amount, Unknown)]
        return sum(known[1:], known[0]) if known else next(iter(each), NOTHING_PAID)

    sums = {name: add(name) for name in ("paid_usd", "waste_usd", "month_now_usd", "month_after_usd", "saving_month")}
    now, after = sums["month_now_usd"], sums["month_after_usd"]
    pct = now if isinstance(now, Unknown) else after
    if not isinstance(pct, Unknown):
        pct = usd(Fraction((now - after) * 100) / Fraction(now)) if now else NOTHING_PAID
    elif not isinstance(paid := sums["paid_usd"], Unknown) and paid:
        # The same share of the window, where nothing can be given per month.
        pct = usd(Fraction(sum((part.saved_usd for part in parts), ZERO) * 100) / Fraction(paid))
    return sums | {"saving_pct": pct, "unpriced_gpus": sum(part.unpriced_gpus for part in parts)}


def headline(spaces: Sequence[NamespacePlan], total: Mapping[str, Any]) -> str:
    """What it costs, what it could cost, and where to begin."""
    now, after, saving, unpriced = (
        total[name] for name in ("month_now_usd", "month_after_usd", "saving_month", "unpriced_gpus")
    )
    left_out = f" {unpriced} GPU{'s' * (unpriced != 1)} without a price not included." if unpriced else ""
    why = next((x.why for x in (now, after, saving) if isinstance(x, Unknown)), None)
    paid, pct = total["paid_usd"], total["saving_pct"]
    if why and not isinstance(paid, Unknown):
        best = max(spaces, key=lambda s: (s.saved_usd, s.namespace))
        could = f"{pct:.0f} % of it could be saved. First: {best.namespace}, {best.verdict}" if pct else WELL_OPTIMIZED
        return f"${paid:,.2f} in this window: {could}. Dollars per month are unknown: {why}.{left_out}"
    if why:
        return f"What the GPUs cost is unknown ({why}), so no saving is given in dollars: give a price or an inventory."
    moving = [(s.saving_month.middle_usd, s) for s in spaces if not isinstance(s.saving_month, Unknown)]
    worth = [(amount, s) for amount, s in moving if amount > 0]
    unpriced_moves = [s for s in spaces if isinstance(s.saving_month, Unknown) and any(h.move for h in s.holdings)]
    if unpriced_moves:
        left_out += f" Of those {unpriced_moves[0].namespace}: {unpriced_moves[0].verdict}."
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


def assumptions(fleet: Fleet, limits: Limits, market: Market, *, anywhere: bool) -> Iterator[str]:
    """Every choice that changes a figure."""
    cost = fleet.cost
    if not isinstance(rate := cost.projection, Unknown) and rate.projection_basis.sparse:
        yield f"dollars per month: {rate.projection_basis.words}"
    ratios = {
        "cautious": limits.fill.cautious_ratio, "middle": limits.fill.middle_ratio, "bold": limits.fill.bold_ratio,
        "margin": limits.smaller.memory_margin_ratio,
    }  # fmt: skip
    for words in settings_file().assumptions:
        yield words.format(**{name: f"{100 * ratio:.0f}" for name, ratio in ratios.items()})
    yield from assumed(holding.gpu for holding in fleet.holdings)
    if market.clouds or market.regions:
        yield f"moves only to {', '.join((*market.clouds, *market.regions))}"
    elif not anywhere:
        yield "where the inventory names instances of a cloud, moves stay in it unless another is allowed"
    yield f"list prices are stale from {facts().stale_after_days['on_demand']} days on ({facts().stale_basis})"
    yield f"a move must save {100 * settings_file().worth_from_ratio:.0f} % of the cost ({settings_file().source})"
    yield "a month is 30 days; copying data, contracts and the work of moving are not in the dollars"
    yield from changed(efficiency_classes=load_thresholds().origin, advice=limits.origin)
    yield from cost.assumptions
