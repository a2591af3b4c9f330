"""Lake, prices and inventory in: what was wasted, what should be changed, what is that worth?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from gpuledger.advice.case import Case
from gpuledger.advice.cases import Made, make_cases
from gpuledger.advice.findings import find_all
from gpuledger.advice.groups import group_behaviours
from gpuledger.advice.headline import first_on_top, headline, unrated_note
from gpuledger.advice.hours import idle_by_hour, quiet_hours
from gpuledger.advice.limits import Limits, load_limits
from gpuledger.advice.measured import with_measured
from gpuledger.advice.recommend import Scale, recommend
from gpuledger.advice.roi import roi_priced
from gpuledger.advice.statement import AuditStatement, RoiPriced
from gpuledger.advice.stretches import read_stretches
from gpuledger.advice.totals import combine_cases, total
from gpuledger.catalog.prices.offers import Offer
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Money, statement_and_bill
from gpuledger.cost.inventory import Inventory, read_inventory
from gpuledger.cost.projections import months_of
from gpuledger.cost.showback import Config
from gpuledger.cost.statement import CostStatement
from gpuledger.efficiency.statement import NotKnown
from gpuledger.lake.counted import read_counted
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.behavior import NOT_KNOWN
from gpuledger.physics.calibration import Calibration
from gpuledger.settings import changed
from gpuledger.units import Unknown


def audit_statement(
    lake: Lake | str | Path,
    scope: Scope | None = None,
    *,
    inventory: Inventory | str | Path | None = None,
    price: Money | Mapping[str, Money] | None = None,
    instance: str | None = None,
    region: str | None = None,
    teams: Config | None = None,
    as_of_ms: int | None = None,
    previous: bool = False,
    usd_per_kwh: Money | None = None,
    calibration: Calibration | None = None,
    thresholds: Limits | None = None,
    own: Sequence[Offer] = (),
) -> AuditStatement:
    """Cost, behaviour and advice of one window; the books must be posted.

    `thresholds`: where advice applies. `own`: rates of the user's own, used before list prices.
    """
    books, wanted = lake if isinstance(lake, Lake) else Lake(lake), scope or Scope()
    stock = read_inventory(inventory) if isinstance(inventory, str | Path) else inventory
    limits, rules = thresholds or load_limits(), load_thresholds()
    stretches = read_stretches(books, wanted, limits, rules)
    cost, bill = statement_and_bill(
        books,
        wanted,
        inventory=stock,
        price=price,
        instance=instance,
        region=region,
        teams=teams,
        as_of_ms=as_of_ms,
        previous=previous,
        usd_per_kwh=usd_per_kwh,
        calibration=calibration,
        own=own,
    )
    per_kwh = None if usd_per_kwh is None else Decimal(str(usd_per_kwh))
    made = make_cases(stretches, bill, stock, limits, per_kwh)
    cases = with_measured(_with_hours(books, wanted, made, limits), read_counted(books), wanted)
    return _advised(cost, cases, limits, roi_priced(stretches, cost, rules.targets), rules.origin)


def _advised(
    cost: CostStatement, cases: tuple[Case, ...], limits: Limits, roi: tuple[RoiPriced, ...], origin: str
) -> AuditStatement:
    """The cases with what to change about them, and what that saves."""
    findings = find_all(cases, limits)
    combined = combine_cases(findings)
    month = months_of(cost.projection, cost.end_ms - cost.start_ms)
    scale = Scale(cost.paid_usd, cost.times.paid_ms, month)
    recommendations = first_on_top(recommend(findings, combined, scale))
    savings = total(combined, cost.paid_usd, cost.times.paid_ms, month)
    return AuditStatement(
        cost=cost,
        phases_pct=cost.phases_pct,
        behaviours=group_behaviours(cases),
        cases=cases,
        recommendations=recommendations,
        savings=savings,
        roi_priced=roi,
        first=recommendations[0] if recommendations else None,
        headline=headline(cost, savings, recommendations, limits.unrated.sizable_from_ratio),
        unrated_note=unrated_note(cost, recommendations, limits.unrated.sizable_from_ratio),
        not_known=tuple(_not_known(cost, cases)),
        assumptions=(*_assumptions(cost, limits), *changed(efficiency_classes=origin, advice=limits.origin)),
    )


def _with_hours(lake: Lake, scope: Scope, made: Made, limits: Limits) -> tuple[Case, ...]:
    """The cases with their quiet hours, looked up for those that idle at all."""
    rest = {
        i for i, c in enumerate(made.cases) if c.idle_ratio + c.idle_held_ratio > 1 - limits.schedule.quiet_from_ratio
    }
    found = idle_by_hour(lake, scope, {key: n for key, n in made.case_of.items() if n in rest})
    cases = list(made.cases)
    for number, by_hour in found.items():
        hours, ratio = quiet_hours(by_hour, limits.schedule.quiet_from_ratio)
        cases[number] = replace(cases[number], quiet_hours=hours, quiet_idle_ratio=ratio)
    return tuple(cases)


def _not_known(cost: CostStatement, cases: Sequence[Case]) -> Iterator[NotKnown]:
    for row in cost.unpriced:
        yield NotKnown(f"price of {row.gpu_model or 'devices without a model name'}", row.why)
    if isinstance(cost.phases_pct, Unknown):
        yield NotKnown("phases", cost.phases_pct.why)
    for case in cases:
        if case.klass == NOT_KNOWN:
            yield NotKnown(f"behaviour of {case.owner} on {case.model}", case.evidence[0])
        elif case.works and not case.by_counters:
            why = "judged by utilization and power alone: " + case.evidence[-1]
            yield NotKnown(f"what {case.owner} on {case.model} is limited by", why)
        if isinstance(case.gpu, Unknown):
            yield NotKnown(f"facts of {case.gpu_model or 'a GPU without a model name'}", case.gpu.why)


def _assumptions(cost: CostStatement, limits: Limits) -> Iterator[str]:
    if not isinstance(cost.projection, Unknown):
        yield f"projection: {cost.projection.projection_basis.words}"
    yield "each device is judged once per day for each owner, by the time it worked or waited; idle time is set apart"
    yield f"idle-heavy: {100 * limits.idle.idle_heavy_from_ratio:.0f} % of the time or more ({limits.idle.source})"
    yield f"low memory: under {100 * limits.memory.low_below_ratio:.0f} % of the card ({limits.memory.source})"
    yield "a faster job saves money only when the GPUs it no longer needs are given back"
    yield "fewer hours save money while the provider bills by the hour, not where capacity is committed or owned"
    yield "hours of the day are UTC; a month is 30 days"
    yield from cost.assumptions
