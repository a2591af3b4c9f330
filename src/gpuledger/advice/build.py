"""What was wasted in a window, what should be changed, and what is that worth?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Unpack

from gpuledger.advice.case import Case
from gpuledger.advice.cases import Made, make_cases
from gpuledger.advice.findings import find_all, with_measured
from gpuledger.advice.hours import idle_times, quiet_hours
from gpuledger.advice.limits import Limits, load_limits
from gpuledger.advice.orientation import orientation_of
from gpuledger.advice.recommend import headline, recommend, unrated_note
from gpuledger.advice.statement import AuditStatement, ClassPart, GroupBehaviour, RoiPriced
from gpuledger.advice.stretches import StretchReader, read_pods
from gpuledger.advice.totals import Scale, combine_cases, months_by_case, roi_priced, total, with_quarter
from gpuledger.arguments import takes
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Terms, statement_and_bill
from gpuledger.cost.charges import grouped
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.statement import CostStatement, unpriced_names
from gpuledger.efficiency.statement import NotKnown
from gpuledger.lake.counted import read_counted
from gpuledger.lake.layout import AnyLake, Lake, posted_lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.behavior import NOT_KNOWN
from gpuledger.settings import changed
from gpuledger.units import Unknown


@takes(Terms)
def audit_statement(
    lake: AnyLake, scope: Scope | None = None, *, thresholds: Limits | None = None, **terms: Unpack[Terms]
) -> AuditStatement:
    """Cost, behavior and advice of one window; the ledger must be posted.

    `thresholds`: where advice applies. Other keywords: see `gpuledger.cost.build.Terms`.
    """
    books, wanted = posted_lake(lake), scope or Scope()
    given, per_kwh = terms.get("inventory"), terms.get("usd_per_kwh")
    terms["inventory"] = stock = inventory_of(books, given)
    limits, rules = thresholds or load_limits(), load_thresholds()
    reader = StretchReader(limits, rules)
    cost, bill = statement_and_bill(books, wanted, along=reader, **terms)
    stretches = reader.found(books, wanted)
    usd_per_kwh = None if per_kwh is None else Decimal(str(per_kwh))
    made = make_cases(stretches, bill, stock, limits, usd_per_kwh, read_pods(books, wanted))
    cases = with_measured(_with_hours(books, wanted, made, limits, cost.end_ms), read_counted(books), wanted)
    months = months_by_case(cases, made.case_of, bill.charges, cost.months)
    scale = Scale(cost.paid_usd, cost.times.paid_ms, months, cost.months.why)
    return _advised(cost, cases, scale, limits, roi_priced(stretches, cost, rules.targets), rules.origin)


def _advised(
    cost: CostStatement, cases: tuple[Case, ...], scale: Scale, limits: Limits, roi: tuple[RoiPriced, ...], origin: str
) -> AuditStatement:
    """The cases with what to change about them, and what that saves."""
    findings = find_all(cases, limits)
    combined = combine_cases(findings)
    recommendations = recommend(findings, combined, scale)
    savings = with_quarter(total(combined, scale), cost.projection)
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
        orientation=orientation_of(cost),
        assumptions=(*_assumptions(cost, limits), *changed(efficiency_classes=origin, advice=limits.origin)),
    )


def _with_hours(lake: Lake, scope: Scope, made: Made, limits: Limits, end_ms: int) -> tuple[Case, ...]:
    """The cases with their quiet hours and long stretches without work, looked up for those that idle at all."""
    rest = {
        i for i, c in enumerate(made.cases) if c.idle_ratio + c.idle_held_ratio > 1 - limits.schedule.quiet_from_ratio
    }
    found = idle_times(lake, scope, {key: n for key, n in made.case_of.items() if n in rest}, end_ms)
    cases = list(made.cases)
    for number, by_hour in found.by_hour.items():
        hours, ratio = quiet_hours(by_hour, limits.schedule.quiet_from_ratio)
        cases[number] = replace(cases[number], quiet_hours=hours, quiet_idle_ratio=ratio)
    for number, long in found.long.items():
        cases[number] = replace(cases[number], long_idle=long)
    return tuple(cases)


def _not_known(cost: CostStatement, cases: Sequence[Case]) -> Iterator[NotKnown]:
    for name, why in unpriced_names(cost):
        yield NotKnown(name, why)
    if isinstance(cost.phases_pct, Unknown):
        yield NotKnown("phases", cost.phases_pct.why)
    for case in cases:
        if case.klass == NOT_KNOWN:
            yield NotKnown(f"behavior of {case.owner} on {case.model}", case.evidence[0])
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


def group_behaviours(cases: Sequence[Case]) -> tuple[GroupBehaviour, ...]:
    """Cases by owner and model, the longest observed first."""
    groups = grouped(cases, lambda c: (c.namespace, c.workload, c.gpu_model))
    rows = [_behaviour(members) for members in groups.values()]
    return tuple(sorted(rows, key=lambda r: (-r.observed_h, str((r.namespace, r.workload, r.gpu_model)))))


def _behaviour(members: Sequence[Case]) -> GroupBehaviour:
    ordered = sorted(members, key=lambda c: (-c.observed_h, c.klass))
    shares = _mix(ordered, "shares")
    main = max(sorted(shares), key=lambda k: shares[k]) if shares else ordered[0].klass
    # The case of the dominating class has the evidence; a class that only mixes in has no case of its own.
    shown = next((c for c in ordered if c.klass == main), ordered[0])
    return GroupBehaviour(
        namespace=shown.namespace,
        workload=shown.workload,
        gpu_model=shown.gpu_model,
        purpose=shown.purpose,
        gpus=len({d.partition("/")[0] for c in ordered for d in c.devices}),
        observed_h=sum(c.observed_h for c in ordered),
        klass=main,
        shares_pct=shares,
        phases_pct=_mix(ordered, "phases"),
        evidence=shown.evidence,
        confidence=shown.confidence,
        parts=tuple(ClassPart(c.klass, c.gpus, c.observed_h, c.evidence, c.confidence) for c in ordered),
    )


def _mix(members: Sequence[Case], name: str) -> dict[str, float]:
    """Shares over several cases in percent, weighted by their time."""
    sums: dict[str, float] = {}
    for case in members:
        for key, share in getattr(case, name).items():
            sums[key] = sums.get(key, 0.0) + share * case.observed_h
    total = sum(sums.values())
    return {key: 100 * value / total for key, value in sums.items()} if total else {}
