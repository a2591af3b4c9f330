"""How much energy and carbon was that in each hour, region by region?

The energy of a charge is spread over the hours its owner's readings show on that device, so the hours add up to the
window. Without an hourly file every hour of a region carries the grid's yearly average.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from gpuledger.catalog.regions import Place
from gpuledger.cost import figures
from gpuledger.cost.charges import Charge
from gpuledger.cost.emissions.factors import Factor, factor_of
from gpuledger.cost.emissions.hourly import HourlyIntensity
from gpuledger.cost.emissions.readings import Readings
from gpuledger.cost.emissions.statement import HourEnergy
from gpuledger.units import MS_PER_HOUR, Range, Unknown


def energy_by_hour(
    charges: Sequence[Charge],
    readings: Readings,
    place_of: Callable[[Charge], Place | Unknown],
    hours: HourlyIntensity | None,
) -> tuple[HourEnergy, ...]:
    """Each hour and place that energy was drawn in, in order."""
    drawn: dict[tuple[int, str], float] = defaultdict(float)
    places: dict[str, Place | Unknown] = {}
    for charge in charges:
        place = place_of(charge)
        name = charge.device.region or "no region" if isinstance(place, Unknown) else place.name
        places[name] = place
        for at, kwh in _spread(charge, readings).items():
            drawn[at, name] += kwh
    factors: dict[tuple[int, str], Factor | Unknown] = {}
    for at, name in drawn:
        key = (at, name) if hours else (0, name)
        if key not in factors:
            factors[key] = factor_of(places[name], hours, {at: 1} if hours else None)
    return tuple(
        HourEnergy(at, name, kwh, _carbon(factors[(at, name) if hours else (0, name)], kwh))
        for (at, name), kwh in sorted(drawn.items())
    )


def _carbon(factor: Factor | Unknown, kwh: float) -> Range | Unknown:
    return factor if isinstance(factor, Unknown) else factor.kg(kwh)


def _spread(charge: Charge, readings: Readings) -> Mapping[int, float]:
    """The kWh of a charge by hour, as its holder's readings within its stay divide it."""
    kwh, stay = charge.sums.get("energy_mj", 0) / figures.MJ_PER_KWH, charge.stay.segment
    read = readings.drawn(charge) or {}
    within = {at: mj for at, mj in read.items() if at + MS_PER_HOUR > stay.start_ms and at < stay.end_ms}
    whole = sum(within.values())
    return {at: kwh * mj / whole for at, mj in within.items()} if whole else {}
