"""Where on the market can a number of GPUs of a kind be rented, at what price, listed when?

An option is one instance type in one region under one purchase option. Zones of a region are one option: the price is
that of its cheapest zone, with the range over its zones. A rate of the user's own replaces the listed price of the
instance it covers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.catalog.gpus import Gpu, get_gpu, load_gpus
from gpuledger.catalog.prices.offers import Offer, PriceScope, load_offers
from gpuledger.catalog.prices.own_rates import OWN_CLOUD, replaced
from gpuledger.catalog.prices.spread import quantile, spot_cuts
from gpuledger.units import Unknown

Purchase = Literal["on-demand", "spot"]
ANY_REGION = "any region"
NO_RECLAIM = Unknown("the price lists do not say how often spot is taken back")


@dataclass(frozen=True)
class Availability:
    """In how many zones an instance type is listed, in how many as spot, and how far spot lies below on-demand there.

    A listing does not promise capacity.
    """

    zones: int
    spot_zones: int
    spot_saving_ratio: float | Unknown
    reclaim_ratio: float | Unknown = NO_RECLAIM


@dataclass(frozen=True)
class MarketOption:
    """A number of GPUs of one kind in one instance type in one region; both prices, and which of them was published."""

    cloud: str
    region: str
    instance: str
    gpu: Gpu
    gpus: int
    usd_per_gpu_h: Decimal | Unknown
    usd_per_instance_h: Decimal | Unknown
    purchase: Purchase
    price_scope: PriceScope
    as_of: dt.date
    source: str
    yours: bool = False
    zones: tuple[str, ...] = ()
    high_usd_per_gpu_h: Decimal | Unknown = Unknown("no price")  # noqa: RUF009  (frozen, so one for all is safe)
    availability: Availability | None = None
    flags: tuple[str, ...] = ()

    def age_days(self, today: dt.date) -> int:
        """How old its price is."""
        return (today - self.as_of).days

    @property
    def name(self) -> str:
        """What a person would call it."""
        return f"{self.cloud} {self.instance or self.gpu.name} in {self.region} ({self.purchase})"

    def as_json(self) -> dict[str, object]:
        """The GPU by its key."""
        return {**vars(self), "gpu": self.gpu.key}


def market_options(
    gpu: str | Gpu | None = None,
    *,
    gpus: int | None = None,
    clouds: Collection[str] = (),
    regions: Collection[str] = (),
    purchase: Purchase | None = None,
    own: Sequence[Offer] = (),
    listed: Iterable[Offer] | None = None,
) -> tuple[MarketOption, ...]:
    """The options that match all that is given, cheapest GPU first, those without a known price last.

    `gpus`: in one instance. `own`: the user's rates, used first. `listed`: other offers than the shipped ones.
    Fractions of a GPU, bids, and offers whose GPU is not in the catalog are left out.
    """
    key = None if gpu is None else (gpu.key if isinstance(gpu, Gpu) else get_gpu(gpu).key)
    where = {c.casefold() for c in clouds}, {r.casefold() for r in regions}
    offers = [*own, *(o for o in (load_offers() if listed is None else listed) if not replaced(o, own))]
    groups: dict[tuple[str, ...], list[Offer]] = {}
    for offer in offers:
        if _counts(offer, key, gpus) and _there(offer, *where):
            place = (offer.cloud, offer.instance, offer.region, str(offer.gpu), str(offer.gpus), str(offer.yours))
            groups.setdefault(place, []).append(offer)
    found = [option for members in groups.values() for option in _options(members)]
    return tuple(sorted((o for o in found if purchase in {None, o.purchase}), key=_cheapest_first))


def _counts(offer: Offer, key: str | None, gpus: int | None) -> bool:
    if isinstance(offer.gpu, Unknown) or offer.apart or offer.gpus != int(offer.gpus):
        return False
    return key in {None, offer.gpu} and gpus in {None, int(offer.gpus)}


def _there(offer: Offer, clouds: Collection[str], regions: Collection[str]) -> bool:
    """A rate without a region holds in all of them; the user's own hardware is in no cloud."""
    at_home = offer.yours and offer.cloud == OWN_CLOUD
    if clouds and not at_home and offer.cloud.casefold() not in clouds:
        return False
    return not regions or not offer.region or offer.region.casefold() in regions


def _options(members: Sequence[Offer]) -> Iterator[MarketOption]:
    """The purchase options of one instance type in one region."""
    by_purchase: dict[str, list[Offer]] = {}
    for offer in members:
        by_purchase.setdefault(offer.purchase, []).append(offer)
    availability = _availability(by_purchase)
    for offers in by_purchase.values():
        yield _option(offers, availability)


def _option(offers: Sequence[Offer], availability: Availability) -> MarketOption:
    priced = [(p, o) for o in offers if not isinstance(p := o.usd_per_gpu_h, Unknown)]
    priced.sort(key=lambda pair: (pair[0], pair[1].zone))
    best = priced[0][1] if priced else offers[0]
    return MarketOption(
        cloud=best.cloud,
        region=best.region or ANY_REGION,
        instance=best.instance,
        gpu=load_gpus()[str(best.gpu)],
        gpus=int(best.gpus),
        usd_per_gpu_h=best.usd_per_gpu_h,
        usd_per_instance_h=best.usd_per_h,
        purchase="spot" if best.purchase == "spot" else "on-demand",
        price_scope=best.price_scope,
        as_of=dt.date.fromisoformat(best.dated),
        source=best.source,
        yours=best.yours,
        zones=tuple(sorted({o.zone for o in offers if o.zone})),
        high_usd_per_gpu_h=priced[-1][0] if priced else best.usd_per_gpu_h,
        availability=availability,
        flags=tuple(dict.fromkeys(flag for o in offers for flag in o.flags)),
    )


def _availability(by_purchase: dict[str, list[Offer]]) -> Availability:
    cuts = sorted(spot_cuts(o for offers in by_purchase.values() for o in offers).values())
    saving = quantile(cuts, 0.5) if cuts else Unknown("no zone lists both a spot and an on-demand price")
    zones = {o.zone for offers in by_purchase.values() for o in offers}
    return Availability(len(zones), len({o.zone for o in by_purchase.get("spot", ())}), saving)


def _cheapest_first(option: MarketOption) -> tuple[bool, Decimal, bool, str, str, str, int, str]:
    price = option.usd_per_gpu_h
    unknown = isinstance(price, Unknown)
    rest = (not option.yours, option.cloud, option.instance, option.region, option.gpus, option.purchase)
    return unknown, Decimal(0) if isinstance(price, Unknown) else price, *rest
