"""What changed between two periods of the same length: dollars, waste, GPUs, efficiency, and which owners did it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from gpuledger.advice.asking import Asked
from gpuledger.cost import figures
from gpuledger.cost.billing import Charged
from gpuledger.cost.build import statement_and_bill
from gpuledger.cost.charges import Charge, grouped
from gpuledger.cost.judged import known_waste
from gpuledger.cost.periods import Comparison, Effect
from gpuledger.cost.statement import WASTE, CostStatement, Dollars
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope, owner_name
from gpuledger.ledger.read.window import end_ms, last_of
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, point_of

WEEK_MS = 7 * MS_PER_DAY
# What moved an owner's dollars most.
Cause = Literal["new", "gone", "volume", "rate", "efficiency", "none"]
# Changes below this part of a cent are rounding.
_NOTHING = Decimal("0.0001")


@dataclass(frozen=True)
class PeriodFigures:
    """One period. RFU is realized FLOPS utilization, by power and (the middle) by counters."""

    start_ms: int
    end_ms: int
    paid_usd: Decimal | Unknown
    waste_usd: Decimal | Unknown
    waste_pct: float | Unknown
    gpus: int
    paid_h: float
    idle_h: float
    util_pct: float | Unknown
    rfu_power_pct: float | Unknown
    rfu_counters_pct: float | Unknown


@dataclass(frozen=True)
class OwnerChange:
    """What one owner's dollars did. `volume_usd`, `rate_usd`: the change of what it paid by paid hours and by price.

    `efficiency_usd` is what moved into waste (out of it, below zero) by time used otherwise: it does not change what is
    paid. `cause` is the largest of the three.
    """

    owner: str
    before_usd: Decimal
    after_usd: Decimal
    change_usd: Decimal
    waste_before_usd: Decimal | Unknown
    waste_after_usd: Decimal | Unknown
    waste_change_usd: Decimal | Unknown
    volume_usd: Decimal
    rate_usd: Decimal
    efficiency_usd: Decimal
    gpus_before: int
    gpus_after: int
    cause: Cause


@dataclass(frozen=True)
class Change:
    """One period against the one before it; `comparison` has the change of each bucket. Owners by size of change."""

    now: PeriodFigures
    before: PeriodFigures
    comparison: Comparison
    owners: tuple[OwnerChange, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]


def change(lake: Lake, scope: Scope, asked: Asked) -> Change:
    """The window against the period before it; the last seven days without a window. The ledger must be posted."""
    window = _window(lake, scope)
    terms = asked.terms | {"calibration": load_calibration(lake)}
    cost, bill = statement_and_bill(lake, window, **(terms | {"previous": True}))
    if isinstance(cost.previous, Unknown):
        raise InputError(cost.previous.why, hint=_shorter(lake, window))
    earlier = replace(window, since_ms=cost.previous.start_ms, until_ms=cost.previous.end_ms)
    old_cost, old_bill = statement_and_bill(lake, earlier, **(terms | {"previous": False}))
    return Change(
        now=_figures(lake, window, cost),
        before=_figures(lake, earlier, old_cost),
        comparison=cost.previous,
        owners=_owners(bill, old_bill),
        notes=tuple(_notes(cost, old_cost)),
        assumptions=cost.assumptions,
    )


def _window(lake: Lake, scope: Scope) -> Scope:
    """The window with both of its ends; seven days where it has no start."""
    end = end_ms(lake) if scope.until_ms is None else scope.until_ms
    start = last_of(lake, WEEK_MS, end).since_ms if scope.since_ms is None else scope.since_ms
    if start is None or start >= end:
        raise InputError("since is not before the newest sample", hint="choose an earlier start")
    return replace(scope, since_ms=start, until_ms=end)


def _shorter(lake: Lake, window: Scope) -> str:
    """What to do where no sample is older than the window: half of it, or older samples."""
    first = min((p.first_ms for p in lake.manifest().parts), default=window.until_ms or 0)
    hours = ((window.until_ms or 0) - first) // 2 // MS_PER_HOUR
    if hours < 1:
        return "import older samples"
    most = f"{hours // 24}d" if hours >= 48 else f"{hours}h"
    return f"choose a shorter period, at most last={most}, or import older samples"


def _figures(lake: Lake, scope: Scope, cost: CostStatement) -> PeriodFigures:
    fleet = efficiency_statement(lake, scope, calibration=load_calibration(lake)).fleet
    dollars, waste, counters = cost.dollars, known_waste(cost.dollars), fleet.rfu_counters_pct
    return PeriodFigures(
        start_ms=cost.start_ms,
        end_ms=cost.end_ms,
        paid_usd=cost.paid_usd,
        waste_usd=waste,
        waste_pct=_share(dollars, waste),
        gpus=cost.gpus,
        paid_h=cost.times.paid_h,
        idle_h=(cost.times.idle_ms + cost.times.idle_held_ms) / MS_PER_HOUR,
        util_pct=fleet.gpu_util_pct,
        rfu_power_pct=fleet.rfu_power_pct,
        rfu_counters_pct=point_of(counters),
    )


def _share(dollars: Dollars | Unknown, amount: Decimal | Unknown) -> float | Unknown:
    """An amount in percent of what was paid."""
    if isinstance(dollars, Unknown):
        return dollars
    return amount if isinstance(amount, Unknown) else dollars.pct(amount)


def _owners(now: Charged, before: Charged) -> tuple[OwnerChange, ...]:
    """Each owner with dollars in either period, the largest change of paid or wasted dollars first."""
    new, old = (grouped(bill.charges, _owner) for bill in (now, before))
    span = before.window.start_ms, before.window.end_ms
    rows = [_owner_change(name, new.get(name, []), old.get(name, []), span) for name in dict.fromkeys((*new, *old))]
    priced = [row for row in rows if row is not None]
    return tuple(sorted(priced, key=lambda r: (-max(abs(r.change_usd), _size(r.waste_change_usd)), r.owner)))


def _size(change: Decimal | Unknown) -> Decimal:
    """An unknown change does not rank."""
    return Decimal(0) if isinstance(change, Unknown) else abs(change)


def _owner(charge: Charge) -> str:
    return owner_name(charge.namespace, charge.workload)


def _owner_change(
    name: str, now: Sequence[Charge], before: Sequence[Charge], span: tuple[int, int]
) -> OwnerChange | None:
    """One owner; None where nothing it has is priced."""
    if not any(c.dollars is not None for c in (*now, *before)):
        return None
    found = figures.compare(now, before, span)
    waste = [e for e in found.by_bucket if e.bucket in WASTE]
    old, new = (known_waste(_dollars(charges)) for charges in (before, now))
    efficiency = sum((e.efficiency_usd for e in waste), Decimal(0))
    return OwnerChange(
        owner=name,
        before_usd=found.total.before_usd,
        after_usd=found.total.after_usd,
        change_usd=found.total.change_usd,
        waste_before_usd=old,
        waste_after_usd=new,
        waste_change_usd=old if isinstance(old, Unknown) else new if isinstance(new, Unknown) else new - old,
        volume_usd=found.total.volume_usd,
        rate_usd=found.total.rate_usd,
        efficiency_usd=efficiency,
        gpus_before=figures.boards(before),
        gpus_after=figures.boards(now),
        cause=_cause(found.total, efficiency, now, before),
    )


def _cause(total: Effect, efficiency: Decimal, now: Sequence[Charge], before: Sequence[Charge]) -> Cause:
    if not _paid(before):
        return "new"
    if not _paid(now):
        return "gone"
    parts: dict[Cause, Decimal] = {"volume": total.volume_usd, "rate": total.rate_usd, "efficiency": efficiency}
    largest = max(parts, key=lambda name: abs(parts[name]))
    return largest if abs(parts[largest]) >= _NOTHING else "none"


def _paid(charges: Sequence[Charge]) -> Decimal:
    return _dollars(charges).paid_usd


def _dollars(charges: Sequence[Charge]) -> Dollars:
    return Dollars.total(c.dollars for c in charges if c.dollars is not None)


def _notes(now: CostStatement, before: CostStatement) -> Iterator[str]:
    """What keeps the two periods from being alike."""
    for when, cost in (("this period", now), ("the period before", before)):
        if cost.unpriced:
            hours = sum(row.paid_h for row in cost.unpriced)
            yield f"{hours:,.1f} GPU-hours of {when} have no price: they are in no dollar figure"
