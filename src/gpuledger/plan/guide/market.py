"""How does a question become a plan at market prices, and from when are they?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuledger.catalog.gpus import find_gpu
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.guide.asking import smallest_count, terms_of
from gpuledger.plan.guide.build import plan_migration
from gpuledger.plan.guide.config import Config
from gpuledger.plan.guide.config_faults import fold
from gpuledger.plan.guide.form import Form, job_of
from gpuledger.plan.guide.statement import Candidate, MigrationPlan, Purchase
from gpuledger.plan.offers import MarketOption
from gpuledger.plan.options import cheapest_each, counts, from_market
from gpuledger.plan.placing import require_precision
from gpuledger.units import Unknown

ELSEWHERE = "try --region any, another --cloud, or --config for your own prices"


@dataclass(frozen=True)
class Market:
    """What is offered where we looked, `where` in words; `today` tells which prices are old.

    `whole`: instances are rented for this job alone, now and then; else the job pays for the GPUs it uses.
    """

    offered: Sequence[MarketOption]
    where: str
    today: dt.date | None = None
    whole: bool = False


def plan_market(config: Config, form: Form, market: Market, workload_id: str = "") -> MigrationPlan:
    """A plan among what the market offers; sizes, priorities and use cases are the configuration's."""
    job = job_of(form, config, workload_id)
    offered = market.offered
    if not offered:
        raise InputError(f"nothing is offered in {market.where}", hint=ELSEWHERE)
    now = _present(form, config, market, "spot" if form.spot else "on-demand")
    beside = _present(form, config, market, "on-demand" if form.spot else "spot")
    if not isinstance(now.gpu, Unknown):
        require_precision(job, now.gpu)
    found = {now.id: now, beside.id: beside}
    for offer in cheapest_each(offered):
        least = smallest_count(job, offer.gpu, offer.gpus)
        for gpus in _counts(form.gpus, offer.gpus, least, whole=market.whole):
            candidate = from_market(offer, gpus, market.today, whole=market.whole)
            found.setdefault(candidate.id, candidate)
    return plan_migration(job, now, list(found.values()), terms_of(config, job, _dated(market)))


def _counts(current: int, per_instance: int, least: int | None, *, whole: bool) -> list[int]:
    found = counts(current, per_instance, least)
    if not whole:
        return found
    # Only whole ones are sold, though it may be more than is used now.
    return sorted({n for n in found if n % per_instance == 0}) or [per_instance]


def _present(form: Form, config: Config, market: Market, purchase: Purchase) -> Candidate:
    """The present setup at its market price; not known where it is not listed under that purchase option."""
    mine = _meant(form.instance, config, market)
    enough = [o.gpus for o in mine if o.gpus >= form.gpus]
    size = min(enough) if enough else max(o.gpus for o in mine)
    exact = [o for o in mine if o.gpus == size]
    bought = [o for o in exact if o.purchase == purchase]
    if bought:
        return from_market(bought[0], form.gpus, market.today, whole=market.whole)
    why = Unknown(f"no {purchase} offer of {exact[0].instance or exact[0].gpu.name} is listed in {market.where}")
    bare = from_market(exact[0], form.gpus, market.today, whole=market.whole)
    return replace(
        bare,
        id=f"{bare.id}, as {purchase}",
        purchase=purchase,
        usd_per_gpu_h=why,
        high_usd_per_gpu_h=why,
        usd_per_h=why,
        whole_usd_per_h=why,
    )


def _meant(name: str, config: Config, market: Market) -> list[MarketOption]:
    """The offers a name means, cheapest first: of an instance of the configuration, an instance type, or a GPU."""
    keys = {fold(key): one for key, one in config.instances.items()}
    if fold(name) in keys:
        types = keys[fold(name)].market_instances
        found = [o for o in market.offered if o.instance in types]
        what = f"{name} ({', '.join(types) or 'no market_instances are given for it'})"
    elif found := [o for o in market.offered if o.instance and fold(o.instance) == fold(name)]:
        return found
    else:
        gpu = find_gpu(name)
        if isinstance(gpu, Unknown):
            raise UnknownName("instance or GPU", name, [*config.instances, *{o.instance for o in market.offered}])
        found, what = [o for o in market.offered if o.gpu.key == gpu.key], gpu.name
    if not found:
        raise InputError(f"{what} is not offered in {market.where}", hint=ELSEWHERE)
    return found


def _dated(market: Market) -> str:
    dates = sorted({o.as_of for o in market.offered})
    span = dates[0].isoformat() if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    what = "instances paid whole" if market.whole else "GPUs paid by their share of the instance (--whole: all of it)"
    return f"market list prices of {span} in {market.where}: the cheapest zone of each instance type; {what}"
