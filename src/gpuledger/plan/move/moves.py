"""Which moves could carry a namespace's demand on one GPU model, and what would each claim to save?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.advice.limits import Limits
from gpuledger.advice.offers import Filled, is_smaller
from gpuledger.advice.rule import Range
from gpuledger.catalog.gpus import Gpu, proposed_gpus
from gpuledger.catalog.gpus.mig import Slice, slices_of
from gpuledger.plan.market import Market, PriceBasis
from gpuledger.plan.move.boards import bought, kept, rounded_words, whole_boards
from gpuledger.plan.move.carry import Misfit, other_gpu, pipes_filled, same_gpu, slice_for, works_together
from gpuledger.plan.move.demand import Holding, Load
from gpuledger.plan.move.statement import Kind, RefusedMove
from gpuledger.plan.packing import Parcel, bins
from gpuledger.units import Unknown

Settings = tuple[float, float, float]
Place = Callable[[Load, int], Parcel | Misfit]
ROUNDING = 1e-9


@dataclass(frozen=True)
class Claim:
    """A move and the fractions of the bill of the moved devices it would save, before any cap."""

    kind: Kind
    gpu: Gpu
    moved: tuple[str, ...]
    gpus_after: tuple[int, int, int]
    gain: Range
    fits: str
    reasons: tuple[str, ...]
    strained: bool = False
    slice_name: str | None = None
    price: PriceBasis | None = None


def settings(limits: Limits) -> Settings:
    """How full a GPU may be planned: cautious, middle, bold."""
    return limits.fill.cautious_ratio, limits.fill.middle_ratio, limits.fill.bold_ratio


def find_moves(holding: Holding, limits: Limits, market: Market) -> tuple[list[Claim], list[RefusedMove]]:
    """Every move that can carry the demand for less, and every one that cannot."""
    gpu = holding.gpu
    if isinstance(gpu, Unknown) or not holding.loads:
        return [], []
    tried: list[tuple[Kind, Gpu, Claim | Misfit]] = [
        ("fewer", gpu, _fewer(holding, gpu, limits)),
        ("slices", gpu, _slices(holding, gpu, limits)),
        *(("other", o, _other(holding, o, limits, market)) for o in proposed_gpus() if o.key != gpu.key),
    ]
    refused = [RefusedMove(kind, to.name, m.reason, m.why, m.remedy) for kind, to, m in tried if isinstance(m, Misfit)]
    return [m for _, _, m in tried if isinstance(m, Claim)], refused


@dataclass(frozen=True)
class _Packed:
    """The loads that can be placed (at the middle setting), the GPUs they take at each, and how many stay at each."""

    moved: tuple[Load, ...]
    gpus: tuple[int, int, int]
    stay: tuple[int, int, int]
    misfits: tuple[Misfit, ...]

    @property
    def wrong(self) -> Misfit:
        """What stands in the way most often."""
        reason = Counter(m.reason for m in self.misfits).most_common(1)[0][0]
        return next(m for m in self.misfits if m.reason == reason)


def _pack(loads: Sequence[Load], place: Place, fulls: Settings) -> _Packed:
    judged = [(load, place(load, 1)) for load in loads]
    moved = tuple(load for load, found in judged if isinstance(found, Parcel))
    gpus, stay = [], []
    for i, full in enumerate(fulls):
        found = [p for _, p in judged] if i == 1 else [place(load, i) for load in moved]
        parcels = [p for p in found if isinstance(p, Parcel)]
        gpus.append(len(bins(parcels, full)))
        stay.append(len(moved) - len(parcels))
    misfits = tuple(found for _, found in judged if isinstance(found, Misfit))
    return _Packed(moved, (gpus[0], gpus[1], gpus[2]), (stay[0], stay[1], stay[2]), misfits)


def _fewer(holding: Holding, gpu: Gpu, limits: Limits) -> Claim | Misfit:
    fulls, n = settings(limits), len(holding.loads)
    if n < 2:
        return Misfit("one GPU", "there is only one GPU", "put it together with another namespace's load")
    packed = _pack(holding.loads, lambda load, _: same_gpu(load, limits), fulls)
    if packed.misfits:
        return packed.wrong
    if holding.serves:
        packed = _copies(holding.loads, packed, limits, fulls)
    if packed.gpus[1] >= n:
        return _no_room(holding, limits)
    after = tuple(kept(n, gpus, gpu) for gpus in packed.gpus)
    if after[1] >= n:
        why = f"{packed.gpus[1]} of {n} dies would do, but {whole_boards(gpu)}"
        return Misfit("boards", why, "free the rest of a board: shift work to quiet hours")
    packed = replace(packed, gpus=(after[0], after[1], after[2]))
    gains = [1 - (gpus + stay) / n for gpus, stay in zip(packed.gpus, packed.stay, strict=True)]
    reasons = ["loads that share a card can be in each other's way in their busy hours"]
    if holding.serves:
        reasons.append("the servers are taken for copies of one; if they are not, their memory adds up")
    busy = sum(load.busy_hours_ratio for load in holding.loads)
    fits = f"{n} GPUs are busy as {busy:.1f} in their busy hours; {packed.gpus[1]} would do{rounded_words([gpu])}"
    devices = tuple(load.device for load in holding.loads)
    return Claim("fewer", gpu, devices, packed.gpus, Range.of(*gains), fits, tuple(reasons))


def _whole(packed: _Packed, gpu: Gpu | Unknown, other: Gpu, place: Place, fulls: Settings) -> _Packed:
    """Loads move by whole boards of the present GPU, to whole boards of the other."""
    if isinstance(gpu, Gpu) and (left := len(packed.moved) % gpu.dies):
        stays = Misfit("boards", whole_boards(gpu), "move all dies of its boards together")
        again = _pack(packed.moved[:-left], place, fulls)
        packed = replace(again, misfits=(*packed.misfits, *[stays] * left))
    low, middle, high = (bought(n, other) for n in packed.gpus)
    return replace(packed, gpus=(low, middle, high))


def _copies(loads: Sequence[Load], packed: _Packed, limits: Limits, fulls: Settings) -> _Packed:
    """Copies of a server share weights and requests: only their busy time adds up. Cautiously they are not copies."""
    together = [load for load in loads if not works_together(load, limits) and not load.sliced]
    busy, alone = sum(load.busy_hours_ratio for load in together), len(loads) - len(together)
    middle, bold = (min(len(together), max(1, math.ceil(busy / full))) + alone for full in fulls[1:])
    return _Packed(
        tuple(loads), (packed.gpus[0], middle if together else alone, bold if together else alone), (0, 0, 0), ()
    )


def _no_room(holding: Holding, limits: Limits) -> Misfit:
    """Why loads cannot be put together."""
    linked = sum(works_together(load, limits) for load in holding.loads)
    if linked * 2 > len(holding.loads):
        why = f"{linked} of {len(holding.loads)} GPUs exchange data over their links"
        return Misfit("link", why, "move whole jobs only")
    known = [load.memory_max_bytes for load in holding.loads if not isinstance(load.memory_max_bytes, Unknown)]
    card = holding.gpu.figure("memory_bytes") if isinstance(holding.gpu, Gpu) else holding.gpu
    if not holding.serves and known and not isinstance(card, Unknown):
        least = min(known) / card
        if 2 * least > 1 - limits.smaller.memory_margin_ratio:
            why = f"even the smallest load used {100 * least:.0f} % of the memory: no two fit on a card"
            return Misfit("memory", why, "lower the memory of each: smaller cache or batch; or share only off-peak")
    return Misfit("busy", "in their busy hours the GPUs are needed", "shift work to quiet hours")


def _slices(holding: Holding, gpu: Gpu, limits: Limits) -> Claim | Misfit:
    fulls, n = settings(limits), len(holding.loads)
    if isinstance(found := slices_of(gpu.key), Unknown):
        nvidia = gpu.vendor == "NVIDIA"
        return Misfit("no MIG", found.why, "choose A100, A30, H100 or newer; or share by MPS" if nvidia else "")

    def place(load: Load, i: int) -> Parcel | Misfit:
        part = slice_for(load, limits, fulls[i])
        return part if isinstance(part, Misfit) else Parcel(part.memory_ratio, part.compute_ratio)

    # A board's slices are its own: it may be filled.
    packed = _pack(holding.loads, place, (1.0, 1.0, 1.0))
    if not packed.moved:
        return packed.wrong
    moved = len(packed.moved)
    gains = [1 - (gpus + stay) / moved for gpus, stay in zip(packed.gpus, packed.stay, strict=True)]
    if gains[1] <= ROUNDING:
        return Misfit("too large", "the slices they need fill as many boards", "make the loads smaller first")
    parts = [p for load in packed.moved if isinstance(p := slice_for(load, limits, fulls[1]), Slice)]
    names = Counter(p.name or f"{p.compute}g" for p in parts)
    name = ", ".join(f"{c} x {s}" for s, c in names.most_common())
    fits = f"{moved} of {n} loads fit into slices ({name}) of {packed.gpus[1]} boards"
    reasons = ("a slice is a hard limit: a load that grows fails instead of slowing down",)
    devices = tuple(load.device for load in packed.moved)
    return Claim("slices", gpu, devices, packed.gpus, Range.of(*gains), fits, reasons, slice_name=name)


@dataclass(frozen=True)
class Carried:
    """The loads that another GPU can carry, how many of it they take, and what that saves of their bill.

    `gains` (cautious, middle, bold) are below zero where it costs more.
    """

    moved: tuple[Load, ...]
    gpus: tuple[int, int, int]
    price: PriceBasis
    now_usd_per_gpu_h: Decimal
    gains: tuple[float, float, float]
    misfits: tuple[Misfit, ...]
    fits: str
    reasons: tuple[str, ...]
    strained: bool


def carry_on(holding: Holding, other: Gpu, limits: Limits, market: Market) -> Carried | Misfit:
    """The holding's loads on another GPU, whatever that costs; refused where it cannot be known or done."""
    fulls = settings(limits)
    linked = sum(works_together(load, limits) for load in holding.loads)

    def place(load: Load, i: int) -> Parcel | Misfit:
        return other_gpu(load, other, limits, fulls[i], cautious=i == 0, linked=linked)

    packed = _whole(_pack(holding.loads, place, fulls), holding.gpu, other, place, fulls)
    if not packed.moved:
        return packed.wrong
    price = market.price(other, all_offers=holding.by_market)
    if isinstance(price, Unknown):
        return Misfit("price", price.why, "give a rate of your own: gpuledger prices update FILE")
    now = holding.usd_per_gpu_h
    if isinstance(now, Unknown):
        return Misfit("price", f"what the present GPUs cost is unknown: {now.why}", "give a price or an inventory")
    if not now:
        return Misfit("price", "the present GPUs cost nothing", "give the price that is paid for them")
    n = len(packed.moved)
    usd = (price.high_usd, price.usd_per_gpu_h, price.low_usd)
    low, middle, high = (
        1 - (gpus * float(each) / float(now) + stay) / n
        for gpus, stay, each in zip(packed.gpus, packed.stay, usd, strict=True)
    )
    fits, reasons, strained = _fits(holding, other, limits, packed.moved, price)
    return Carried(
        packed.moved, packed.gpus, price, now, (low, middle, high), packed.misfits, fits, reasons, strained
    )  # fmt: skip


