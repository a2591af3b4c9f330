"""Which options are there: each instance type, in which counts, on demand and spot, at what price?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import aged
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.own_gpus import gpu_of
from gpuledger.plan.guide.placed_job import Candidate, Job
from gpuledger.plan.guide.placing import fits, sizes, smallest_count
from gpuledger.plan.guide.schema import Instance, migrate_facts
from gpuledger.plan.market import MarketOption, Purchase
from gpuledger.units import Unknown

PURCHASES: tuple[Purchase, ...] = ("on-demand", "spot")
MONTH_H = 720
NO_SPOT = Unknown("no spot price is given")


def scope_of(instance: Instance) -> str:
    """Whether its price is of one GPU or of the whole instance; a whole one by default."""
    return instance.price_scope or "instance"


def per_gpu(instance: Instance, purchase: Purchase) -> Decimal | Unknown:
    """The price of one GPU-hour. A price of an instance is of the GPUs the file counts in it, corrected or not."""
    price = instance.spot_cost_per_hour if purchase == "spot" else instance.on_demand_cost_per_hour
    if price is None:
        return NO_SPOT
    exact = Decimal(str(price))
    return exact if scope_of(instance) == "gpu" else exact / instance.gpus_per_instance


@dataclass(frozen=True)
class InstancePrices:
    """The prices of one configured instance, per GPU and whole; a month is 720 hours."""

    usd_per_gpu_h: Decimal
    spot_usd_per_gpu_h: Decimal | Unknown
    usd_per_instance_h: Decimal
    gpu_monthly_usd: Decimal
    gpu_spot_monthly_usd: Decimal | Unknown


def prices_of(instance: Instance) -> InstancePrices:
    """What one GPU and one whole instance cost."""
    price, spot = per_gpu(instance, "on-demand"), per_gpu(instance, "spot")
    assert not isinstance(price, Unknown), "an on-demand price is required"
    spot_month = spot if isinstance(spot, Unknown) else spot * MONTH_H
    return InstancePrices(price, spot, price * instance.gpus, price * MONTH_H, spot_month)


def configured(config: Config, key: str, gpus: int, purchase: Purchase) -> Candidate:
    """A number of GPUs of one configured instance, at their share of its price."""
    one = config.instances[key]
    price, found = per_gpu(one, purchase), gpu_of(one)
    share: Decimal | Unknown = price if isinstance(price, Unknown) else price * gpus
    whole = share
    if scope_of(one) == "instance" and not isinstance(price, Unknown):
        whole = price * one.gpus * -(-gpus // one.gpus)
    return Candidate(
        id=f"{key}/{gpus}/{purchase}",
        instance=key,
        family=one.family,
        gpu=found.gpu,
        span=found.span,
        gpu_name=one.gpu_type.removeprefix("NVIDIA "),
        gpus=gpus,
        gpus_per_instance=one.gpus,
        purchase=purchase,
        usd_per_gpu_h=price,
        high_usd_per_gpu_h=price,
        usd_per_h=share,
        whole_usd_per_h=whole,
        price_scope=scope_of(one),
        price_date="illustrative, undated" if config.illustrative else "as configured",
        price_source=config.where,
        zones=zones_listing("aws", one.market_instances, purchase),
    )


def zones_listing(cloud: str, instances: tuple[str, ...], purchase: Purchase) -> int | None:
    """In how many zones of a cloud the price lists have these instances; None where none is named."""
    if not instances:
        return None
    wanted = "spot" if purchase == "spot" else "on_demand"
    return len(set().union(*(_listings().get((cloud, name, wanted), set()) for name in instances)))


@cache
def _listings() -> dict[tuple[str, str, str], set[tuple[str, str]]]:
    """The zones of each cloud, instance type and purchase option."""
    found: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
    for offer in load_offers():
        found.setdefault((offer.cloud, offer.instance, offer.purchase), set()).add((offer.region, offer.zone))
    return found


@dataclass(frozen=True)
class Counts:
    """GPU counts to look at; up to `enough` each of them, above it those that may pay (`may_pay`)."""

    steps: tuple[int, ...]
    enough: int


def counts(job: Job, gpu: Gpu | Unknown, now: Candidate, gpus_per_instance: int) -> Counts:
    """1, 2, 4, ... within an instance, then whole instances, up to some times the present count.

    The fewest GPUs the job fits on are among them. Where the present setup cannot run the job, nothing says how many
    hours it takes on more GPUs than these, so there are no more.
    """
    limits, current = migrate_facts().limits, now.gpus
    runs = not isinstance(now.gpu, Unknown) and fits(job, now.gpu, current, now.gpus_per_instance)
    least = None if isinstance(gpu, Unknown) else smallest_count(job, gpu, gpus_per_instance)
    enough = max(current, least or 1)
    most = max(current * (limits.counts_times if runs else 1), least or 1)
    steps = {current, *sizes(gpus_per_instance, enough), *sizes(gpus_per_instance, most)}
    fitting = {n for n in steps if n <= gpus_per_instance or n % gpus_per_instance == 0} | ({least} if least else set())
    return Counts(tuple(sorted(n for n in fitting if n <= min(most, max(limits.most_gpus, current)))), enough)


def may_pay(job: Job, candidate: Candidate, now: Candidate, enough: int) -> bool:
    """Whether a candidate is worth a look for its number of GPUs.

    Work that ends may end sooner on more GPUs. A server runs all hours: more GPUs than now, and than it needs, are for
    it only if they cost no more than now.
    """
    if candidate.gpus <= enough or not job.serves:
        return True
    price, paid = candidate.usd_per_h, now.usd_per_h
    return not isinstance(price, Unknown) and not isinstance(paid, Unknown) and price <= paid


def from_config(config: Config, wanted: Iterable[tuple[str, int]]) -> Iterator[Candidate]:
    """Both purchase options of each instance and count."""
    for key, gpus in wanted:
        for purchase in PURCHASES:
            if purchase == "spot" and config.instances[key].spot_cost_per_hour is None:
                continue
            yield configured(config, key, gpus, purchase)


def from_market(offer: MarketOption, gpus: int, today: dt.date | None, *, whole: bool = False) -> Candidate:
    """A number of GPUs of a market offer: at their share of the price, or with `whole` at that of every instance."""
    price, each = offer.usd_per_gpu_h, offer.usd_per_instance_h
    all_of_it = each if isinstance(each, Unknown) else each * -(-gpus // offer.gpus)
    share = price if isinstance(price, Unknown) else price * gpus
    listed = offer.as_of.isoformat()
    stale = today is not None and aged(listed, "spot" if offer.purchase == "spot" else "on_demand", today)[1]
    return Candidate(
        id=f"{offer.cloud}/{offer.region}/{offer.instance}/{gpus}/{offer.purchase}",
        instance=offer.instance or offer.gpu.name,
        family=family_of(offer.gpu),
        gpu=offer.gpu,
        gpu_name=offer.gpu.name,
        gpus=gpus,
        gpus_per_instance=offer.gpus,
        purchase=offer.purchase,
        usd_per_gpu_h=price,
        high_usd_per_gpu_h=offer.high_usd_per_gpu_h,
        usd_per_h=all_of_it if whole else share,
        whole_usd_per_h=all_of_it,
        price_scope=str(offer.price_scope),
        price_date=listed,
        price_source="your own rate" if offer.yours else offer.source,
        cloud=offer.cloud,
        region=offer.region,
        zones=zones_listing(offer.cloud, (offer.instance,), offer.purchase) if offer.instance else None,
        stale=stale,
        whole=whole,
    )


def family_of(gpu: Gpu) -> str:
    """P for GPUs that are all linked, G for those on PCIe or in bridged pairs: what the letters mean on AWS."""
    kind = gpu.link.kind.casefold() if gpu.link is not None else "pcie"
    return "G" if "pcie" in kind or "bridge" in kind else "P"


def cheapest_each(options: Sequence[MarketOption]) -> list[MarketOption]:
    """The cheapest offer of each instance type and purchase option, over all regions that were asked for."""
    best: dict[tuple[str, str, str, int], MarketOption] = {}
    for option in options:
        price = option.usd_per_gpu_h
        key = (option.cloud, option.instance, option.purchase, option.gpus)
        held = best.get(key)
        if isinstance(price, Unknown):
            best.setdefault(key, option)
        elif held is None or isinstance(held.usd_per_gpu_h, Unknown) or price < held.usd_per_gpu_h:
            best[key] = option
    return list(best.values())
