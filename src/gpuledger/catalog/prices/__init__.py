"""What does this GPU cost: in this instance and region, or on the market as a whole?"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from gpuledger.catalog.files import fold
from gpuledger.catalog.gpus import Gpu, find_gpu, get_gpu, load_gpus
from gpuledger.catalog.prices.offers import Offer, Purchase, accelerators, facts, load_offers
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import MIB, Unknown, utc

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


def priced(offers: Iterable[Offer]) -> list[tuple[Decimal, Offer]]:
    """The offers whose price is known, each after the price of one GPU, cheapest first."""
    found = [(p, o) for o in offers if not isinstance(p := o.usd_per_gpu_h, Unknown)]
    return sorted(found, key=lambda pair: (pair[0], pair[1].instance, pair[1].region, pair[1].zone))


def lowest_first(figure: Decimal | Unknown) -> tuple[bool, Decimal]:
    """What figures are sorted by: the lowest first, those that are unknown last."""
    return (True, Decimal(0)) if isinstance(figure, Unknown) else (False, figure)


def aged(dated: str, purchase: Purchase, today: dt.date) -> tuple[int, bool]:
    """How many days old a price is, and whether that is too old for what it is the price of."""
    days = (today - dt.date.fromisoformat(dated)).days
    return days, days > facts().stale_after_days[purchase]


def source() -> str:
    """Source of the shipped prices."""
    return facts().source


def age_days(dated: str, as_of_ms: int) -> int:
    """How old a price is at an instant."""
    return (utc(as_of_ms).date() - dt.date.fromisoformat(dated)).days


@dataclass(frozen=True)
class Wanted:
    """What a price must match; None asks for nothing. `usd_per_gpu_h_max` is for one GPU with its share of the host."""

    gpu: str | None = None
    gpus: int | None = None
    cloud: str | None = None
    region: str | None = None
    zone: str | None = None
    instance: str | None = None
    purchase: Purchase | None = None
    usd_per_gpu_h_max: Decimal | None = None
    memory_gb_min: float | None = None

    def __post_init__(self) -> None:
        if self.gpus is not None and self.gpus < 1:
            raise InputError(f"{self.gpus} GPUs in an instance", hint="ask for 1 or more")
        if self.usd_per_gpu_h_max is not None and self.usd_per_gpu_h_max <= 0:
            raise InputError(f"a price of at most {self.usd_per_gpu_h_max}", hint="give dollars per GPU-hour above 0")


def find_offers(**wanted: Any) -> list[Offer]:
    """The shipped offers with all that `Wanted` asks for, cheapest GPU first; a name that no offer has is an error."""
    if wanted.get("purchase") not in {None, *PURCHASES}:
        raise InputError(f"purchase option {wanted['purchase']!r} has no offers", hint="use on_demand or spot")
    tests = list(tests_of(Wanted(**wanted), load_offers()))
    found = [o for o in load_offers() if all(test(o) for test in tests)]
    return sorted(found, key=lambda o: (*lowest_first(o.usd_per_gpu_h), o.cloud, o.instance, o.region, o.zone))


def tests_of(wanted: Wanted, offers: Sequence[Offer]) -> Iterator[Callable[[Offer], bool]]:
    """What an offer must pass; a name that none of the offers has is an error."""
    if wanted.gpu is not None:
        yield _of_gpu(wanted.gpu)
    for field in ("cloud", "region", "zone", "instance"):
        name = getattr(wanted, field)
        if name is not None:
            yield _named(field, name, {getattr(o, field) for o in offers})
    if wanted.gpus is not None:
        yield lambda o: o.gpus == wanted.gpus
    if wanted.purchase is not None:
        yield lambda o: o.purchase == wanted.purchase
    if (most := wanted.usd_per_gpu_h_max) is not None:
        yield lambda o: not isinstance(p := o.usd_per_gpu_h, Unknown) and p <= most
    if (least := wanted.memory_gb_min) is not None:
        yield lambda o: not isinstance(m := memory_gb(o), Unknown) and m >= least


def gpu_of(offer: Offer) -> Gpu | Unknown:
    """The GPU of the catalog an offer is of."""
    return offer.gpu if isinstance(offer.gpu, Unknown) else load_gpus()[offer.gpu]


def memory_gb(offer: Offer) -> float | Unknown:
    """Memory of one GPU: by the catalog, else by the price list."""
    gpu = gpu_of(offer)
    if isinstance(gpu, Gpu) and not isinstance(memory := gpu.figure("memory_bytes"), Unknown):
        return memory / 1e9
    return offer.gpu_mem_mib * MIB / 1e9 if offer.gpu_mem_mib else Unknown("neither catalog nor price list give it")


def _of_gpu(name: str) -> Callable[[Offer], bool]:
    """Offers of a GPU of the catalog, or of a spelling the clouds use; any other name is an error."""
    found, folded = find_gpu(name), fold(name)
    if not isinstance(found, Unknown):
        key = found.key
        return lambda o: o.gpu == key
    if folded not in {spelling.casefold() for spelling in accelerators()}:
        get_gpu(name)  # raises with the nearest names
    return lambda o: o.accelerator.casefold() == folded


def _named(field: str, name: str, known: Collection[str]) -> Callable[[Offer], bool]:
    """Offers with this cloud, instance, region or zone; a name that nothing has is an error."""
    folded = fold(name)
    if folded not in {n.casefold() for n in known}:
        raise UnknownName(field, name, set(known) - {""})
    # A rate without a region holds in all of them.
    anywhere = field in {"region", "zone"}
    return lambda o: getattr(o, field).casefold() == folded or (anywhere and o.yours and not getattr(o, field))


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
    where = f"{listed[0].instance} in {region or 'any region'}"
    there = find_offers(instance=instance, region=region) if region else listed
    if not there:
        return Unknown(f"no offer of {where}; it is offered in {', '.join(sorted({o.region for o in listed}))}")
    return price_over(where, purchase, [o for o in there if o.purchase == purchase])


def price_over(what: str, purchase: Purchase, offers: Sequence[Offer]) -> MarketPrice | Unknown:
    """The price of one GPU-hour over some offers, each cloud counting the same."""
    used = priced(o for o in offers if not o.apart)
    if not used:
        left = Counter(o.apart or (o.usd_per_h.why if isinstance(o.usd_per_h, Unknown) else "") for o in offers)
        why = f": {next(iter(left))}" if left else ""
        return Unknown(f"the price facts have no {purchase.replace('_', '-')} price for {what}{why}")
    per_cloud = Counter(o.cloud for _, o in used)
    weighed: dict[Decimal, Fraction] = {}
    for price, offer in used:
        weighed[price] = weighed.get(price, Fraction(0)) + Fraction(1, per_cloud[offer.cloud])
    low, middle, high = (_quantile(weighed, Fraction(q, 100)) for q in (10, 50, 90))
    dates = sorted(o.dated for _, o in used)
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