def _other(holding: Holding, other: Gpu, limits: Limits, market: Market) -> Claim | Misfit:
    found = carry_on(holding, other, limits, market)
    if isinstance(found, Misfit):
        return found
    middle = found.gains[1]
    if middle < limits.smaller.cheaper_from_ratio:
        least = f"{100 * limits.smaller.cheaper_from_ratio:.0f} %"
        cost = f"{found.gpus[1]} of them at ${found.price.usd_per_gpu_h:.2f} cost {100 * abs(middle):.0f} %"
        side, now = "less" if middle > 0 else "more", f"{len(found.moved)} at ${found.now_usd_per_gpu_h:.2f} now"
        remedy = "negotiate the price, or look for a cheaper region: gpuledger prices"
        return Misfit("price", f"{cost} {side} than {now}; a move must save {least}", remedy)
    devices = tuple(load.device for load in found.moved)
    return Claim(
        "other", other, devices, found.gpus, Range.of(*found.gains), found.fits, found.reasons, found.strained,
        price=found.price,
    )  # fmt: skip


def _fits(
    holding: Holding, other: Gpu, limits: Limits, moved: Sequence[Load], price: PriceBasis
) -> tuple[str, tuple[str, ...], bool]:
    """How full the other GPU would be, what is risky about it, and whether it would be strained."""
    most = max(load.memory_max_bytes for load in moved if isinstance(load.memory_max_bytes, float))
    traffic = max(load.working_dram_bytes_per_s for load in moved if isinstance(load.working_dram_bytes_per_s, float))
    pipes = _fullest(moved, other)
    wide, full, strained = other.stated("memory_bandwidth_bytes_per_s"), settings(limits)[1], False
    reasons = []
    if max(traffic / wide, *(p.ratio for p in pipes), 0.0) > full:
        strained = True
        reasons.append("while it works it will be slower than now; its busy hours still have the time for it")
    if unrecorded := sorted({pipe for load in moved for pipe in load.unrecorded}):
        reasons.append(f"the {' and '.join(unrecorded)} pipe is not recorded: work it does is not in the demand")
    if holding.serves:
        reasons.append("a server: compare its latency on one GPU before the rest is moved")
    if isinstance(holding.gpu, Gpu) and not is_smaller(holding.gpu, other, limits):
        reasons.append("it is not a smaller GPU than the present one: what it saves is a difference in price")
    if price.stale:
        reasons.append(f"the price is {price.age_days} days old")
    card = other.stated("memory_bytes")
    compute = ", ".join(p.words for p in pipes) or "hardly any compute"
    fits = (
        f"at most {most / 1e9:.0f} of {card / 1e9:.0f} GB; at work up to {compute} "
        f"and {traffic / 1e9:,.0f} of {wide / 1e9:,.0f} GB/s{rounded_words([holding.gpu, other])}"
    )
    return fits, tuple(reasons), strained


def _fullest(moved: Sequence[Load], other: Gpu) -> list[Filled]:
    """Each pipe of the other GPU as full as the load that needs it most would make it."""
    best: dict[str, Filled] = {}
    for one in (p for load in moved for p in pipes_filled(load, other)):
        if one.pipe not in best or one.ratio > best[one.pipe].ratio:
            best[one.pipe] = one
    return sorted(best.values(), key=lambda p: -p.ratio)
