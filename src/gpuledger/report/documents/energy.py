"""What does the energy statement show? Dollars, kWh and kg CO2e by owner, and what each region's carbon rests on."""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.catalog.regions import facts, read_rows
from gpuledger.catalog.regions.grid import ANY
from gpuledger.cost.emissions.statement import EnergyRow, EnergyStatement, RegionEnergy
from gpuledger.encode import encode
from gpuledger.plan.regions.words import kilograms
from gpuledger.report.document import Bullets, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.outline import charts_of
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import capital, gpus, instant, loose, number, percent, period, usd, whole
from gpuledger.units import Range, Unknown

NAME = "energy"
ALL = 1_000
HOURS_SHOWN = 24 * 31
UNPLACED = (
    "of energy have no known place, and no carbon figure holds them. Name the cloud of the region labels with --cloud, "
    "or the place of GPUs without a region with --at cloud:region."
)


@document_for(EnergyStatement)
def energy_document(found: EnergyStatement, unplaced: str = UNPLACED) -> Document:
    """The document of an energy statement; `unplaced`: what to do about energy without a place."""
    owners, regions = _owners(found), _regions(found.by_region)
    return Document(
        name=NAME,
        kind="Energy and carbon",
        title="Energy and carbon next to dollars",
        headline=headline(found),
        facts=[period(found.start_ms, found.end_ms), gpus(found.fleet.gpus)],
        notes=_notes(found, unplaced),
        figures=_figures(found.fleet),
        summary=[owners, regions],
        sections=[
            *(
                [Section("hours", "Hour by hour", [*charts_of(NAME, "hours", found), _hours(found)])]
                if found.by_hour
                else []
            ),
            Section("assumptions", "Assumptions", [Bullets([capital(a) for a in found.assumptions])]),
            Section("sources", "Sources", [Bullets(_sources(found))]),
        ],
        screen=[owners, regions],
        data=lambda: encode("energy", found),
        main_table="by_owner",
    )


def _sources(found: EnergyStatement) -> list[str]:
    """Who published the grids' figures, and the PUE of the clouds that are shown."""
    known = facts()
    publishers = dict.fromkeys(row["source"] for row in read_rows("grids.csv"))
    grids = [f"{name}: {known.sources[name].words}; {known.sources[name].where}" for name in publishers]
    clouds = dict.fromkeys(r.name.partition(":")[0] if r.pue_own else ANY for r in found.by_region)
    pue = [f"PUE, {name}: {known.pue[name].source}, {known.pue[name].as_of}" for name in clouds if name in known.pue]
    return [*grids, *pue]


def headline(found: EnergyStatement) -> str:
    """Energy, carbon and dollars of the window in one sentence."""
    fleet = found.fleet
    if isinstance(fleet.energy_kwh, Unknown):
        return f"Energy is unknown: {fleet.energy_kwh.why}."
    paid = "" if isinstance(fleet.paid_usd, Unknown) else f", next to {usd(fleet.paid_usd)} paid"
    paid += f" for {_part(fleet, fleet.unpriced_gpus)}" if paid and fleet.unpriced_gpus else ""
    energy = f"{number(fleet.energy_kwh, _places(fleet.energy_kwh))} kWh drawn by "
    energy += _part(fleet, fleet.unmetered_gpus) if fleet.unmetered_gpus else "the GPUs"
    if isinstance(fleet.carbon_kg, Unknown):
        return f"{energy}{paid}; carbon is unknown: {fleet.carbon_kg.why}."
    placed = fleet.energy_kwh - fleet.unplaced_kwh
    part = f" for the {kwh(placed)} kWh with a known place" if fleet.unplaced_kwh else ""
    return f"{energy}, {kilograms(fleet.carbon_kg.middle)} CO2e{part}{paid}."


def _part(fleet: EnergyRow, without: int) -> str:
    """The GPUs a figure is of, where some have none."""
    return f"{whole(fleet.gpus - without)} of {gpus(fleet.gpus)}"


