"""What does a plan of regions show? The front with dollars, carbon and zones, what it beats, and what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuledger.encode import encode
from gpuledger.plan.outcome import UsdRange
from gpuledger.plan.regions.statement import RegionOption, RegionsPlan
from gpuledger.plan.regions.words import kilograms
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Bullets, Chart, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.plan_sections import closing_sections, refused_few
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, gpus, usd
from gpuledger.units import Range, Unknown

ALL = 1_000
SCREEN_BEATEN = 5


@document_for(RegionsPlan)
def regions_document(plan: RegionsPlan) -> Document:
    """The document of a plan of regions."""
    front, data = front_table(plan), encode("regions", plan)
    charts: list[Block] = [Chart(name, plan) for name in chart_names("regions", "front")]
    beaten = beaten_table(plan.runners_up)
    moving = f", {plan.data_gib:,.0f} GiB of data" if plan.data_gib else ""
    return Document(
        name="regions",
        kind="Plan of regions",
        title="Where to run: dollars, carbon, zones",
        headline=plan.headline,
        notes=[*(Prose(words, "warning") for words in plan.warnings), Prose(plan.next_to_audit, "dim")],
        screen_notes=False,
        facts=[
            f"{gpus(plan.gpus)}: {' or '.join(plan.gpu_names)}", f"{amount(f'{float(plan.hours):,g}', 'hour')}{moving}",
            plan.purchase, *([f"in {' or '.join(plan.allowed)}"] if plan.allowed else []),
            f"prices of {plan.prices_dated}",
        ],
        figures=key_figures(plan),
        summary=[*charts, front],
        sections=[
            Section("beaten", "Regions another one beats", [beaten]),
            Section("costs", "What the dollars are made of", [costs_table(plan)]),
            *closing_sections(plan, data),
            Section("sources", "Sources", [Bullets(_sources(plan))]),
        ],
        screen=[
            *([Bullets(plan.warnings, "Check first")] if plan.warnings else []),
            replace(front, screen_rows=ALL),
            *([replace(beaten, screen_rows=SCREEN_BEATEN)] if plan.runners_up else []),
            *refused_few(plan.refused),
            Prose(f"Prices of {plan.prices_dated}. Carbon is that of the GPU boards. --full has the sources.", "dim"),
            Prose(plan.next_to_audit, "dim"),
        ],
        data=lambda: data,
        main_table="chosen",
    )  # fmt: skip


def key_figures(plan: RegionsPlan) -> list[KeyFigure]:
    """The best of the front in each respect."""
    cheapest = plan.chosen[0]
    made = [KeyFigure("Cheapest", usd(cheapest.usd.middle_usd, 0), span(cheapest.usd), cheapest.name)]
    known = [(c.kg_co2e, c) for c in plan.chosen if not isinstance(c.kg_co2e, Unknown)]
    if known:
        kg, cleanest = min(known, key=lambda pair: pair[0].middle)
        between = f"{kilograms(kg.low)} to {kilograms(kg.high)}"
        made.append(KeyFigure("Least carbon", f"{kilograms(kg.middle)} CO2e", between, cleanest.name))
    most = max(plan.chosen, key=lambda c: (c.zones, -c.usd.middle_usd))
    made.append(KeyFigure("Most zones", str(most.zones), "", most.name))
    return made


def span(value: UsdRange) -> str:
    """The range of an amount; empty where it is one number."""
    low, high = usd(value.low_usd, 0), usd(value.high_usd, 0)
    return "" if low == high else f"{low} to {high}"


def carbon(value: Range | Unknown) -> Cell:
    """Carbon of the job."""
    return cell("unknown", value) if isinstance(value, Unknown) else cell(kilograms(value.middle), value.middle)


def _carbon_range(value: Range | Unknown) -> str:
    """Both ends; their unit once where it is the same, as the table is wide."""
    if isinstance(value, Unknown):
        return ""
    low, high = kilograms(value.low), kilograms(value.high)
    return f"{low.removesuffix(high[high.index(' ') :])} to {high}"


def _instance(option: RegionOption) -> str:
    return f"{option.instances} x {option.instance}"


def front_table(plan: RegionsPlan) -> Table:
    """The regions that no other one beats."""
    rows: list[Row] = [
        [
            c.name, cell(c.country or "unknown"), figure(c.usd.middle_usd, lambda v: usd(v, 0)), span(c.usd),
            carbon(c.kg_co2e), _carbon_range(c.kg_co2e), cell(str(c.zones), c.zones),
            cell(str(c.spot_zones), c.spot_zones), _instance(c), f"{c.as_of}{' (old)' if c.stale else ''}",
        ]
        for c in plan.chosen
    ]  # fmt: skip
    heads = (
        "Region",
        "Country",
        "Dollars",
        "Range",
        "CO2e",
        "CO2e range",
        "Zones",
        "Spot zones",
        "Instances",
        "Price of",
    )
    note = "Not beaten: no other region is at least as good in dollars, carbon and zones and better in one of them."
    caption = "The front: which one depends on what matters to you"
    return make_table("front", caption, heads, "wwnNnNnNwW", rows, note=note, screen_rows=ALL)


def beaten_table(options: Sequence[RegionOption]) -> Table:
    """The other regions, each with one on the front that beats it."""
    rows: list[Row] = [
        [
            c.name, cell(c.country or "unknown"), figure(c.usd.middle_usd, lambda v: usd(v, 0)), carbon(c.kg_co2e),
            cell(str(c.zones), c.zones), c.dominated_by,
        ]
        for c in options
    ]  # fmt: skip
    heads = ("Region", "Country", "Dollars", "CO2e", "Zones", "Beaten by")
    empty = "No candidate is beaten."
    return make_table("beaten", "Beaten by a region on the front", heads, "wwnnnw", rows, empty=empty, screen_rows=ALL)


def costs_table(plan: RegionsPlan) -> Table:
    """Parts of the dollars, energy and grid of the front."""
    rows: list[Row] = []
    for c in plan.chosen:
        pue = f"{c.pue:g}{'' if c.pue_own else ' (average)'}"
        parts = [figure(part, lambda v: usd(v, 0)) for part in (c.compute_usd, c.moving_usd, c.storage_usd)]
        grid = figure(c.g_per_kwh.middle if isinstance(c.g_per_kwh, Range) else c.g_per_kwh, lambda v: f"{v:,.0f}")
        who = "" if isinstance(c.g_per_kwh, Unknown) else c.g_per_kwh.note
        rows.append([c.name, *parts, figure(c.energy_kwh, lambda v: f"{v:,.0f}"), pue, grid, who])
    heads = ("Region", "Compute", "Moving data", "Storage", "kWh", "PUE", "g/kWh", "Grid figures of")
    return make_table("costs", "Dollars, energy and grid on the front", heads, "wnnnnnnw", rows, screen_rows=ALL)


def _sources(plan: RegionsPlan) -> list[str]:
    from gpuledger.catalog.regions import facts

    known = facts()
    grids = [f"{name}: {s.words}; {s.where}, {s.as_of}" for name, s in known.sources.items()]
    mine = plan.data_at.partition(":")[0]
    moving = [f"Moving data, {m.cloud} ({m.path}): {m.source}, {m.as_of}" for m in known.moving if m.cloud == mine]
    pue = [f"PUE, {name}: {p.source}, {p.as_of}" for name, p in known.pue.items()]
    return [f"Prices: {plan.price_source}", *moving, *grids, *pue]
