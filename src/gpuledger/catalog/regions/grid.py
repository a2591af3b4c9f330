"""How much carbon does a kWh of a grid carry, and how much power does a cloud's building add?

Publishers differ in method: Ember counts the life cycle of plants and fuel, Google and the EPA what plants emit. The
first figure of a grid is calculated with; the others make its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from gpuledger.catalog.regions import Place, Pue, facts, read_rows
from gpuledger.units import Range, Unknown

ANY = "any"


@cache
def _grids() -> Mapping[str, Range]:
    found: dict[str, list[tuple[float, str]]] = {}
    for row in read_rows("grids.csv"):
        words = f"{row['source']} {row['year']} ({row['of']})"
        found.setdefault(row["grid"], []).append((float(row["g_per_kwh"]), words))
    made = {}
    for grid, figures in found.items():
        values = [value for value, _ in figures]
        made[grid] = Range(min(values), values[0], max(values), "published", "; ".join(w for _, w in figures))
    return MappingProxyType(made)


def g_per_kwh(place: Place | Unknown) -> Range | Unknown:
    """Grams of CO2e per kWh of the grid of a place; `note` names the publishers and years."""
    if isinstance(place, Unknown):
        return place
    return _grids().get(place.grid) or Unknown(f"no publisher has a figure for the grid {place.grid}")


def pue_of(cloud: str) -> tuple[Pue, bool]:
    """The power usage effectiveness of a cloud, and whether it is the cloud's own: else the average of all sites."""
    own = facts().pue.get(cloud.casefold())
    return (own, True) if own else (facts().pue[ANY], False)
