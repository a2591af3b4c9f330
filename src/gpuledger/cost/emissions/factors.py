"""How many grams of CO2e does a kWh of a device carry, and how much does the building add?

Yearly averages of the grid, or the hours of a file: then the mean over the hours the energy was drawn in, weighted by
energy; an hour that the file lacks takes the yearly average, and how much that is gets reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuledger.catalog.regions import Place
from gpuledger.catalog.regions.grid import g_per_kwh, pue_of
from gpuledger.cost.emissions.hourly import HourlyIntensity
from gpuledger.units import MS_PER_HOUR, Range, Unknown


@dataclass(frozen=True)
class Factor:
    """What a kWh at the board comes to.

    `pue_own`: whether the cloud publishes a PUE of its own. `by_hour_ratio`: the share of the energy that the hourly
    file covers.
    """

    g_per_kwh: Range
    pue: Range
    pue_own: bool = True
    by_hour_ratio: float = 0.0

    def kg(self, energy_kwh: float) -> Range:
        """Kilograms of CO2e of energy drawn by boards, with the building's share."""
        low, middle, high = (
            energy_kwh * getattr(self.pue, end) * getattr(self.g_per_kwh, end) / 1000
            for end in ("low", "middle", "high")
        )
        return Range(low, middle, high, self.g_per_kwh.evidence, self.words)

    @property
    def words(self) -> str:
        """What it rests on."""
        return f"{self.g_per_kwh.note}; PUE {self.pue.middle:g} ({self.pue.note})"


def factor_of(
    place: Place | Unknown, hours: HourlyIntensity | None = None, drawn: Mapping[int, int] | None = None
) -> Factor | Unknown:
    """The factor of a place; `drawn`: energy by the start of each hour, for the weights of an hourly file."""
    if isinstance(place, Unknown):
        return place
    pue, own = pue_of(place.cloud)
    building = Range(pue.low, pue.middle, pue.high, "published", place.cloud if own else "average of all operators")
    yearly = g_per_kwh(place)
    found = hours.of(place) if hours else {}
    if not found or not drawn:
        return yearly if isinstance(yearly, Unknown) else Factor(yearly, building, own)
    whole = sum(drawn.values())
    known = {at: mj for at, mj in drawn.items() if at // MS_PER_HOUR * MS_PER_HOUR in found}
    covered = sum(known.values())
    if not whole or (covered < whole and isinstance(yearly, Unknown)):
        why = "no energy was recorded" if not whole else f"the file lacks hours of {place.name}, and so do the facts"
        return Unknown(why)
    ratio = covered / whole
    hourly = sum(mj * found[at // MS_PER_HOUR * MS_PER_HOUR] for at, mj in known.items()) / whole
    rest = (0.0, 0.0, 0.0) if isinstance(yearly, Unknown) else (yearly.low, yearly.middle, yearly.high)
    low, middle, high = (hourly + (1 - ratio) * end for end in rest)
    note = "hourly file" if isinstance(yearly, Unknown) or ratio == 1 else f"hourly file, rest {yearly.note}"
    return Factor(Range(low, middle, high, "hourly", note), building, own, ratio)
