"""What does a GPU-hour of a replica cost, on demand and on spot, as of which day?"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.prices import market_price
from gpuledger.catalog.prices.offers import PRICE_RANGE, plausible_usd_per_h
from gpuledger.errors import InputError
from gpuledger.plan.market import Market
from gpuledger.plan.outcome import UsdRange
from gpuledger.times import today
from gpuledger.units import Unknown

NO_GPU = Unknown("neither a GPU nor a price is given")


@dataclass(frozen=True)
class GpuPrice:
    """Dollars per GPU-hour with their range, what they rest on, and the day the newest of them is of."""

    usd_per_gpu_h: UsdRange
    words: str
    dated: str


@dataclass(frozen=True)
class ReplicaPrices:
    """On demand and spot; the latter only matters where some replicas are on spot."""

    gpu: Gpu | None
    on_demand: GpuPrice | Unknown
    spot: GpuPrice | Unknown


def prices_of(gpu: str | None, price: float | None, spot_price: float | None) -> ReplicaPrices:
    """The user's own prices, else the market's median with its range."""
    card = get_gpu(gpu) if gpu else None
    return ReplicaPrices(card, _on_demand(card, price), _spot(card, spot_price))


def _own(name: str, price: float) -> GpuPrice:
    usd = Decimal(str(price))
    if not plausible_usd_per_h(usd):
        raise InputError(f"{name}={price:g} is not a price", hint=f"give dollars per GPU-hour {PRICE_RANGE}")
    day = today()
    return GpuPrice(UsdRange(usd, usd, usd), f"your price of ${usd} per GPU-hour, as of {day}", day.isoformat())


def _on_demand(card: Gpu | None, price: float | None) -> GpuPrice | Unknown:
    if price is not None:
        return _own("price", price)
    if card is None:
        return NO_GPU
    found = Market(today()).price(card)
    if isinstance(found, Unknown):
        return found
    stale = ", stale" if found.stale else ""
    usd = UsdRange(found.low_usd, found.usd_per_gpu_h, found.high_usd)
    return GpuPrice(usd, f"{found.words}{stale}", str(found.newest))


def _spot(card: Gpu | None, price: float | None) -> GpuPrice | Unknown:
    if price is not None:
        return _own("spot_price", price)
    if card is None:
        return NO_GPU
    found = market_price(card.key, "spot")
    if isinstance(found, Unknown):
        return found
    return GpuPrice(UsdRange(found.low_usd, found.usd_per_gpu_h, found.high_usd), found.words, found.newest)
