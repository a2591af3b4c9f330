"""Which pools can hold the job, at what price on the day of the plan, and how often are they reclaimed?"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices.history import Pool, PriceHistory
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.catalog.prices.reclaim import Instance, facts, reclaims_per_h
from gpuledger.errors import InputError
from gpuledger.plan.outcome import Refused
from gpuledger.plan.spot.belief import Belief
from gpuledger.units import Range, Unknown

HOURS_PER_DAY = 24.0
OWN_RATE = "yours"
LOW_SHARE = 0.1  # a band that starts at 0: its lowest rate is a tenth of the expected one
HALF = 8  # rates a belief has below and above the expected one
NO_RATE = "how often it is reclaimed there is unknown: no published band"


@dataclass(frozen=True)
class Wanted:
    """How many of which GPU, where; `reclaims_per_day`: what the user knows of one instance."""

    gpu: Gpu
    gpus: int
    regions: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    reclaims_per_day: float | None = None


def rate_ends(rate: Range) -> tuple[float, float, float]:
    """Lowest, expected and highest reclaim rate: half of the rates lie below the expected one, on a log scale."""
    return max(rate.low, LOW_SHARE * rate.middle), rate.middle, rate.high


@dataclass(frozen=True)
class Candidate:
    """A pool that can hold the job: prices are for all of its instances, reclaims for any one of them."""

    pool: Pool
    instances: int
    spot_usd_h: float
    on_demand_usd_h: float | Unknown
    reclaims_per_h: Range

    def belief(self, rate: float | None = None) -> Belief:
        """What the rule expects of it."""
        found = self.reclaims_per_h.middle if rate is None else rate
        known = Belief(self.spot_usd_h, found, facts().outage_hours.middle, self.pool.region)
        if rate is not None or not self.reclaims_per_h.low < self.reclaims_per_h.high:
            return known
        low, middle, high = rate_ends(self.reclaims_per_h)
        halves = ((low, middle), (middle, high))
        at = (np.arange(HALF) + 0.5) / HALF
        rates = tuple(float(a * (b / a) ** x) for a, b in halves for x in at)
        return replace(known, rates=rates).after(0, 0.0)


@dataclass(frozen=True)
class Choice:
    """The pools that can hold the job, the cheapest on-demand price for all of it, and what was refused.

    `without_rate`: the number of pools refused only because it is unknown how often they are reclaimed.
    """

    candidates: tuple[Candidate, ...]
    on_demand_usd_h: float
    on_demand_at: Pool
    on_demand_instances: int
    refused: tuple[Refused, ...]
    without_rate: int = 0

    def with_only(self, candidates: Sequence[Candidate]) -> Choice:
        """The same with some of the pools."""
        return replace(self, candidates=tuple(candidates))


def choice(history: PriceHistory, wanted: Wanted, at_s: int, kinds: Mapping[str, Instance] | None = None) -> Choice:
    """Everything on offer at an instant, cheapest pool first; an error where nothing is."""
    kinds = kinds_of(history) if kinds is None else kinds
    fitting = {name: kind for name, kind in kinds.items() if kind.gpu == wanted.gpu.key and name in history.instances}
    if not fitting:
        have = sorted({kinds[n].gpu for n in history.instances if n in kinds})
        problem = f"no spot price history for {wanted.gpu.name}"
        if not have:
            names = ", ".join(history.instances[:3])
            hint = "write them as the cloud does, such as g5.xlarge: gpuledger prices lists them"
            raise InputError(f"{problem}: no GPU is known for the instance types {names}", hint=hint)
        raise InputError(problem, hint=f"GPUs with a price history: {', '.join(have)}; give history=FILE for others")
    pools = history.matching(fitting, wanted.regions, wanted.zones)
    at = np.array([at_s], dtype=np.int64)
    day = dt.datetime.fromtimestamp(at_s, dt.UTC).date()
    if not bool(history.observed(at)[0]):
        raise InputError(f"prices were not observed on {day}", hint=_observed_hint(history))
    found: list[Candidate] = []
    why: list[tuple[str, str, str]] = []
    demand: list[tuple[float, Pool, int]] = []
    without_rate = 0
    for pool in pools:
        count = math.ceil(wanted.gpus / fitting[pool.instance].gpus)
        spot, on_demand = (float(p[0]) * count for p in history.prices(pool, at))
        if not math.isnan(on_demand):
            demand.append((on_demand, pool, count))
        rate = _rate(pool, wanted, count)
        if refusal := _problem(spot, on_demand, day):
            why.append((pool.instance, *refusal))
        elif isinstance(rate, Unknown):
            without_rate += 1
            why.append((pool.instance, NO_RATE, "your own figure of reclaims per day"))
        else:
            demanded = Unknown("no on-demand price") if math.isnan(on_demand) else on_demand
            found.append(Candidate(pool, count, spot, demanded, rate))
    if not demand:
        where = ", ".join((*wanted.regions, *wanted.zones)) or "any region"
        raise InputError(
            f"no on-demand price for {', '.join(sorted(fitting))} in {where} on {day}, so no deadline can be kept",
            hint="allow more regions, or give history=FILE with on_demand_usd=3.50",
        )
    usd, place, count = min(demand, key=lambda d: (d[0], d[1]))
    kept = [c for c in found if c.spot_usd_h < usd]
    why += [
        (c.pool.instance, f"spot is not below the cheapest on-demand, ${usd:,.2f}/h", "a later price")
        for c in found
        if c.spot_usd_h >= usd
    ]
    kept.sort(key=lambda c: (c.spot_usd_h, c.pool))
    return Choice(tuple(kept), usd, place, count, _counted(why), without_rate)


def kinds_of(history: PriceHistory) -> Mapping[str, Instance]:
    """The GPUs of every instance type of a history: by our facts, else by the price lists."""
    known = facts().instances
    missing = set(history.instances) - set(known)
    if not missing:
        return known
    listed = {
        o.instance: Instance(o.gpu, int(o.gpus))
        for o in load_offers()
        if o.instance in missing and not isinstance(o.gpu, Unknown) and o.gpus >= 1
    }
    return {**listed, **known}


def _observed_hint(history: PriceHistory) -> str:
    first, last = (dt.datetime.fromtimestamp(s, dt.UTC).date() for s in (history.first_s, history.last_s))
    gaps = [
        " to ".join(str(dt.datetime.fromtimestamp(s, dt.UTC).date()) for s in gap)
        for gap in history.gaps()
    ]  # fmt: skip
    return f"the history is from {first} to {last}" + (f", without {' and '.join(gaps)}" if gaps else "")


def _rate(pool: Pool, wanted: Wanted, count: int) -> Range | Unknown:
    """How often a job of several instances is interrupted: any one of them may be reclaimed."""
    if wanted.reclaims_per_day is not None:
        own = wanted.reclaims_per_day / HOURS_PER_DAY * count
        return Range(own, own, own, OWN_RATE, "as given")
    found = reclaims_per_h(pool.instance, pool.region)
    if isinstance(found, Unknown):
        return found
    return Range(found.low * count, found.middle * count, found.high * count, found.evidence, found.note)


def _problem(spot: float, on_demand: float, day: dt.date) -> tuple[str, str] | None:
    if math.isnan(spot):
        return f"no spot offer on {day}", "another date, or your own history"
    if not math.isnan(on_demand) and spot >= on_demand:
        return "spot is not below on-demand there", "a later price"
    return None


def _counted(why: Sequence[tuple[str, str, str]]) -> tuple[Refused, ...]:
    """Refusals with the same reason as one line."""
    counts = Counter(why)
    return tuple(
        Refused(f"{instance}, {number} {'zone' if number == 1 else 'zones'}", reason, instead)
        for (instance, reason, instead), number in sorted(counts.items())
    )
