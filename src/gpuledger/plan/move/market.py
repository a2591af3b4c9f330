"""What would one GPU-hour of another GPU cost, by the user's own rate, else by the market or a part of it?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import cached_property

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import price_over
from gpuledger.catalog.prices.offers import Offer, facts, load_offers
from gpuledger.plan.move.statement import PriceBasis
from gpuledger.plan.offers import MarketOption, market_options
from gpuledger.units import Unknown


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
        clouds, regions = ({name.casefold() for name in given} for given in (self.clouds, self.regions))
        out: dict[str, list[Offer]] = {}
        for offer in self._listed:
            near = (not clouds or offer.cloud.casefold() in clouds) and (
                not regions or offer.region.casefold() in regions
            )
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
        oldest, newest = dt.date.fromisoformat(found.oldest), dt.date.fromisoformat(found.newest)
        age = (self.today - newest).days
        stale = age > facts().stale_after_days["on_demand"]
        words = found.words
        return PriceBasis(
            found.usd_per_gpu_h, found.low_usd, found.high_usd, words, oldest, newest, age, stale, bool(mine)
        )  # fmt: skip

    def _of(self, gpu: Gpu) -> list[Offer]:
        """The cheapest offer of each region: a buyer of GPUs does not take the same GPU in a larger host."""
        best: dict[tuple[str, str], tuple[Decimal, Offer]] = {}
        for offer in self._offers.get(gpu.key, []):
            price, place = offer.usd_per_gpu_h, (offer.cloud, offer.region)
            if offer.apart or isinstance(price, Unknown):
                continue
            if place not in best or price < best[place][0]:
                best[place] = price, offer
        return [offer for _, offer in best.values()]

    def cheapest_host(self, gpu: Gpu, at_least: int, at_most: int) -> MarketOption | None:
        """The instance type with this number of the GPU that sells one for the least."""
        fitting = (o for o in self._options.get(gpu.key, []) if at_least <= o.gpus <= at_most)
        return next(fitting, None)  # the cheapest come first

    def example(self, gpu: Gpu, usd_per_gpu_h: Decimal) -> MarketOption | None:
        """An option near a price, to look at first."""
        options = self._options.get(gpu.key, [])

        def far(option: MarketOption) -> tuple[bool, Decimal, str, str]:
            price = option.usd_per_gpu_h
            off = Decimal(0) if isinstance(price, Unknown) else abs(price - usd_per_gpu_h)
            return not option.yours, off, option.cloud, option.region

        return min(options, key=far, default=None)
