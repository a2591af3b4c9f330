"""What did each owner draw and emit, next to what it paid?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from gpuledger.arguments import takes
from gpuledger.catalog.regions import Place
from gpuledger.cost import figures
from gpuledger.cost.build import Terms, statement_and_bill
from gpuledger.cost.charges import Charge, grouped
from gpuledger.cost.dies import SHARED_MS
from gpuledger.cost.emissions.by_hour import energy_by_hour
from gpuledger.cost.emissions.factors import Factor, factor_of
from gpuledger.cost.emissions.hourly import HourlyIntensity, read_hourly
from gpuledger.cost.emissions.places import Whereabouts
from gpuledger.cost.emissions.readings import Readings, read_readings
from gpuledger.cost.emissions.statement import EnergyRow, EnergyStatement, RegionEnergy
from gpuledger.cost.grouping import parts_of, row_of
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.judged import at_least, known_waste
from gpuledger.cost.teams import Config
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.owners import By, dimension, named_by
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import Range, Unknown

NOWHERE = Unknown("no energy was recorded at a known place")


@dataclass(frozen=True)
class Placing:
    """Where the GPUs are, as far as samples and inventory leave it open, and the intensity by hour if it is known.

    `by_hour`: whether the hours are asked for, each with its energy and carbon.
    """

    cloud: str = ""
    at: str = ""
    hours: HourlyIntensity | None = None
    by_hour: bool = False


def placing(cloud: str = "", at: str = "", carbon_file: Path | None = None) -> Placing:
    """Where GPUs are and what their energy carries, as users write it; an error names what is unknown."""
    Whereabouts(None, cloud, at)  # an unknown name fails before anything runs
    return Placing(cloud, at, read_hourly(carbon_file) if carbon_file else None)


@dataclass(frozen=True)
class Emitted:
    """Charges with their places and factors."""

    where: Whereabouts
    hours: HourlyIntensity | None
    readings: Readings | None
    _factors: dict[object, Factor | Unknown] = field(default_factory=dict)

    def place(self, charge: Charge) -> Place | Unknown:
        """Where its device is."""
        return self.where.of(charge.device)

    def factor(self, charge: Charge, hours: Mapping[int, int] | None = None) -> Factor | Unknown:
        """What a kWh of it carries; `hours`: its energy by hour, else over the whole window."""
        place = self.place(charge)
        drawn = hours
        if drawn is None and self.readings is not None:
            drawn = self.readings.drawn(charge)
        if self.hours is not None:
            return factor_of(place, self.hours, drawn)
        if place not in self._factors:
            self._factors[place] = factor_of(place)
        return self._factors[place]


def emitted(lake: Lake, scope: Scope, stock: Inventory | None, placing: Placing) -> Emitted:
    """Places and factors of a window. `stock`: its inventory."""
    where = Whereabouts(stock, placing.cloud, placing.at)
    wanted = placing.hours or placing.by_hour
    readings = read_readings(Books(lake, scope), hourly=True) if wanted else None
    return Emitted(where, placing.hours, readings)


@takes(Terms)
def energy_statement(
    lake: Lake, scope: Scope | None = None, placing: Placing | None = None, **terms: Unpack[Terms]
) -> EnergyStatement:
    """Energy, carbon and dollars of a window; the ledger must be posted. `by` is namespace unless named."""
    wanted, placed = scope or Scope(), placing or Placing()
    by = dimension(terms.get("by") or By.NAMESPACE)
    terms["inventory"] = stock = inventory_of(lake, terms.get("inventory"))
    terms["by"], terms["previous"] = by, False
    statement, bill = statement_and_bill(lake, wanted, **terms)
    found = emitted(lake, wanted, stock, placed)
    teams = terms.get("teams") or Config()
    charges = bill.charges
    owners = grouped(charges, lambda c: named_by(by, c.labels, owned=c.owned, team_of=teams.set_team))
    rows = [_row(name, members, found) for name, members in owners.items()]
    regions = grouped(charges, found.place)
    places = [_region(place, members, found) for place, members in regions.items()]
    fleet = _row("fleet", charges, found)
    made = EnergyStatement(
        statement.start_ms, statement.end_ms, fleet, by, tuple(sorted(rows, key=_most_first)),
        tuple(sorted(places, key=lambda r: (-_known(r.energy_kwh), r.name))),
        tuple(_assumptions(fleet, places, shared=any(c.sums.get(SHARED_MS) for c in charges))),
    )  # fmt: skip
    if found.readings is not None:
        made = replace(made, by_hour=energy_by_hour(charges, found.readings, found.place, placed.hours))
    if placed.hours is None:
        return made
    return replace(made, carbon_file=placed.hours.path, by_hour_pct=_by_hour(charges, found))


def _row(name: str, members: Sequence[Charge], found: Emitted) -> EnergyRow:
    money = row_of(name, parts_of(members))
    paid = money.dollars if isinstance(money.dollars, Unknown) else money.dollars.paid_usd
    carbon, unplaced = carbon_of(members, found)
    drew = {c.device.gpu_uuid for c in members if c.sums.get("energy_ms", 0)}
    return EnergyRow(
        name,
        figures.boards(members),
        money.times.paid_h,
        paid,
        known_waste(money.dollars),
        figures.energy_kwh(members),
        carbon,
        unplaced,
        unpriced_gpus=figures.boards(c for c in members if c.dollars is None),
        unmetered_gpus=figures.boards(members) - len(drew),
        waste_at_least=at_least(money.dollars),
    )


def carbon_of(members: Sequence[Charge], found: Emitted) -> tuple[Range | Unknown, float]:
    """The carbon of some charges, and the energy that has no known place."""
    parts: list[Range] = []
    unplaced, why = 0.0, NOWHERE
    for charge in members:
        drawn = charge.sums.get("energy_mj", 0) / figures.MJ_PER_KWH
        if not charge.sums.get("energy_ms", 0):
            continue
        factor = found.factor(charge)
        if isinstance(factor, Unknown):
            unplaced, why = unplaced + drawn, factor
        else:
            parts.append(factor.kg(drawn))
    if not parts:
        energy = figures.energy_kwh(members)
        return energy if isinstance(energy, Unknown) else why, unplaced
    low, middle, high = (sum(getattr(p, end) for p in parts) for end in ("low", "middle", "high"))
    return Range(low, middle, high, parts[0].evidence, "; ".join(dict.fromkeys(p.note for p in parts))), unplaced


def _region(place: Place | Unknown, members: Sequence[Charge], found: Emitted) -> RegionEnergy:
    kwh, boards, (carbon, _) = figures.energy_kwh(members), figures.boards(members), carbon_of(members, found)
    factor = factor_of(place)
    label = members[0].device.region or "no region"
    name = f"{label} (place unknown)" if isinstance(place, Unknown) else place.name
    country = "" if isinstance(place, Unknown) else place.country.name
    if isinstance(factor, Unknown):
        return RegionEnergy(name, country, boards, kwh, factor, factor, False, carbon, factor.why)
    grams, pue = factor.g_per_kwh, factor.pue
    if found.hours is not None and isinstance(carbon, Range) and not isinstance(kwh, Unknown) and kwh:
        low, middle, high = (getattr(carbon, e) * 1000 / kwh / getattr(pue, e) for e in ("low", "middle", "high"))
        grams = Range(low, middle, high, carbon.evidence, carbon.note)
    words = carbon.note if isinstance(carbon, Range) else factor.words
    return RegionEnergy(name, country, boards, kwh, grams, pue.middle, factor.pue_own, carbon, words)


def _by_hour(charges: Sequence[Charge], found: Emitted) -> float | Unknown:
    parts = [(c.sums.get("energy_mj", 0), found.factor(c)) for c in charges]
    placed = [(mj, f) for mj, f in parts if isinstance(f, Factor)]
    whole = sum(mj for mj, _ in placed)
    return 100 * sum(mj * f.by_hour_ratio for mj, f in placed) / whole if whole else NOWHERE


def _known(value: float | Unknown) -> float:
    return 0.0 if isinstance(value, Unknown) else value


def _most_first(row: EnergyRow) -> tuple[float, str]:
    return -_known(row.energy_kwh), row.name


def _assumptions(fleet: EnergyRow, places: Sequence[RegionEnergy], *, shared: bool) -> Iterator[str]:
    yield "energy is that of the GPU boards as recorded: hosts, network and storage are not in it"
    if shared:
        yield "the first die of a board reports the energy of all its dies: each counts an equal part, busy or not"
    yield "carbon is energy x PUE of the cloud x carbon intensity of the region's grid; location-based"
    if any(not p.pue_own and isinstance(p.pue, float) for p in places):
        yield "clouds that publish no PUE take the average of all operators"
    if fleet.unplaced_kwh:
        yield f"{fleet.unplaced_kwh:,.1f} kWh have no known place: no carbon figure holds them"
