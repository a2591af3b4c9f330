"""What does this GPU cost: in this instance and region, or on the market as a whole?"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from gpuledger.catalog.gpus import find_gpu, get_gpu, load_gpus
from gpuledger.catalog.prices.offers import Offer, Purchase, accelerators, facts, load_offers
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown, utc

__all__ = [
    "MarketPrice",
    "Offer",
    "Purchase",
    "age_days",
    "find_offers",
    "instance_price",
    "market_price",
    "price_over",
    "source",
]

PURCHASES: tuple[Purchase, ...] = ("on_demand", "spot")


@dataclass(frozen=True)
class MarketPrice:
    """The price of one GPU-hour over several offers: median, and the range from the 10th to the 90th percentile."""

    what: str
    purchase: Purchase
    usd_per_gpu_h: Decimal
    low_usd: Decimal
    high_usd: Decimal
    offers: int
    clouds: tuple[str, ...]
    oldest: str
    newest: str

    @property
    def words(self) -> str:
        """What the figure rests on."""
        plural = "s" if len(self.clouds) > 1 else ""
        dates = self.newest if self.oldest == self.newest else f"{self.oldest} to {self.newest}"
        return (
            f"{self.what}, {self.purchase.replace('_', '-')}: median ${self.usd_per_gpu_h:.2f} a GPU-hour"
            f" (${self.low_usd:.2f} to ${self.high_usd:.2f} for 80 % of {self.offers} offers"
            f" of {len(self.clouds)} cloud{plural}, listed {dates})"
        )


def source() -> str:
    """Where the shipped prices come from."""
    return facts().source


def age_days(dated: str, as_of_ms: int) -> int:
    """How old a price is at an instant."""
    return (utc(as_of_ms).date() - dt.date.fromisoformat(dated)).days


def find_offers(
    *,
    gpu: str | None = None,
    instance: str | None = None,
    region: str | None = None,
    cloud: str | None = None,
    purchase: str | None = None,
) -> list[Offer]:
    """The offers that match all that is given, cheapest GPU first; a name nobody offers is an error."""
    if purchase is not None and purchase not in PURCHASES:
        raise InputError(f"purchase option {purchase!r} has no offers", hint="use on_demand or spot")
    found: Iterable[Offer] = load_offers()
    if gpu is not None:
        found = _of_gpu(gpu)
    for field, wanted in (("instance", instance), ("region", region), ("cloud", cloud)):
        if wanted is not None:
            _require(field, wanted)
            found = [o for o in found if getattr(o, field).casefold() == wanted.strip().casefold()]
    return sorted((o for o in found if purchase in {None, o.purchase}), key=_cheapest_first)


def _of_gpu(name: str) -> list[Offer]:
    """Offers of a GPU of the catalog, or of a spelling the clouds use."""
    found = find_gpu(name)
    if not isinstance(found, Unknown):
        return [o for o in load_offers() if o.gpu == found.key]
    spelled = {s.casefold() for s in accelerators()}
    if name.strip().casefold() not in spelled:
        get_gpu(name)
    return [o for o in load_offers() if o.accelerator.casefold() == name.strip().casefold()]


@cache
def _names(field: str) -> frozenset[str]:
    return frozenset(getattr(o, field) for o in load_offers())


def _require(field: str, wanted: str) -> None:
    if wanted.strip().casefold() not in {n.casefold() for n in _names(field)}:
        raise UnknownName(field, wanted, _names(field) - {""})


def _cheapest_first(offer: Offer) -> tuple[bool, Decimal, str, str, str, str]:
    price = offer.usd_per_gpu_h
    unknown = isinstance(price, Unknown)
    where = (offer.cloud, offer.instance, offer.region, offer.zone)
    return unknown, Decimal(0) if isinstance(price, Unknown) else price, *where


@cache
def market_price(gpu: str, purchase: Purchase = "on_demand") -> MarketPrice | Unknown:
    """The dated median price of one GPU-hour of a catalog GPU, each cloud counting the same however much it lists."""
    name = load_gpus()[gpu].name if gpu in load_gpus() else gpu
    offers = [o for o in load_offers() if o.gpu == gpu and o.purchase == purchase]
    return price_over(f"{name} on the market", purchase, offers)


@cache
def instance_price(instance: str, region: str | None = None, purchase: Purchase = "on_demand") -> MarketPrice | Unknown:
    """The price of one GPU-hour in an instance, host included; over all regions where none is given."""
    listed = find_offers(instance=instance)
    where = f"{listed[0].instance} in {region}" if region else f"{listed[0].instance} in any region"
    if region:
        _require("region", region)
        listed = [o for o in listed if o.region.casefold() == region.strip().casefold()]
        if not listed:
            known = sorted({o.region for o in find_offers(instance=instance)})
            return Unknown(f"no offer of {where}; it is offered in {', '.join(known)}")
    return price_over(where, purchase, [o for o in listed if o.purchase == purchase])


def price_over(what: str, purchase: Purchase, offers: Sequence[Offer]) -> MarketPrice | Unknown:
    """The price of one GPU-hour over some offers, each cloud counting the same."""
    used = [(o, p) for o in offers if not o.apart and not isinstance(p := o.usd_per_gpu_h, Unknown)]
    if not used:
        left = Counter(o.apart or (o.usd_per_h.why if isinstance(o.usd_per_h, Unknown) else "") for o in offers)
        why = f": {next(iter(left))}" if left else ""
        return Unknown(f"the price facts have no {purchase.replace('_', '-')} price for {what}{why}")
    per_cloud = Counter(o.cloud for o, _ in used)
    weighed: dict[Decimal, Fraction] = {}
    for offer, price in used:
        weighed[price] = weighed.get(price, Fraction(0)) + Fraction(1, per_cloud[offer.cloud])
    low, middle, high = (_quantile(weighed, Fraction(q, 100)) for q in (10, 50, 90))
    dates = sorted(o.dated for o, _ in used)
    return MarketPrice(what, purchase, middle, low, high, len(used), tuple(sorted(per_cloud)), dates[0], dates[-1])


def _quantile(weighed: dict[Decimal, Fraction], share: Fraction) -> Decimal:
    """The price at or below which this share of the weight lies; midway where the share ends exactly between two."""
    prices, goal = sorted(weighed), share * sum(weighed.values())
    below = Fraction(0)
    for i, price in enumerate(prices):
        below += weighed[price]
        if below == goal and i + 1 < len(prices):
            return (price + prices[i + 1]) / 2
        if below >= goal:
            return price
    return prices[-1]
