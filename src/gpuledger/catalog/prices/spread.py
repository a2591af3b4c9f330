"""How far apart are the prices of one GPU: between clouds, and between on-demand and spot?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.prices import PURCHASES, Wanted, aged, price_over, priced
from gpuledger.catalog.prices.offers import Offer, Purchase, facts
from gpuledger.catalog.prices.rows import matching
from gpuledger.units import Unknown

Place = tuple[str, str, str, str]


@dataclass(frozen=True)
class Spread:
    """The price of one GPU-hour over some offers; each cloud counts the same in median, p10 and p90."""

    purchase: Purchase
    min_usd: Decimal
    p10_usd: Decimal
    median_usd: Decimal
    p90_usd: Decimal
    max_usd: Decimal
    offers: int
    clouds: int
    oldest: dt.date
    newest: dt.date
    oldest_age_days: int
    newest_age_days: int
    stale: bool

    def as_json(self) -> dict[str, object]:
        """The way to buy as on a command line."""
        return {**vars(self), "purchase": self.purchase.replace("_", "-")}


@dataclass(frozen=True)
class CloudPrice:
    """The lowest price of one cloud for one GPU, on-demand and spot, and where."""

    gpu: str
    cloud: str
    on_demand_usd: Decimal | Unknown
    on_demand_at: str
    spot_usd: Decimal | Unknown
    spot_at: str
    as_of: dt.date
    age_days: int
    stale: bool
    yours: bool


@dataclass(frozen=True)
class SpotSaving:
    """How far spot lies below on-demand in the same zone, over zones; below 0 where it costs more.

    `claim` is a published figure to compare it with.
    """

    p10_pct: float
    p50_pct: float
    p90_pct: float
    min_pct: float
    max_pct: float
    zones: int
    clouds: int
    above_on_demand: int
    claim_low_pct: float
    claim_high_pct: float
    claim_source: str
    within_claim_pct: float


@dataclass(frozen=True)
class GpuSpread:
    """One GPU of the catalog on the market, and its price in each cloud."""

    gpu: str
    gpu_name: str
    on_demand: Spread | Unknown
    spot: Spread | Unknown
    saving: SpotSaving | Unknown
    clouds: tuple[CloudPrice, ...]


@dataclass(frozen=True)
class PriceComparison:
    """The GPUs that match, by name, and what spot saves over all of them."""

    gpus: tuple[GpuSpread, ...]
    saving: SpotSaving | Unknown
    left_out: tuple[tuple[str, int], ...]
    stale_after_days: Mapping[Purchase, int]

    def as_json(self) -> dict[str, object]:
        """With where the list prices come from."""
        about = {"source": facts().source, "stale_basis": facts().stale_basis}
        return {**vars(self), **about, "left_out": dict(self.left_out)}


def compare_prices(
    wanted: Wanted, today: dt.date, *, own: Sequence[Offer] = (), listed: Iterable[Offer] | None = None
) -> PriceComparison:
    """The offers that match, GPU by GPU. Offers whose GPU is unknown, bids and fractions are left out and counted."""
    found, _, _ = matching(wanted, own, listed)
    used = [o for o in found if isinstance(o.gpu, str) and not o.apart and not isinstance(o.usd_per_h, Unknown)]
    used.sort(key=lambda o: str(o.gpu))
    made = [_gpu(key, list(members), today) for key, members in groupby(used, key=lambda o: str(o.gpu))]
    return PriceComparison(tuple(made), spot_saving(used), _left_out(found), facts().stale_after_days)


def _left_out(found: Sequence[Offer]) -> tuple[tuple[str, int], ...]:
    reasons: dict[str, int] = {}
    for offer in found:
        why = offer.gpu.why if isinstance(offer.gpu, Unknown) else offer.apart
        if not why and isinstance(offer.usd_per_h, Unknown):
            why = "the whole price is unknown: the accelerator is sold apart from its host"
        if why:
            reasons[why] = reasons.get(why, 0) + 1
    return tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def _gpu(key: str, offers: Sequence[Offer], today: dt.date) -> GpuSpread:
    clouds = [_cloud(key, cloud, [o for o in offers if o.cloud == cloud], today) for cloud in {o.cloud for o in offers}]
    on_demand, spot = (_spread([o for o in offers if o.purchase == p], p, today) for p in PURCHASES)
    clouds.sort(key=_cheapest)
    return GpuSpread(key, load_gpus()[key].name, on_demand, spot, spot_saving(offers), tuple(clouds))


def _cheapest(row: CloudPrice) -> tuple[Decimal, str]:
    known = [p for p in (row.on_demand_usd, row.spot_usd) if not isinstance(p, Unknown)]
    first = row.on_demand_usd
    return (min(known) if isinstance(first, Unknown) else first), row.cloud


def _spread(offers: Sequence[Offer], purchase: Purchase, today: dt.date) -> Spread | Unknown:
    found = price_over("these offers", purchase, offers)
    if isinstance(found, Unknown):
        return Unknown(f"no {purchase.replace('_', '-')} offer among them")
    known, day = priced(offers), dt.date.fromisoformat
    young, stale = aged(found.newest, purchase, today)
    return Spread(
        purchase, known[0][0], found.low_usd, found.usd_per_gpu_h, found.high_usd, known[-1][0], found.offers,
        len(found.clouds), day(found.oldest), day(found.newest), aged(found.oldest, purchase, today)[0], young, stale,
    )  # fmt: skip


def _cloud(gpu: str, cloud: str, offers: Sequence[Offer], today: dt.date) -> CloudPrice:
    best = {p: _best([o for o in offers if o.purchase == p]) for p in PURCHASES}
    (on_demand, at), (spot, spot_at) = best["on_demand"], best["spot"]
    oldest = min(o.dated for o in offers)
    age, stale = aged(oldest, "spot" if isinstance(on_demand, Unknown) else "on_demand", today)
    as_of, yours = dt.date.fromisoformat(oldest), any(o.yours for o in offers)
    return CloudPrice(gpu, cloud, on_demand, at, spot, spot_at, as_of, age, stale, yours)


def _best(offers: Sequence[Offer]) -> tuple[Decimal | Unknown, str]:
    known = priced(offers)
    if not known:
        return Unknown("not offered"), ""
    price, offer = known[0]
    return price, f"{offer.instance or offer.accelerator} in {offer.region or 'any region'}"


def spot_cuts(offers: Iterable[Offer]) -> dict[Place, float]:
    """1 - spot / on-demand of every place with both, below 0 where spot costs more."""
    pairs: dict[Place, dict[str, Decimal]] = {}
    for offer in offers:
        if not offer.apart and not isinstance(offer.usd_per_h, Unknown):
            place = (offer.cloud, offer.instance, offer.region, offer.zone)
            pairs.setdefault(place, {})[offer.purchase] = offer.usd_per_h
    return {place: float(1 - p["spot"] / p["on_demand"]) for place, p in pairs.items() if len(p) == 2}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value of that rank of a sorted list, the nearest one."""
    return ordered[round(share * (len(ordered) - 1))]


def spot_saving(offers: Iterable[Offer]) -> SpotSaving | Unknown:
    """Over all zones with both prices, compared with what is claimed."""
    cuts = spot_cuts(offers)
    if not cuts:
        return Unknown("no zone lists both a spot and an on-demand price")
    order, claim = sorted(cuts.values()), facts().spot_claim
    within = sum(claim.low_ratio <= c <= claim.high_ratio for c in order)
    p10, p50, p90 = (100 * quantile(order, q) for q in (0.1, 0.5, 0.9))
    return SpotSaving(
        p10, p50, p90, 100 * order[0], 100 * order[-1], len(order), len({place[0] for place in cuts}),
        sum(c < 0 for c in order), 100 * claim.low_ratio, 100 * claim.high_ratio, claim.source,
        100 * within / len(order),
    )  # fmt: skip
