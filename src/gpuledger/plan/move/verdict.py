"""Which move is proposed for one namespace's GPUs of one model, or should they stay?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache

import msgspec

from gpuledger.advice.limits import Limits
from gpuledger.advice.offers import spot_discount
from gpuledger.advice.rules.spot import when as can_be_spot
from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import Gpu
from gpuledger.cost.money import CENT, ZERO, usd
from gpuledger.cost.savings import Bill, Lever, Savings, Spread, combine
from gpuledger.cost.statement import BUCKETS, WASTE, Bucket
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.plan.move.carry import works_together
from gpuledger.plan.move.demand import Holding, measured
from gpuledger.plan.move.market import Market
from gpuledger.plan.move.moves import Claim, find_moves
from gpuledger.plan.move.statement import WELL_OPTIMIZED, HoldingPlan, Kind, Level, MonthRange, Move, Outcome
from gpuledger.plan.offers import MarketOption
from gpuledger.units import Unknown

NO_SAVING = Spread(ZERO, ZERO, ZERO)


class _MoveFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    effort_hours: float
    risk: Level


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    source: str
    worth_from_ratio: float
    runners_up: int
    moves: dict[Kind, _MoveFacts]


@cache
def settings_file() -> _File:
    """What a move takes, and from when it is worth proposing."""
    return load_toml(data_dir("gpuledger.plan", "data", "from_ledger.toml"), _File)


def plan_holding(holding: Holding, limits: Limits, market: Market, month: Fraction) -> HoldingPlan:
    """The best move that is worth it, what comes after it, and what was refused."""
    claims, refused = find_moves(holding, limits, market) if holding.namespace != UNALLOCATED else ([], [])
    moves = [_move(claim, holding, limits, market, month) for claim in claims]
    moves.sort(key=lambda m: (-m.saving.middle_pct, m.effort_hours, m.kind, m.gpu))
    worth = Decimal(str(100 * settings_file().worth_from_ratio))
    best = next((m for m in moves if m.saving.middle_pct >= worth), None)
    priced = not isinstance(holding.usd_per_gpu_h, Unknown)
    paid = _sum(holding.paid.values(), BUCKETS)
    waste = _sum(holding.paid.values(), WASTE)
    now: Decimal | Unknown = (
        holding.usd_per_gpu_h if isinstance(holding.usd_per_gpu_h, Unknown) else _cents(paid, month)
    )
    lost = waste / paid if paid else ZERO
    unrated = _sum(holding.paid.values(), ("unrated",)) / paid if paid else ZERO
    outcome = _outcome(holding, best, lost, unrated, limits)
    host = _cheaper_host(holding, limits, market)
    saved = best.saving_month if best is not None else MonthRange(ZERO, ZERO, ZERO)
    return HoldingPlan(
        namespace=holding.namespace,
        gpu_model=holding.gpu_model,
        measured=measured(holding),
        paid_usd=paid if priced else _no_price(holding),
        paid_h=sum(holding.paid_h.values()),
        waste_usd=waste if priced else _no_price(holding),
        month_now_usd=now,
        month_after_usd=now if isinstance(now, Unknown) or isinstance(saved, Unknown) else now - saved.middle_usd,
        outcome=outcome,
        verdict=_verdict(holding, outcome, best, moves, lost, unrated),
        move=best,
        runners_up=tuple(m for m in moves if m is not best)[: settings_file().runners_up],
        refused=tuple(refused),
        spot_pct=_stay_on_spot(holding, limits),
        unpriced_gpus=holding.unpriced,
        cheaper_host=host[0] if host else None,
        cheaper_host_pct=host[1] if host else None,
    )


def _cheaper_host(holding: Holding, limits: Limits, market: Market) -> tuple[MarketOption, Decimal] | None:
    """The same GPU in an instance type that sells it for less, and how many percent less.

    Not where the present price is itself a median of the market: half of all offers are below that. GPUs that work
    together need an instance that holds them all, and one with more GPUs than there are would be paid for in part
    only.
    """
    gpu, now = holding.gpu, holding.usd_per_gpu_h
    if isinstance(gpu, Unknown) or isinstance(now, Unknown) or not now or holding.by_market:
        return None
    together = sum(works_together(load, limits) for load in holding.loads)
    found = market.cheapest_host(gpu, max(1, together), len(holding.loads))
    if found is None or isinstance(found.usd_per_gpu_h, Unknown):
        return None
    less = 100 * (now - found.usd_per_gpu_h) / now
    return (found, less) if less >= 100 * Decimal(str(limits.smaller.cheaper_from_ratio)) else None


def _no_price(holding: Holding) -> Unknown:
    found = holding.usd_per_gpu_h
    return found if isinstance(found, Unknown) else Unknown("no price")


def _sum(devices: Iterable[Mapping[Bucket, Decimal]], buckets: Sequence[Bucket]) -> Decimal:
    return sum((device[b] for device in devices for b in buckets), ZERO)


def _cents(amount: Decimal | Fraction, month: Fraction) -> Decimal:
    return usd(Fraction(amount) * month).quantize(CENT)


def _move(claim: Claim, holding: Holding, limits: Limits, market: Market, month: Fraction) -> Move:
    moved = _buckets(holding, set(claim.moved), inside=True)
    bill = Bill({"moved": moved, "stays": _buckets(holding, set(claim.moved), inside=False)})
    spot, words = _spot(holding, claim.gpu, limits)
    saved, paid = _combined(bill, claim, sum(moved.values(), ZERO), spot)
    facts, priced = settings_file().moves[claim.kind], not isinstance(holding.usd_per_gpu_h, Unknown)
    spread = saved.combined if saved else NO_SAVING
    level: Level = "high" if claim.strained else facts.risk
    return Move(
        kind=claim.kind,
        title=facts.title,
        gpu=claim.gpu.key,
        gpu_name=claim.gpu.name,
        slice_name=claim.slice_name,
        gpus_now=len(holding.loads),
        moved=len(claim.moved),
        gpus_after=claim.gpus_after,
        claimed_pct=_of_bill(claim.gain.middle, moved, paid),
        cap_pct=saved.cap_pct if saved else ZERO,
        capped=any(lever.capped for lever in saved.levers if lever.name == claim.kind) if saved else False,
        saving=spread,
        saving_usd=(saved.combined_usd if saved else ZERO) if priced else _no_price(holding),
        saving_month=_months(spread, paid, month) if priced else _no_price(holding),
        with_spot_pct=saved.with_rate_pct if saved and spot else Unknown(words),
        spot_words=words,
        fits=claim.fits,
        risk=level,
        risk_reasons=claim.reasons,
        effort_hours=facts.effort_hours,
        price=claim.price,
        example=market.example(claim.gpu, claim.price.usd_per_gpu_h) if claim.price else None,
    )


def _of_bill(part: Decimal, moved: Mapping[Bucket, Decimal], paid: Decimal) -> Decimal:
    return usd(Fraction(part) * 100 * Fraction(sum(moved.values(), ZERO)) / Fraction(paid)) if paid else ZERO


def _months(spread: Spread, paid: Decimal, month: Fraction) -> MonthRange:
    parts = (spread.low_pct, spread.middle_pct, spread.high_pct)
    return MonthRange(*(_cents(Fraction(p) * Fraction(paid) / 100, month) for p in parts))


def _buckets(holding: Holding, devices: set[str], *, inside: bool) -> dict[Bucket, Decimal]:
    chosen = [parts for name, parts in holding.paid.items() if (name in devices) is inside]
    return {b: sum((parts[b] for parts in chosen), ZERO) for b in BUCKETS}


def _combined(bill: Bill, claim: Claim, moved: Decimal, spot: Lever | None) -> tuple[Savings | None, Decimal]:
    """The claim cut to the waste of the moved devices, with a lower price on top where there is one."""
    headroom = claim.gain.high * moved if claim.kind == "other" else None
    lever = Lever(
        claim.kind, "sku" if claim.kind == "other" else "hours", claim.gain.low, claim.gain.middle, claim.gain.high,
        ("moved",), headroom_usd=headroom,
    )  # fmt: skip
    found = combine(bill, [lever, spot] if spot else [lever])
    paid = sum((v for parts in bill.scopes.values() for v in parts.values()), ZERO)
    return (None if isinstance(found, Unknown) else found), paid


def _stay_on_spot(holding: Holding, limits: Limits) -> Spread | Unknown:
    """How much cheaper spot of the present GPU is; shown next to the plan, never in its dollars."""
    if isinstance(holding.gpu, Unknown):
        return holding.gpu
    lever, words = _spot(holding, holding.gpu, limits)
    return Spread(lever.low * 100, lever.middle * 100, lever.high * 100) if lever else Unknown(words)


def _spot(holding: Holding, gpu: Gpu, limits: Limits) -> tuple[Lever | None, str]:
    """Spot for one GPU, where all of the work can stop and resume; never for production serving."""
    working = [c for c in holding.cases if c.works]
    if not working or not all(can_be_spot(case, limits) for case in working):
        return None, "not all of its work is known to stop and resume, or it is on spot already"
    cut = spot_discount(gpu.key)
    if isinstance(cut, Unknown):
        return None, cut.why
    parts = sorted(Decimal(f"{x:.6f}") for x in (cut.low, cut.middle, cut.high))
    return Lever("spot", "rate", parts[0], parts[1], parts[2], ("moved",)), cut.words


def _outcome(holding: Holding, best: Move | None, waste: Decimal, unrated: Decimal, limits: Limits) -> Outcome:
    if holding.namespace == UNALLOCATED:
        return "unallocated"
    if isinstance(holding.gpu, Unknown):
        return "unknown GPU"
    if not holding.loads:
        return "not sampled"
    if best is not None:
        return "move"
    much = Decimal(str(limits.idle.idle_heavy_from_ratio))
    if waste >= much:
        return "stay"
    return "not rated" if waste + unrated >= much else "well optimized"


def _verdict(
    holding: Holding, outcome: Outcome, best: Move | None, moves: Sequence[Move], waste: Decimal, unrated: Decimal
) -> str:
    if outcome == "unallocated":
        return "time without an owner: release it or give it one; gpuledger audit shows which GPUs"
    if isinstance(holding.gpu, Unknown):
        return f"not known: {holding.gpu.why}"
    if outcome == "not sampled":
        return "paid for, but in no sample: its demand is unknown"
    if best is not None:
        return _words(best)
    first = "no move carries the demand for less"
    if moves:
        first = f"the best move ({_words(moves[0])}) would save {moves[0].saving.middle_pct:.1f} % only"
    staying = {
        "stay": f"stay: {first}; {100 * waste:.0f} % of it is waste that other changes reach: gpuledger audit",
        "not rated": f"stay for now: {first}; {100 * unrated:.0f} % of it cannot be rated: see gpuledger audit",
    }
    return staying.get(outcome, f"{WELL_OPTIMIZED}: {first}")


def _words(move: Move) -> str:
    of = f"{move.moved} of {move.gpus_now} GPUs" if move.moved < move.gpus_now else f"{move.gpus_now} GPUs"
    if move.kind == "other":
        return f"move {of} to {move.gpus_after[1]} x {move.gpu_name}"
    if move.kind == "slices":
        return f"put {of} into slices of {move.gpus_after[1]} boards ({move.slice_name})"
    return f"put {of} together on {move.gpus_after[1]}"
