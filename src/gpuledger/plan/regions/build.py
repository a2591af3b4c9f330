"""Which regions can run the job, which of them does no other one beat, and why are the others out?"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuledger.catalog.files import fold
from gpuledger.catalog.prices import source
from gpuledger.catalog.prices.offers import Offer
from gpuledger.catalog.regions import Place, find_place, places
from gpuledger.catalog.regions.moving import Money
from gpuledger.errors import InputError
from gpuledger.plan.market import MarketOption, market_options
from gpuledger.plan.outcome import Refused
from gpuledger.plan.regions.asked import Asked, Residency
from gpuledger.plan.regions.costing import costed, moved
from gpuledger.plan.regions.front import Point, beaten_by
from gpuledger.plan.regions.statement import Reason, RefusedRegion, RegionOption, RegionsPlan
from gpuledger.plan.regions.words import (
    NEXT_TO_AUDIT,
    assumptions,
    headline,
    how_many,
    refused_words,
    warnings,
    what_next,
)
from gpuledger.units import Unknown, count

Where = tuple[str, str]


def plan_regions(
    asked: Asked, *, today: dt.date, own: Sequence[Offer] = (), listed: Iterable[Offer] | None = None
) -> RegionsPlan:
    """The plan for a question. `own`: rates of the user; `listed`: other offers than the shipped ones."""
    market = market_options(purchase=asked.purchase, own=own, listed=listed)
    options = [o for o in market if _named(asked.residency, o)]
    mine = [o for o in options if o.gpu in asked.gpus]
    refused: list[RefusedRegion] = list(_without_offer(options, mine))
    candidates: list[RegionOption] = []
    for where, there in _by_region(mine).items():
        found = _candidates(asked, where, there, today)
        if isinstance(found, Reason):
            place = find_place(*where)
            country = "" if isinstance(place, Unknown) else place.country.code
            refused.append(RefusedRegion(":".join(where), country, found))
        else:
            candidates += found
    reasons = refused_words(asked, refused)
    if not candidates:
        raise InputError(_nothing(asked, refused), hint=what_next(asked, reasons))
    return _plan(asked, _ranked(candidates), reasons, refused)


def _named(residency: Residency, option: MarketOption) -> bool:
    """Whether a cloud and region is among those named; all are where none is named."""
    if residency.clouds and fold(option.cloud) not in residency.clouds:
        return False
    names = {(fold(p.cloud), fold(p.region)) for p in residency.regions}
    return not names or (fold(option.cloud), fold(option.region)) in names


def _without_offer(options: Sequence[MarketOption], mine: Sequence[MarketOption]) -> Iterator[RefusedRegion]:
    """Regions that list other GPUs only."""
    have = {(o.cloud, o.region) for o in mine}
    for cloud, region in sorted({(o.cloud, o.region) for o in options} - have):
        place = places().get((fold(cloud), fold(region)))
        yield RefusedRegion(f"{cloud}:{region}", place.country.code if place else "", Reason.NO_OFFER)


def _by_region(options: Iterable[MarketOption]) -> dict[Where, list[MarketOption]]:
    found: dict[Where, list[MarketOption]] = {}
    for option in options:
        found.setdefault((option.cloud, option.region), []).append(option)
    return found


def _candidates(
    asked: Asked, where: Where, options: Sequence[MarketOption], today: dt.date
) -> list[RegionOption] | Reason:
    """The cheapest instance type for each GPU in one region, or why there is none."""
    place = find_place(*where)
    if (outside := _outside(asked.residency, place)) is not None:
        return outside
    data: Money | Unknown = moved(asked, *where, place)
    if isinstance(data, Unknown):
        return Reason.MOVING_UNKNOWN
    large = [o for o in options if o.gpus >= asked.per_instance]
    if not large:
        return Reason.SMALL_INSTANCES
    made = [c for o in large if (c := costed(asked, o, place, data, today)) is not None]
    if not made:
        return Reason.PRICE_UNKNOWN
    enough = [c for c in made if c.zones >= asked.min_zones]
    if not enough:
        return Reason.FEW_ZONES
    best: dict[str, RegionOption] = {}
    for one in sorted(enough, key=lambda c: (c.usd.middle_usd, -c.zones, c.instance)):
        best.setdefault(one.gpu, one)
    return list(best.values())


def _outside(residency: Residency, place: Place | Unknown) -> Reason | None:
    if not residency.areas:
        return None
    if isinstance(place, Unknown):
        return Reason.PLACE_UNKNOWN
    return None if any(place.country.within(area) for area in residency.areas) else Reason.RESIDENCY


def figures(option: RegionOption) -> Point:
    """What regions are compared by, lower is better: dollars, carbon, and zones with a minus."""
    kg = option.kg_co2e
    return option.usd.middle_usd, None if isinstance(kg, Unknown) else kg.middle, -option.zones


def _ranked(candidates: Sequence[RegionOption]) -> list[RegionOption]:
    """All candidates, cheapest first, each with its place: on the front, or beaten by a region on it."""
    order = sorted(candidates, key=lambda c: (c.usd.middle_usd, c.cloud, c.region, c.gpu))
    beaten = beaten_by([figures(c) for c in order])
    return [
        replace(c, on_front=by is None, dominated_by="" if by is None else order[by].name)
        for c, by in zip(order, beaten, strict=True)
    ]


def _plan(
    asked: Asked, ranked: Sequence[RegionOption], reasons: Sequence[Refused], refused: Sequence[RefusedRegion]
) -> RegionsPlan:
    front = [c for c in ranked if c.on_front]
    dates = sorted({c.as_of.isoformat() for c in ranked})
    return RegionsPlan(
        headline=headline(asked, ranked),
        gpus=asked.count,
        gpu_names=tuple(g.name for g in asked.gpus),
        hours=asked.hours,
        purchase=asked.purchase,
        data_gib=asked.billed_gb,
        data_at=asked.data_at.name if asked.data_at else "",
        chosen=front,
        runners_up=[c for c in ranked if not c.on_front],
        refused=reasons,
        refused_regions=refused,
        assumptions=assumptions(asked, ranked),
        prices_dated=dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        price_source=source(),
        carbon_unknown=sum(isinstance(c.kg_co2e, Unknown) for c in ranked),
        warnings=warnings(asked, ranked),
        allowed=asked.residency.areas,
        next_to_audit=NEXT_TO_AUDIT,
    )


def _nothing(asked: Asked, refused: Sequence[RefusedRegion]) -> str:
    names = ", ".join(g.name for g in asked.gpus)
    counts = Counter(one.reason for one in refused)
    why = ", ".join(how_many(reason, number) for reason, number in counts.items())
    more = f": of {count(len(refused), 'region')}, {why}" if why else ""
    return f"no region can run {asked.count} x {names} ({asked.purchase}){more}"
