"""What is paid per GPU-hour by the bills, and how does that compare with the list price?

Paid dollars and hours are those of the inventory within the window, GPU by GPU; the list price is the on-demand price
of the same instance in the same region where it is listed, else of the instance anywhere, else the market median of
the GPU. A month is 30 days at the GPU-hours per hour of the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.prices import MarketPrice, instance_price, market_price
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.cost.inventories.findings import InventoryUse, Source
from gpuledger.cost.inventories.kinds import Stock
from gpuledger.cost.inventories.matching import Presence, read_presences
from gpuledger.cost.inventories.settling import settle
from gpuledger.cost.inventories.unused import next_file, not_used
from gpuledger.cost.inventory import Paid
from gpuledger.cost.money import ZERO, usd
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.times import too_short_for_a_month
from gpuledger.units import MS_PER_HOUR, Unknown

MONTH_H = 720


class ListedBy(StrEnum):
    """What a list price is for."""

    INSTANCE_IN_REGION = "instance_in_region"
    INSTANCE = "instance"
    MARKET = "market"


@dataclass(frozen=True)
class PaidPrice:
    """One GPU model bought in one way. Below zero, `difference_pct` is a discount on the list price."""

    gpu_model: str | None
    cloud: str
    instance: str
    region: str
    purchase_option: str
    gpus: int
    gpu_h: float
    start_ms: int
    end_ms: int
    paid_usd: Decimal
    paid_usd_per_h: Decimal
    list_usd_per_h: Decimal | Unknown
    listed_by: ListedBy | None
    listed: str | None
    difference_pct: float | Unknown
    saved_usd_per_month: Decimal | Unknown


@dataclass(frozen=True)
class PaidPrices:
    """All prices of an inventory, the most dollars first, and what became of its rows."""

    start_ms: int
    end_ms: int
    prices: tuple[PaidPrice, ...]
    gpus: int
    gpus_without_price: int
    paid_usd: Decimal
    saved_usd_per_month: Decimal | Unknown
    inventory: InventoryUse


def paid_prices(lake: Lake, inventory: Stock, since_ms: int | None = None, until_ms: int | None = None) -> PaidPrices:
    """What the inventory says was paid for the GPUs of a lake; the ledger must be posted."""
    presences = read_presences(lake)
    settled = settle(inventory, presences)
    used = settled.use or InventoryUse(())
    first, last = min(p.first_ms for p in presences), max(p.last_ms for p in presences)
    start, end = first if since_ms is None else since_ms, last if until_ms is None else until_ms
    if start >= end:
        raise InputError("the window has no length", hint="give a later end, or leave the window out")
    models = {p.gpu_uuid: p.gpu_model for p in sorted(presences, key=lambda p: p.last_ms)}
    rows = tuple(_prices(settled.rows, models, start, end))
    priced = {r.device for r in settled.rows if r.usd_per_h is not None and r.within(start, end)}
    if not rows:
        why = "; ".join(f"{file.path}: {words}" for file in used.unused if (words := not_used(file, used)))
        problem = f"no row of the inventory prices a GPU of this lake in this window{f': {why}' if why else ''}"
        raise InputError(problem, hint=_next(used))
    known = [r.saved_usd_per_month for r in rows if not isinstance(r.saved_usd_per_month, Unknown)]
    whys = [r.saved_usd_per_month for r in rows if isinstance(r.saved_usd_per_month, Unknown)]
    saved = sum(known, ZERO) if known else whys[0]
    paid = sum((r.paid_usd for r in rows), ZERO)
    return PaidPrices(start, end, rows, len(models), len(_unpriced(presences, priced)), paid, saved, used)


def _unpriced(presences: Iterable[Presence], priced: set[str]) -> set[str]:
    return {p.gpu_uuid for p in presences} - {name.partition("/")[0] for name in priced}


def _next(use: InventoryUse) -> str:
    if use.missed:
        names = ", ".join(row.name for row in use.missed[:3])
        return f"{names} fit no host of the lake: add the node list that links them, kubectl get nodes -o json"
    steps = (next_file(file, use) for file in use.unused)
    return (
        next((step for step in steps if step), "")
        or "give a bill, or a table with usd_per_h; a list of nodes has no prices"
    )


def _prices(rows: Iterable[Paid], models: dict[str, str | None], start: int, end: int) -> Iterator[PaidPrice]:
    """By model, instance, region and purchase option."""
    groups: dict[tuple[str | None, str, str, str], list[tuple[Paid, tuple[int, int]]]] = {}
    for row in rows:
        stretch = row.within(start, end)
        if stretch and row.usd_per_h is not None and row.source is not Source.LIST and row.device in models:
            key = (models[row.device], row.instance, row.region, row.purchase_option)
            groups.setdefault(key, []).append((row, stretch))
    made = [_price(key, found, end - start) for key, found in groups.items()]
    yield from sorted(made, key=lambda p: (-p.paid_usd, str(p.gpu_model), p.instance, p.region, p.purchase_option))


def _price(
    key: tuple[str | None, str, str, str], found: list[tuple[Paid, tuple[int, int]]], window_ms: int
) -> PaidPrice:
    model, instance, region, option = key
    ms = sum(b - a for _, (a, b) in found)
    paid = sum((Fraction(row.usd_per_h or 0) * (b - a) for row, (a, b) in found), Fraction(0)) / MS_PER_HOUR
    rate = paid * MS_PER_HOUR / ms
    listed, by = _listed(model, instance, region)
    price: Decimal | Unknown = listed if isinstance(listed, Unknown) else listed.usd_per_gpu_h
    difference: float | Unknown = Unknown("no list price")
    saved: Decimal | Unknown = Unknown("no list price")
    if isinstance(price, Decimal):
        difference = float(100 * (rate / Fraction(price) - 1))
        short = too_short_for_a_month(window_ms)
        saved = usd((Fraction(price) - rate) * MONTH_H * ms / window_ms) if short is None else short
    return PaidPrice(
        model, _cloud(instance), instance, region, option, len({row.device for row, _ in found}), ms / MS_PER_HOUR,
        min(a for _, (a, _b) in found), max(b for _, (_a, b) in found), usd(paid), usd(rate), price, by,
        None if isinstance(listed, Unknown) else listed.newest, difference, saved,
    )  # fmt: skip


def _listed(model: str | None, instance: str, region: str) -> tuple[MarketPrice | Unknown, ListedBy | None]:
    """The on-demand list price nearest to what was bought."""
    for where, by in ((region, ListedBy.INSTANCE_IN_REGION), ("", ListedBy.INSTANCE)):
        if instance and (where or by is ListedBy.INSTANCE):
            try:
                found = instance_price(instance, where or None)
            except InputError:
                continue
            if not isinstance(found, Unknown):
                return found, by
    gpu = find_gpu(model) if model else Unknown("no model name")
    if isinstance(gpu, Unknown):
        return Unknown(f"no list price: {gpu.why}"), None
    market = market_price(gpu.key)
    return market, None if isinstance(market, Unknown) else ListedBy.MARKET


def _cloud(instance: str) -> str:
    """The cloud an instance is of, where one cloud only has it."""
    folded = instance.casefold()
    clouds = {o.cloud for o in load_offers() if o.instance.casefold() == folded} if instance else set()
    return clouds.pop() if len(clouds) == 1 else ""
