"""What does this GPU cost: in this instance and region, or on the market as a whole?"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from gpuledger.catalog.files import fold
from gpuledger.catalog.gpus import find_gpu, get_gpu, load_gpus
from gpuledger.catalog.prices.offers import Offer, Purchase, accelerators, facts, load_offers
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown, utc

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
            f"{self.what}, {self.purchase.replace('_', '-')}: median ${self.usd_per_gpu_h:.2f} per GPU-hour"
            f" (${self.low_usd:.2f} to ${self.high_usd:.2f} for 80 % of {self.offers} offers"
            f" of {len(self.clouds)} cloud{plural}, listed {dates})"
        )


def source() -> str:
    """Source of the shipped prices."""
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
    """The offers that match all that is given, cheapest GPU first; a name that no offer has is an error."""
    if purchase is not None and purchase not in PURCHASES:
        raise InputError(f"purchase option {purchase!r} has no offers", hint="use on_demand or spot")
    tests = [] if gpu is None else [of_gpu(gpu)]
    for field, name in (("instance", instance), ("region", region), ("cloud", cloud)):
        tests += [] if name is None else [named(field, name, _names(field))]
    found = [o for o in load_offers() if purchase in {None, o.purchase} and all(test(o) for test in tests)]
    return sorted(found, key=_cheapest_first)


def of_gpu(name: str) -> Callable[[Offer], bool]:
    """Offers of a GPU of the catalog, or of a spelling the clouds use; any other name is an error."""
    found, folded = find_gpu(name), fold(name)
    if not isinstance(found, Unknown):
        key = found.key
        return lambda o: o.gpu == key
    if folded not in {spelling.casefold() for spelling in accelerators()}:
        get_gpu(name)  # raises with the nearest names
    return lambda o: o.accelerator.casefold() == folded


def named(field: str, name: str, known: Collection[str]) -> Callable[[Offer], bool]:
    """Offers with this cloud, instance, region or zone; a name that nothing has is an error."""
    folded = fold(name)
    if folded not in {n.casefold() for n in known}:
        raise UnknownName(field, name, set(known) - {""})
    # A rate without a region holds in all of them.
    anywhere = field in {"region", "zone"}
    return lambda o: getattr(o, field).casefold() == folded or (anywhere and o.yours and not getattr(o, field))


@cache
def _names(field: str) -> frozenset[str]:
    return frozenset(getattr(o, field) for o in load_offers())


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
        there = list(filter(named("region", region, _names("region")), listed))
        if not there:
            known = sorted({o.region for o in listed})
            return Unknown(f"no offer of {where}; it is offered in {', '.join(known)}")
        listed = there
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
