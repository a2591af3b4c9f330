"""Where on the market can a number of GPUs of a kind be rented, at what price, and what does one GPU-hour cost there?

An option is one instance type in one region under one purchase option. Zones of a region are one option: the price is
that of its cheapest zone, with the range over its zones. A rate of the user's own replaces the listed price of the
instance it covers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from gpuledger.catalog.gpus import Gpu, load_gpus
from gpuledger.catalog.prices import aged, lowest_first, price_over, priced
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

    @property
    def name(self) -> str:
        """What a person would call it."""
        return f"{self.cloud} {self.instance or self.gpu.name} in {self.region} ({self.purchase})"

    def as_json(self) -> dict[str, object]:
        """The GPU by its key."""
        return {**vars(self), "gpu": self.gpu.key}


def market_options(
    *,
    clouds: Collection[str] = (),
    regions: Collection[str] = (),
    purchase: Purchase | None = None,
    own: Sequence[Offer] = (),
    listed: Iterable[Offer] | None = None,
) -> tuple[MarketOption, ...]:
    """The options that match all that is given, cheapest GPU first, those without a known price last.

    `own`: the user's rates, used first. `listed`: other offers than the shipped ones.
    Fractions of a GPU, bids, and offers whose GPU is not in the catalog are left out.
    """
    where = {c.casefold() for c in clouds}, {r.casefold() for r in regions}
    offers = [*own, *(o for o in (load_offers() if listed is None else listed) if not replaced(o, own))]
    groups: dict[tuple[str, ...], list[Offer]] = {}
    for offer in offers:
        whole = not offer.apart and offer.gpus == int(offer.gpus)
        if whole and not isinstance(offer.gpu, Unknown) and _there(offer, *where):
            place = (offer.cloud, offer.instance, offer.region, str(offer.gpu), str(offer.gpus), str(offer.yours))
            groups.setdefault(place, []).append(offer)
    found = [option for members in groups.values() for option in _options(members)]
    return tuple(sorted((o for o in found if purchase in {None, o.purchase}), key=_cheapest_first))


def _cheapest_first(o: MarketOption) -> tuple[bool, Decimal, bool, str, str, str, int, str]:
    return *lowest_first(o.usd_per_gpu_h), not o.yours, o.cloud, o.instance, o.region, o.gpus, o.purchase


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
    cuts = sorted(spot_cuts(members).values())
    saving = quantile(cuts, 0.5) if cuts else Unknown("no zone lists both a spot and an on-demand price")
    zones, spot_zones = ({o.zone for o in offers} for offers in (members, by_purchase.get("spot", ())))
    availability = Availability(len(zones), len(spot_zones), saving)
    for offers in by_purchase.values():
        yield _option(offers, availability)


def _option(offers: Sequence[Offer], availability: Availability) -> MarketOption:
    known = priced(offers)
    best = known[0][1] if known else offers[0]
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
        high_usd_per_gpu_h=known[-1][0] if known else best.usd_per_gpu_h,
        availability=availability,
        flags=tuple(dict.fromkeys(flag for o in offers for flag in o.flags)),
    )


@dataclass(frozen=True)
class PriceBasis:
    """The price a move is calculated with: the user's own, or the market's median with its range."""

    usd_per_gpu_h: Decimal
    low_usd: Decimal
    high_usd: Decimal
    words: str
    oldest: dt.date | None
    newest: dt.date | None
    age_days: int | None
    stale: bool
    yours: bool


class Market:
    """On-demand prices by GPU, each computed once. `clouds`, `regions`: only there; `listed`: other offers.

    Where the present GPUs are priced by the market median over all offers, so are others: like is compared with like.
    """

    def __init__(
        self,
        today: dt.date,
        *,
        own: Sequence[Offer] = (),
        clouds: Collection[str] = (),
        regions: Collection[str] = (),
        clouds_from: int = 1,
        listed: Sequence[Offer] | None = None,
    ) -> None:
        self.today, self.own, self.clouds, self.regions = today, tuple(own), tuple(clouds), tuple(regions)
        # A market the user chose may be as narrow as the user likes.
        self.clouds_from = 1 if clouds or regions else clouds_from
        self._listed = load_offers() if listed is None else tuple(listed)
        self._found: dict[tuple[str, bool], PriceBasis | Unknown] = {}
        self._within: dict[tuple[str, ...], Market] = {}

    def within(self, clouds: Collection[str]) -> Market:
        """The same market in some clouds only; itself where places were chosen already, or none is named."""
        names = tuple(sorted(clouds))
        if self.clouds or self.regions or not names:
            return self
        if names not in self._within:
            self._within[names] = Market(self.today, own=self.own, clouds=names, listed=self._listed)
        return self._within[names]

    @cached_property
    def _options(self) -> dict[str, list[MarketOption]]:
        out: dict[str, list[MarketOption]] = {}
        for option in market_options(
            clouds=self.clouds, regions=self.regions, purchase="on-demand", own=self.own, listed=self._listed
        ):
            if not isinstance(option.usd_per_gpu_h, Unknown):
                out.setdefault(option.gpu.key, []).append(option)
        return out

    @cached_property
    def _offers(self) -> dict[str, list[Offer]]:
        places = {c.casefold() for c in self.clouds}, {r.casefold() for r in self.regions}
        out: dict[str, list[Offer]] = {}
        for offer in self._listed:
            near = _there(offer, *places) and (offer.region or not self.regions)
            if near and isinstance(offer.gpu, str) and offer.purchase == "on_demand":
                out.setdefault(offer.gpu, []).append(offer)
        return out

    def price(self, gpu: Gpu, *, all_offers: bool = False) -> PriceBasis | Unknown:
        """The price of one GPU-hour of a GPU, on-demand: of the cheapest instance of each region, or of all offers."""
        if (gpu.key, all_offers) not in self._found:
            self._found[gpu.key, all_offers] = self._price(gpu, all_offers)
        return self._found[gpu.key, all_offers]

    def _price(self, gpu: Gpu, all_offers: bool) -> PriceBasis | Unknown:
        mine = [o for o in self.own if o.gpu == gpu.key and o.purchase == "on_demand"]
        where = ", ".join((*self.clouds, *self.regions)) or "the market"
        found = price_over(
            f"yours: {gpu.name}" if mine else f"{gpu.name} on {where}",
            "on_demand",
            mine or (self._offers.get(gpu.key, []) if all_offers else self._of(gpu)),
        )
        if isinstance(found, Unknown):
            return found
        if not mine and len(found.clouds) < self.clouds_from:
            return Unknown(f"only {len(found.clouds)} cloud lists {gpu.name}: too few for a market price")
        age, stale = aged(found.newest, "on_demand", self.today)
        return PriceBasis(
            found.usd_per_gpu_h, found.low_usd, found.high_usd, found.words, dt.date.fromisoformat(found.oldest),
            dt.date.fromisoformat(found.newest), age, stale, bool(mine),
        )  # fmt: skip

    def _of(self, gpu: Gpu) -> list[Offer]:
        """The cheapest offer of each region: a buyer of GPUs does not take the same GPU in a larger host."""
        best: dict[tuple[str, str], Offer] = {}
        for _, offer in priced(o for o in self._offers.get(gpu.key, []) if not o.apart):
            best.setdefault((offer.cloud, offer.region), offer)
        return list(best.values())

    def cheapest_host(self, gpu: Gpu, at_least: int, at_most: int) -> MarketOption | None:
        """The instance type with this number of the GPU that sells one for the least."""
        fitting = (o for o in self._options.get(gpu.key, []) if at_least <= o.gpus <= at_most)
        return next(fitting, None)  # the cheapest come first

    def example(self, gpu: Gpu, usd_per_gpu_h: Decimal) -> MarketOption | None:
        """An option near a price, to look at first."""
        options = self._options.get(gpu.key, [])

        def far(option: MarketOption) -> tuple[bool, Decimal, str, str]:
            assert isinstance(option.usd_per_gpu_h, Decimal)  # as of all of them
            return not option.yours, abs(option.usd_per_gpu_h - usd_per_gpu_h), option.cloud, option.region

        return min(options, key=far, default=None)
