"""What would the same work cost on one other GPU?

The demand, the packing, the prices and the reasons against a move are those of the plan from the ledger; here the
target is given, and what it costs is shown also where it is more. Nothing is capped by waste: it is the cost of the
GPUs that the demand takes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, Unpack

from gpuledger.advice.limits import Limits, load_limits
from gpuledger.arguments import takes
from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.prices.offers import facts
from gpuledger.cost.build import Paying
from gpuledger.cost.money import CENT, ZERO, usd
from gpuledger.cost.projections import Months
from gpuledger.lake.batch import board_of
from gpuledger.lake.layout import AnyLake
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.market import Market, PriceBasis
from gpuledger.plan.move.build import assumptions
from gpuledger.plan.move.demand import Holding, measured
from gpuledger.plan.move.holdings import clouds_of, read_fleet
from gpuledger.plan.move.moves import Carried, carry_on
from gpuledger.plan.move.statement import Measured
from gpuledger.plan.move.verdict import month_usd
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import Unknown

Outcome = Literal["moves", "there already", "cannot move", "unknown"]


@dataclass(frozen=True)
class TargetRow:
    """A namespace's GPUs of one model on the target. `moved` of `gpus_now` become `gpus_after` (cautious to bold).

    `after_month` is for those that move; `now_month_usd` is what they cost today. The others stay, for `why_not`.
    `needs_tflops` is what the busiest load does while it works, by precision; unknown where it is not recorded.
    """

    namespace: str
    gpu_model: str | None
    outcome: Outcome
    gpus_now: int
    moved: int
    gpus_after: tuple[int, int, int]
    now_month_usd: Decimal | Unknown
    after_month: UsdRange | Unknown
    change_month_usd: Decimal | Unknown
    now_gpu_h_per_month: float | Unknown
    after_gpu_h_per_month: float | Unknown
    needs_tflops: dict[str, float] | Unknown
    price: PriceBasis | None
    fits: str
    risks: tuple[str, ...]
    why_not: str
    remedy: str
    measured: Measured


@dataclass(frozen=True)
class TargetPlan:
    """The same work on one GPU model. Dollars are of the GPUs that can move; `staying` cannot, or it is unknown."""

    to: str
    to_name: str
    start_ms: int
    end_ms: int
    today: dt.date
    gpus: int
    moving: int
    gpus_after: tuple[int, int, int]
    there: int
    staying: int
    now_month_usd: Decimal | Unknown
    after_month: UsdRange | Unknown
    change_month_usd: Decimal | Unknown
    rows: tuple[TargetRow, ...]
    assumptions: tuple[str, ...]
    price_source: str


@takes(Paying)
def migrate_to(
    lake: AnyLake,
    scope: Scope,
    to: str,
    *,
    today: dt.date,
    clouds: Collection[str] = (),
    regions: Collection[str] = (),
    anywhere: bool = False,
    limits: Limits | None = None,
    market: Market | None = None,
    **paying: Unpack[Paying],
) -> TargetPlan:
    """The work in scope on the GPU `to`; the ledger must be posted. Other arguments as for `migrate_from_lake`."""
    other, rules = get_gpu(to), limits or load_limits()
    where = market or Market(
        today, own=paying.get("own", ()), clouds=clouds, regions=regions, clouds_from=rules.smaller.clouds_from
    )  # fmt: skip
    fleet = read_fleet(lake, scope, rules, **paying)
    rows = [
        _row(h, other, rules, where if anywhere else where.within(clouds_of(h)), fleet.months) for h in fleet.holdings
    ]
    rows.sort(key=lambda r: (r.outcome != "moves", -_known(r.now_month_usd), r.namespace, str(r.gpu_model)))
    moving = [r for r in rows if r.outcome == "moves"]
    now, after = _sum(r.now_month_usd for r in moving), _sum_range(moving)
    whole = tuple(sum(r.gpus_after[i] for r in moving) for i in range(3))
    there = sum(r.gpus_now for r in rows if r.outcome == "there already")
    return TargetPlan(
        to=other.key,
        to_name=other.name,
        start_ms=fleet.cost.start_ms,
        end_ms=fleet.cost.end_ms,
        today=today,
        gpus=fleet.cost.gpus,
        moving=sum(r.moved for r in moving),
        gpus_after=(whole[0], whole[1], whole[2]),
        there=there,
        staying=sum(r.gpus_now - r.moved for r in rows) - there,
        now_month_usd=now,
        after_month=after,
        change_month_usd=_change(now, after),
        rows=tuple(rows),
        assumptions=tuple(_assumed(assumptions(fleet, rules, where, anywhere=anywhere))),
        price_source=facts().source,
    )


def _row(holding: Holding, other: Gpu, limits: Limits, market: Market, months: Months) -> TargetRow:
    seen, n = measured(holding), max(len(holding.loads), len(holding.paid))
    needs = _needs(holding)
    if isinstance(holding.gpu, Unknown):
        return _not_moved(holding, seen, months, needs, "unknown", holding.gpu.why, "add the GPU to the catalog")
    if holding.gpu.key == other.key:
        return _not_moved(holding, seen, months, needs, "there already", f"it runs on {other.name} already", "")
    if not holding.loads:
        why = "paid for, but in no sample: its demand is unknown"
        return _not_moved(holding, seen, months, needs, "unknown", why, "record its GPUs")
    found = carry_on(holding, other, limits, market)
    if not isinstance(found, Carried):
        outcome: Outcome = "unknown" if found.reason in {"not measured", "price"} else "cannot move"
        return _not_moved(holding, seen, months, needs, outcome, found.why, found.remedy)
    devices = [load.device for load in found.moved]
    paid, hours = month_usd(holding, devices, months), _month_h(holding, devices, months)
    now = paid if isinstance(paid, Unknown) else _cents(paid)
    left = found.misfits[0] if found.misfits else None
    return TargetRow(
        namespace=holding.namespace,
        gpu_model=holding.gpu_model,
        outcome="moves",
        gpus_now=n,
        moved=len(devices),
        gpus_after=found.gpus,
        now_month_usd=now,
        after_month=(after := _after(paid, found.gains)),
        change_month_usd=_change(now, after),
        now_gpu_h_per_month=hours,
        after_gpu_h_per_month=hours if isinstance(hours, Unknown) else hours * found.gpus[1] / len(devices),
        needs_tflops=needs,
        price=found.price,
        fits=found.fits,
        risks=found.reasons,
        why_not=f"{len(found.misfits)} stay: {left.why}" if left else "",
        remedy=left.remedy if left else "",
        measured=seen,
    )


def _not_moved(
    holding: Holding,
    seen: Measured,
    months: Months,
    needs: dict[str, float] | Unknown,
    outcome: Outcome,
    why: str,
    remedy: str,
) -> TargetRow:
    paid = month_usd(holding, holding.paid, months)
    now = holding.usd_per_gpu_h if isinstance(holding.usd_per_gpu_h, Unknown) else paid
    gone = Unknown(why)
    return TargetRow(
        namespace=holding.namespace,
        gpu_model=holding.gpu_model,
        outcome=outcome,
        gpus_now=max(len(holding.loads), len(holding.paid)),
        moved=0,
        gpus_after=(0, 0, 0),
        now_month_usd=now if isinstance(now, Unknown) else _cents(Fraction(now)),
        after_month=gone,
        change_month_usd=gone,
        now_gpu_h_per_month=_month_h(holding, holding.paid_h, months),
        after_gpu_h_per_month=gone,
        needs_tflops=needs,
        price=None,
        fits="",
        risks=(),
        why_not=why,
        remedy=remedy,
        measured=seen,
    )


def _month_h(holding: Holding, devices: Iterable[str], months: Months) -> float | Unknown:
    """GPU-hours per month of some devices."""
    found = months.total((board_of(name), holding.paid_h[name]) for name in devices)
    return found if isinstance(found, Unknown) else float(found)


def _after(paid: Fraction | Unknown, gains: Sequence[float]) -> UsdRange | Unknown:
    """What the same work costs there per month. Cautious is the high end of the cost."""
    if isinstance(paid, Unknown):
        return paid
    high, middle, low = (_cents(paid * (1 - Fraction(gain))) for gain in gains)
    return UsdRange(low, middle, high)


def _needs(holding: Holding) -> dict[str, float] | Unknown:
    """TFLOPS by precision of the busiest load while it works; a reference precision is marked as assumed."""
    out: dict[str, float] = {}
    for load in holding.loads:
        if isinstance(load.needs, Unknown):
            return load.needs
        for need in load.needs:
            name = need.precision if need.known else f"{need.precision} (assumed)"
            out[name] = max(out.get(name, 0.0), need.tflops)
    return out or Unknown("no load was measured")


def _cents(amount: Fraction) -> Decimal:
    return usd(amount).quantize(CENT)


def _known(amount: Decimal | Unknown) -> Decimal:
    return ZERO if isinstance(amount, Unknown) else amount


def _sum(amounts: Iterator[Decimal | Unknown]) -> Decimal | Unknown:
    known = [a for a in amounts if not isinstance(a, Unknown)]
    return sum(known, ZERO) if known else Unknown("no GPU can move there with a known price")


def _sum_range(rows: Sequence[TargetRow]) -> UsdRange | Unknown:
    known = [r.after_month for r in rows if not isinstance(r.after_month, Unknown)]
    if not known:
        return Unknown("no GPU can move there with a known price")
    return UsdRange(*(sum((getattr(m, n) for m in known), ZERO) for n in ("low_usd", "middle_usd", "high_usd")))


def _change(now: Decimal | Unknown, after: UsdRange | Unknown) -> Decimal | Unknown:
    if isinstance(now, Unknown):
        return now
    return after if isinstance(after, Unknown) else after.middle_usd - now


def _assumed(plan: Iterator[str]) -> Iterator[str]:
    """The assumptions of the plan from the ledger that hold here too: nothing is capped, nothing must save."""
    yield "the cost is that of the GPUs the demand takes: it is not capped by the waste measured today"
    skipped = ("a saving comes out of", "a move must save")
    yield from (text for text in plan if not text.startswith(skipped))
