"""How is a plan of regions put into words: its headline, its assumptions, what was refused?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from gpuledger.catalog.regions import countries, facts
from gpuledger.plan.outcome import Refused
from gpuledger.plan.regions.asked import Asked
from gpuledger.plan.regions.statement import Reason, RefusedRegion, RegionOption
from gpuledger.units import Unknown, count

NAMED = 4
NEXT_TO_AUDIT = (
    "Next to the audit: it compares no regions, so none of this is in its saving. In a cheaper region the audit's "
    "dollars shrink with the prices: do not add the two."
)
NEXT = {
    Reason.NO_OFFER: "another GPU",
    Reason.RESIDENCY: "allow more countries or unions",
    Reason.PLACE_UNKNOWN: "drop the residency rule, or ask the cloud where it is",
    Reason.PRICE_UNKNOWN: "another cloud, or a newer price list",
    Reason.MOVING_UNKNOWN: "give moving_usd_per_gb=DOLLARS, the price of moving the data",
    Reason.SMALL_INSTANCES: "fewer GPUs per instance",
    Reason.FEW_ZONES: "fewer zones",
}


def headline(asked: Asked, ranked: Sequence[RegionOption]) -> str:
    """The front in a sentence: who is cheapest, who is cleanest, who has most zones."""
    front = [c for c in ranked if c.on_front]
    cheapest = front[0]
    old = f" (an old price, of {cheapest.as_of})" if cheapest.stale else ""
    parts = [f"cheapest {_name(asked, cheapest)} at ${cheapest.usd.middle_usd:,.0f}{old}"]
    known = [(c.kg_co2e.middle, c) for c in front if not isinstance(c.kg_co2e, Unknown)]
    if known:
        kg, cleanest = min(known, key=lambda pair: (pair[0], pair[1].usd.middle_usd))
        parts.append(f"least carbon {_name(asked, cleanest)} with {kilograms(kg)} CO2e at "
                     f"${cleanest.usd.middle_usd:,.0f}")  # fmt: skip
    most = max(front, key=lambda c: (c.zones, -c.usd.middle_usd))
    parts.append(f"most zones {_name(asked, most)} with {most.zones}")
    if len(ranked) == 1:
        return f"Only {_name(asked, cheapest)} is left, at ${cheapest.usd.middle_usd:,.0f}{old}."
    whose = "is" if len(front) == 1 else "are"
    return f"{len(front)} of {len(ranked)} candidates {whose} not beaten by another: {'; '.join(parts)}."


def _name(asked: Asked, option: RegionOption) -> str:
    return f"{option.name} ({option.gpu})" if len(asked.gpus) > 1 else option.name


def kilograms(kg: float) -> str:
    """Carbon in the unit that keeps the number short."""
    if kg >= 10_000:
        return f"{kg / 1000:,.1f} t"
    return f"{kg:,.{0 if kg >= 100 else 1 if kg >= 10 else 2}f} kg"


def refused_words(asked: Asked, refused: Sequence[RefusedRegion]) -> list[Refused]:
    """What was refused, by reason; the regions themselves are listed one by one in the plan."""
    out = []
    for reason in Reason:
        names = [r.region for r in refused if r.reason is reason]
        if not names:
            continue
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        out.append(Refused(f"{', '.join(names[:NAMED])}{more}", _why(asked, reason), NEXT[reason]))
    return out


def _why(asked: Asked, reason: Reason) -> str:
    names = " or ".join(g.name for g in asked.gpus)
    allowed = " or ".join(asked.residency.areas)
    return {
        Reason.NO_OFFER: f"the price lists have no {asked.purchase} offer of {names} there",
        Reason.RESIDENCY: f"not in {allowed}",
        Reason.PLACE_UNKNOWN: f"no source names the country, so it cannot be shown to be in {allowed}",
        Reason.PRICE_UNKNOWN: "the price of the whole instance is unknown",
        Reason.MOVING_UNKNOWN: f"what {asked.data_at.name if asked.data_at else ''} charges for data that goes there "
        "is unknown",
        Reason.SMALL_INSTANCES: f"no instance type there has {asked.per_instance} or more of the GPU",
        Reason.FEW_ZONES: f"fewer than {asked.min_zones} zones list it",
    }[reason]


def what_next(asked: Asked, reasons: Sequence[Refused]) -> str:
    """What to change so that something is left."""
    steps = list(dict.fromkeys(r.instead for r in reasons if r.why != _why(asked, Reason.NO_OFFER)))
    return "try: " + "; or ".join(steps or [NEXT[Reason.NO_OFFER]])


def assumptions(asked: Asked, ranked: Sequence[RegionOption]) -> list[str]:
    """What the plan rests on."""
    low, middle, high = (round(100 * share) for share in asked.load)
    load = (
        f"{middle} % of board power" if asked.load_given else f"{middle} % of board power ({low} to {high} %; assumed)"
    )
    out = [
        f"Whole instances for {float(asked.hours):g} h, all in one region, at the price of its cheapest zone.",
        "The high end of the dollars is the most expensive zone of the region.",
        "Zones are those in which the price lists have the instance type. A listing does not promise capacity.",
        f"Carbon: GPU boards at {load}, times the PUE of the cloud, times the yearly average of the grid.",
        "Hosts, network, storage, manufacturing and certificates that a cloud buys are not in the carbon.",
        "Publishers of grid figures differ in method (Ember: life cycle; Google and EPA: emissions of plants).",
        "Country grids use Ember, smaller grids Google, else EPA; the range covers all of them.",
        "Residency is where the machines are. Who operates them, and under which law, is not checked.",
        "A region whose carbon is unknown is compared on dollars and zones only, and does not beat one that is known.",
    ]
    averaged = sorted({c.cloud for c in ranked if not c.pue_own})
    if averaged:
        pue = facts().pue["any"]
        out.append(f"No PUE is published for {', '.join(averaged)}: {pue.middle} is used, the {pue.source}.")
    return out + _of_data(asked) + _of_gpus(asked, ranked)


def _of_data(asked: Asked) -> list[str]:
    if not asked.billed_gb:
        return ["No data has to be moved (data is 0)."]
    how = f"every month ({count(asked.months, 'month')})" if asked.moves == "monthly" else "once"
    gb = f"{asked.billed_gb:,.0f} GB as billed (2^30 bytes)"
    if asked.moving_usd_per_gb is not None:
        price = f"at your ${asked.moving_usd_per_gb}/GB"
    elif asked.data_at is None:
        price = "from outside the clouds: coming in is free, what your own provider charges is not in it"
    else:
        cloud = asked.data_at.cloud
        sure = all(m.verified for m in facts().moving if m.cloud == cloud)
        doubt = "" if sure else f" (second-hand: check them with {cloud})"
        price = f"out of {asked.data_at.name} at its listed prices{doubt}; coming in is free"
    return [f"{gb} are moved {how}, {price}. Results that are moved back are not in it."]


def _of_gpus(asked: Asked, ranked: Sequence[RegionOption]) -> list[str]:
    out = []
    most = max(c.instances for c in ranked)
    if most > 1:
        out.append(f"Price lists do not show how many instances a region has: up to {most:,} are taken in one region.")
    if len(asked.gpus) > 1:
        out.append("The job takes the same hours on every GPU named; give one GPU at a time where it does not.")
    if asked.purchase == "spot":
        out.append("Spot instances are taken back at times; lost work and restarts are not in the dollars.")
    return out


def warnings(asked: Asked, ranked: Sequence[RegionOption]) -> list[str]:
    """What a reader of the short answer must not overlook."""
    return [*_old(ranked), *_not_moved(asked), *_spread(asked, ranked), *_not_narrowed(asked)]


def _old(ranked: Sequence[RegionOption]) -> list[str]:
    oldest: dict[str, dt.date] = {}
    for c in ranked:
        if c.stale:
            oldest[c.cloud] = min(c.as_of, oldest.get(c.cloud, c.as_of))
    clouds = ", ".join(f"{cloud} ({day})" for cloud, day in sorted(oldest.items()))
    return [f"Old prices: {clouds}. Check them before you decide."] if clouds else []


def _not_moved(asked: Asked) -> list[str]:
    if not asked.billed_gb or asked.data_at is not None or asked.moving_usd_per_gb is not None:
        return []
    where = "give data_at=CLOUD:REGION, or moving_usd_per_gb=DOLLARS"
    return [f"Moving the data is counted as $0, as it is not known where the data is: {where}."]


def _spread(asked: Asked, ranked: Sequence[RegionOption]) -> list[str]:
    """That the GPUs of one candidate may be in many machines."""
    most = max(c.instances for c in ranked if c.on_front)
    if most == 1 or asked.per_instance > 1:
        return []
    larger = f"per_instance={min(asked.count, 8)} asks for larger ones"
    return [f"The {asked.count} GPUs may be in up to {most:,} machines without a fast network between them: {larger}."]


def _not_narrowed(asked: Asked) -> list[str]:
    """A country within another allowed area does not narrow that one."""
    areas = asked.residency.areas
    known = {country.code.casefold(): country for country in countries().values()}
    named = {a: known.get(a) or next((c for c in known.values() if c.name.casefold() == a), None) for a in areas}
    return [
        f"Any place named is allowed, so {area} does not narrow {wide}: leave {wide} out for {area} alone."
        for area, country in named.items()
        for wide in areas
        if country is not None and wide != area and country.within(wide)
    ]


def how_many(reason: Reason, number: int) -> str:
    """A number of regions that were refused for a reason."""
    have, are = ("has", "is") if number == 1 else ("have", "are")
    return {
        Reason.NO_OFFER: f"{number} {have} no offer",
        Reason.RESIDENCY: f"{number} {are} outside the places allowed",
        Reason.PLACE_UNKNOWN: f"{number} {are} in an unknown country",
        Reason.PRICE_UNKNOWN: f"{number} {have} an unknown price",
        Reason.MOVING_UNKNOWN: f"{number} {have} an unknown price of moving the data there",
        Reason.SMALL_INSTANCES: f"{number} {have} only smaller instances",
        Reason.FEW_ZONES: f"{number} {have} too few zones",
    }[reason]
