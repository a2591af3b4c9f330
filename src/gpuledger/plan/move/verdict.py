"""Which move is proposed for one namespace's GPUs of one model, or should they stay?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TypeVar

import msgspec

from gpuledger.advice.limits import Limits
from gpuledger.advice.offers import spot_discount
from gpuledger.advice.rules.spot import when as can_be_spot
from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import Gpu
from gpuledger.cost.judged import known_waste
from gpuledger.cost.money import CENT, ZERO, usd
from gpuledger.cost.projections import Months
from gpuledger.cost.savings import Bill, Lever, Savings, Spread, combine
from gpuledger.cost.statement import BUCKETS, WASTE, Bucket, Dollars
from gpuledger.lake.batch import board_of
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.plan.market import Market, MarketOption
from gpuledger.plan.move.carry import works_together
from gpuledger.plan.move.demand import Holding, measured
from gpuledger.plan.move.moves import Claim, find_moves
from gpuledger.plan.move.statement import STAYS, WELL_OPTIMIZED, HoldingPlan, Kind, Level, Move, Outcome
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import Unknown

T = TypeVar("T")
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
    beside_audit: str
    assumptions: tuple[str, ...]
    moves: dict[Kind, _MoveFacts]


@cache
def settings_file() -> _File:
    """What a move takes, and from when it is worth proposing."""
    return load_toml(data_dir("gpuledger.plan", "data", "from_ledger.toml"), _File)


def plan_holding(holding: Holding, limits: Limits, market: Market, months: Months) -> HoldingPlan:
    """The best move that is worth it, what comes after it, and what was refused."""
    month = month_usd(holding, holding.paid, months)
    claims, refused = find_moves(holding, limits, market) if holding.namespace != UNALLOCATED else ([], [])
    moves = [_move(claim, holding, limits, market, month) for claim in claims]
    moves.sort(key=lambda m: (-m.saving.middle_pct, m.effort_hours, m.kind, m.gpu))
    worth = Decimal(str(100 * settings_file().worth_from_ratio))
    best = next((m for m in moves if m.saving.middle_pct >= worth), None)
    parts = _buckets(holding, holding.paid)
    paid, waste = sum(parts.values(), ZERO), sum((parts[b] for b in WASTE), ZERO)
    now = _priced(holding, _cents(month))
    lost, unrated = (waste / paid, parts["unrated"] / paid) if paid else (ZERO, ZERO)
    outcome = _outcome(holding, best, lost, unrated, limits)
    host = _cheaper_host(holding, limits, market)
    saved = best.saving_month if best is not None else STAYS
    return HoldingPlan(
        namespace=holding.namespace,
        gpu_model=holding.gpu_model,
        measured=measured(holding),
        paid_usd=_priced(holding, paid),
        paid_h=sum(holding.paid_h.values()),
        waste_usd=_priced(holding, known_waste(Dollars.of(parts))),
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

    Not where the present price is a median of the market: half of all offers are below it. GPUs that work together
    need an instance that holds them all; one with more GPUs than there are would be used in part only.
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


def _priced(holding: Holding, amount: T) -> T | Unknown:
    """The amount, or why the holding has no price."""
    return holding.usd_per_gpu_h if isinstance(holding.usd_per_gpu_h, Unknown) else amount


def month_usd(holding: Holding, devices: Iterable[str], months: Months) -> Fraction | Unknown:
    """What some devices of a holding cost per month, each by the time that it was paid for."""
    return months.total((board_of(name), sum(holding.paid[name].values(), ZERO)) for name in devices)


def _cents(amount: Fraction | Unknown) -> Decimal | Unknown:
    return amount if isinstance(amount, Unknown) else usd(amount).quantize(CENT)


def _saved(ends: Sequence[Decimal], month: Fraction | Unknown) -> UsdRange | Unknown:
    """Percents of what a holding costs per month."""
    if isinstance(month, Unknown):
        return month
    return UsdRange(*(usd(Fraction(pct) * month / 100).quantize(CENT) for pct in ends))


def _move(claim: Claim, holding: Holding, limits: Limits, market: Market, month: Fraction | Unknown) -> Move:
    moved = _buckets(holding, claim.moved)
    bill = Bill({"moved": moved, "stays": _buckets(holding, holding.paid.keys() - set(claim.moved))})
    moved_usd, paid = sum(moved.values(), ZERO), sum(_buckets(holding, holding.paid).values(), ZERO)
    spot, words = _spot(holding, claim.gpu, limits)
    saved, facts = _combined(bill, claim, moved_usd, spot), settings_file().moves[claim.kind]
    spread = saved.combined if saved else NO_SAVING
    ends = (spread.low_pct, spread.middle_pct, spread.high_pct)
    return Move(
        kind=claim.kind,
        title=facts.title,
        gpu=claim.gpu.key,
        gpu_name=claim.gpu.name,
        slice_name=claim.slice_name,
        gpus_now=len(holding.loads),
        moved=len(claim.moved),
        gpus_after=claim.gpus_after,
        claimed_pct=usd(Fraction(claim.gain.middle) * 100 * Fraction(moved_usd) / Fraction(paid)) if paid else ZERO,
        cap_pct=saved.cap_pct if saved else ZERO,
        capped=any(lever.capped for lever in saved.levers if lever.name == claim.kind) if saved else False,
        saving=spread,
        saving_usd=_priced(holding, saved.combined_usd if saved else ZERO),
        saving_month=_priced(holding, _saved(ends, month)),
        with_spot_pct=saved.with_rate_pct if saved and spot else Unknown(words),
        spot_words=words,
        fits=claim.fits,
        risk="high" if claim.strained else facts.risk,
        risk_reasons=claim.reasons,
        effort_hours=facts.effort_hours,
        price=claim.price,
        example=market.example(claim.gpu, claim.price.usd_per_gpu_h) if claim.price else None,
    )


def _buckets(holding: Holding, devices: Collection[str]) -> dict[Bucket, Decimal]:
    wanted = set(devices)
    chosen = [parts for name, parts in holding.paid.items() if name in wanted]
    return {b: sum((parts[b] for parts in chosen), ZERO) for b in BUCKETS}


def _combined(bill: Bill, claim: Claim, moved: Decimal, spot: Lever | None) -> Savings | None:
    """The claim cut to the waste of the moved devices, with a lower price on top where there is one."""
    other = claim.kind == "other"
    lever = Lever(
        claim.kind, "sku" if other else "hours", claim.gain.low, claim.gain.middle, claim.gain.high, ("moved",),
        headroom_usd=claim.gain.high * moved if other else None,
    )  # fmt: skip
    found = combine(bill, [lever, spot] if spot else [lever])
    return None if isinstance(found, Unknown) else found


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
    first = "no move carries the demand for less"
    if moves:
        first = f"the best move ({_words(moves[0])}) would save {moves[0].saving.middle_pct:.1f} % only"
    said: dict[Outcome, str] = {
        "unallocated": "time without an owner: release it or give it one; gpuledger audit shows which GPUs",
        "unknown GPU": f"unknown: {holding.gpu.why}" if isinstance(holding.gpu, Unknown) else "",
        "not sampled": "paid for, but in no sample: its demand is unknown",
        "move": _words(best) if best is not None else "",
        "stay": f"stay: {first}; {100 * waste:.0f} % of it is waste that other changes reach: gpuledger audit",
        "not rated": f"stay for now: {first}; {100 * unrated:.0f} % of it cannot be rated: see gpuledger audit",
        "well optimized": f"{WELL_OPTIMIZED}: {first}",
    }
    return said[outcome]


def _words(move: Move) -> str:
    of = f"{move.moved} of {move.gpus_now} GPUs" if move.moved < move.gpus_now else f"{move.gpus_now} GPUs"
    if move.kind == "other":
        return f"move {of} to {move.gpus_after[1]} x {move.gpu_name}"
    if move.kind == "slices":
        return f"put {of} into slices of {move.gpus_after[1]} boards ({move.slice_name})"
    return f"put {of} together on {move.gpus_after[1]}"