def _places(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 3


def _notes(found: EnergyStatement, unplaced: str) -> list[Prose]:
    out, fleet = [], found.fleet
    if fleet.unmetered_gpus and not isinstance(fleet.energy_kwh, Unknown):
        out.append(Prose(f"{_report(fleet.unmetered_gpus)} neither energy nor power: in no kWh or CO2e.", "warning"))
    if fleet.unpriced_gpus and not isinstance(fleet.paid_usd, Unknown):
        out.append(Prose(f"{_have(fleet.unpriced_gpus)} no known price: in no dollar figure.", "warning"))
    if found.fleet.unplaced_kwh:
        out.append(Prose(f"{kwh(found.fleet.unplaced_kwh)} kWh {unplaced}", "warning"))
    if found.carbon_file and not isinstance(found.by_hour_pct, Unknown):
        covered = f"{percent(found.by_hour_pct)} of the placed energy takes its carbon from the hours of the file"
        out.append(Prose(f"{covered} {found.carbon_file}; the rest takes yearly averages.", "note"))
    return out


def _report(count: int) -> str:
    return f"{gpus(count)} {'reports' if count == 1 else 'report'}"


def _have(count: int) -> str:
    return f"{gpus(count)} {'has' if count == 1 else 'have'}"


def _figures(fleet: EnergyRow) -> list[KeyFigure]:
    made = []
    if not isinstance(fleet.energy_kwh, Unknown):
        made.append(KeyFigure("Energy", f"{kwh(fleet.energy_kwh)} kWh", "", "GPU boards"))
    if not isinstance(fleet.carbon_kg, Unknown):
        made.append(KeyFigure("Carbon", f"{kilograms(fleet.carbon_kg.middle)} CO2e", _range(fleet.carbon_kg), ""))
    if not isinstance(fleet.paid_usd, Unknown):
        made.append(KeyFigure("Paid", usd(fleet.paid_usd), "", ""))
    return made


def kwh(value: float) -> str:
    """Energy, with as many places as its size needs."""
    return number(value, _places(value))


def _range(value: Range | Unknown) -> str:
    return "" if isinstance(value, Unknown) else f"{kilograms(value.low)} to {kilograms(value.high)}"


def _carbon(value: Range | Unknown, unplaced: float = 0.0) -> Cell:
    if isinstance(value, Unknown):
        return cell("unknown", value)
    return cell(f"{kilograms(value.middle)}{'+' if unplaced else ''}", value.middle)


def _owners(found: EnergyStatement) -> Table:
    rows: list[Row] = [
        [
            name, figure(r.paid_usd, usd), _waste(r), figure(r.energy_kwh, kwh),
            _carbon(r.carbon_kg, r.unplaced_kwh), _range(r.carbon_kg),
        ]
        for name, r in (*((row.name, row) for row in found.by_owner), ("All", found.fleet))
    ]  # fmt: skip
    heads = (capital(found.by.value), "Paid", "Wasted", "kWh", "CO2e", "CO2e range")
    caption = f"Dollars, energy and carbon by {found.by.value}"
    notes = []
    if any(row.waste_at_least for row in found.by_owner):
        notes.append("Wasted with a +: at least that; part of the time is unrated or unobserved.")
    if found.fleet.unplaced_kwh and not isinstance(found.fleet.carbon_kg, Unknown):
        notes.append("CO2e with a +: part of the energy has no known place.")
    return make_table("owners", caption, heads, "wnnnnN", rows, screen_rows=ALL, note=" ".join(notes))


def _waste(row: EnergyRow) -> Cell:
    more = "+" if row.waste_at_least else ""
    return figure(row.waste_usd, lambda amount: f"{usd(amount)}{more}")


def _hours(found: EnergyStatement) -> Table:
    """The hours, the newest first."""
    shown = found.by_hour[::-1][:HOURS_SHOWN]
    rows: list[Row] = [
        [cell(instant(h.start_ms), h.start_ms), h.region, figure(h.energy_kwh, loose), _carbon(h.carbon_kg)]
        for h in shown
    ]
    left = len(found.by_hour) - len(shown)
    note = f"{whole(left)} earlier rows are in the JSON." if left else ""
    heads = ("Hour (UTC)", "Region", "kWh", "CO2e")
    return make_table("hours", "Hours, the newest first", heads, "wwnn", rows, note=note)


def _regions(regions: Sequence[RegionEnergy]) -> Table:
    rows: list[Row] = []
    for r in regions:
        grams = r.g_per_kwh if isinstance(r.g_per_kwh, Unknown) else r.g_per_kwh.middle
        pue = cell("unknown") if isinstance(r.pue, Unknown) else f"{r.pue:g}{'' if r.pue_own else ' (average)'}"
        energy, carbon = figure(r.energy_kwh, kwh), _carbon(r.carbon_kg)
        rows.append([r.name, r.country, energy, figure(grams, number), pue, carbon, r.factor_note])
    heads = ("Region", "Country", "kWh", "g/kWh", "PUE", "CO2e", "Figures of")
    note = "PUE: power of the building over power of its machines. Grid figures are yearly unless a file has hours."
    return make_table("regions", "Regions", heads, "wWnnnnW", rows, note=note, screen_rows=ALL)
