"""What does a comparison of owning and renting show? Every path, when they break even, and what decides it."""

from __future__ import annotations

from decimal import Decimal

from gpuledger.encode import encode
from gpuledger.plan.outcome import UsdRange
from gpuledger.plan.tco.inputs import Basis
from gpuledger.plan.tco.statement import Path, Swing, TcoPlan
from gpuledger.plan.tco.words import number
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Chart, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.plan_sections import closing_sections, dollar_figure, refused_few
from gpuledger.report.tables import Cell, Row, Table, cell, figure, make_table
from gpuledger.report.written import amount, capital, usd
from gpuledger.units import Unknown

ALL = 1_000
SCREEN_SWINGS = 5


@document_for(TcoPlan)
def tco_document(plan: TcoPlan) -> Document:
    """The document of a comparison."""
    data = encode("tco", plan)
    paths, even = paths_table(plan), break_even_table(plan)
    return Document(
        name="tco",
        kind="Own or rent",
        title="Total cost of ownership, compared with renting",
        headline=plan.headline,
        notes=[Prose(plan.next_to_audit, "note")],
        screen_notes=False,
        facts=[
            f"{plan.gpus} x {plan.gpu_name}", amount(str(plan.years), "year"),
            f"{number(round(plan.used_pct, 1))} % used", *_dates(plan),
        ],
        figures=key_figures(plan),
        summary=[paths, *_charts(plan, "summary"), even],
        sections=[
            Section("own", "What owning costs", [lines_table(plan)]),
            Section("sensitivity", "What decides it", [*_charts(plan, "sensitivity"), swings_table(plan)]),
            Section("inputs", "Every input and its source", [inputs_table(plan)]),
            *closing_sections(plan, data),
        ],
        screen=[
            paths, even, _few_swings(plan), *refused_few(plan.refused),
            Prose(f"Purchase price: {plan.purchase_words}. On demand: {plan.price_words}. "
                  "--full has every input with its source.", "dim"),
            Prose(plan.next_to_audit, "dim"),
        ],
        data=lambda: data,
        main_table="lines",
    )  # fmt: skip


def _dates(plan: TcoPlan) -> list[str]:
    """Of when the two prices are."""
    buy, rent = plan.input("purchase_usd"), plan.input("rent_usd")
    return [
        "purchase price given" if buy.basis is Basis.GIVEN else f"purchase price of {buy.as_of}",
        "on-demand price given" if rent.basis is Basis.GIVEN else f"on-demand prices of {plan.prices_dated}",
    ]


def _charts(plan: TcoPlan, section: str) -> list[Block]:
    return [Chart(name, plan) for name in chart_names("tco", section)]


def _usd(value: Decimal) -> str:
    return usd(value, 0)


def _rate(value: Decimal) -> str:
    return usd(value, 2)


def key_figures(plan: TcoPlan) -> list[KeyFigure]:
    """The two totals, and where they meet."""
    made = []
    for name, label in (("own", "Own"), ("on-demand", "On demand")):
        path = plan.path(name)
        if path is not None:
            made.append(_total(label, path))
    rent = plan.path("on-demand")
    if rent is not None:
        month, share = rent.break_even_month, rent.break_even_utilization_pct
        late = isinstance(month, Decimal) and month > plan.months
        note = f"before resale; {plan.months:.1f} are compared" if late else "before resale"
        made.append(_when("Cash breaks even", month, lambda v: f"month {v:.1f}", note))
        made.append(_when("Owning costs less above", share, lambda v: f"{v:.0f} %", "utilization"))
    return made


def _total(label: str, path: Path) -> KeyFigure:
    shown = dollar_figure(label, path.usd)
    if isinstance(path.usd, Unknown):
        return shown
    return KeyFigure(label, _usd(path.usd.middle_usd), _span(path.usd), "over the years")


def _when(label: str, value: Decimal | Unknown | None, form: object, note: str) -> KeyFigure:
    if isinstance(value, Decimal) and callable(form):
        return KeyFigure(label, form(value), "", note)
    why = value.why if isinstance(value, Unknown) else ""
    return KeyFigure(label, "never", "", why)


def _span(value: UsdRange) -> str:
    """The range of an amount; empty where it is one number."""
    low, high = _usd(value.low_usd), _usd(value.high_usd)
    return "" if low == high else f"{low} to {high}"


def paths_table(plan: TcoPlan) -> Table:
    """Every path with its totals, cheapest first."""
    rows: list[Row] = []
    for p in plan.paths:
        total = p.usd if isinstance(p.usd, Unknown) else p.usd.middle_usd
        between = "" if isinstance(p.usd, Unknown) else _span(p.usd)
        rows.append(
            [
                p.name, figure(total, _usd), between, figure(p.upfront_usd, _usd), figure(p.month_usd, _usd),
                figure(p.usd_per_gpu_h, _rate), figure(p.usd_per_used_gpu_h, _rate), p.words,
            ]
        )  # fmt: skip
    heads = ("Path", "Total", "Range", "Upfront", "Per month", "Per GPU-h", "Per used GPU-h", "What it is")
    caption = f"What each path costs over {amount(str(plan.years), 'year')}, cheapest first"
    return make_table("paths", caption, heads, "wnnnNNnW", rows, screen_rows=ALL)


def _meets(value: Decimal | Unknown | None, form: str) -> Cell:
    if isinstance(value, Decimal):
        return cell(form.format(value), value)
    return cell("never" if isinstance(value, Unknown) else "")


def break_even_table(plan: TcoPlan) -> Table:
    """Where owning and each other path cost the same."""
    rows: list[Row] = []
    for p in plan.paths:
        if p.name == "own":
            continue
        found = (p.break_even_month, p.break_even_utilization_pct, p.break_even_purchase_usd)
        why = "; ".join(dict.fromkeys(v.why for v in found if isinstance(v, Unknown)))
        cells = [_meets(found[0], "{:.1f}"), _meets(found[1], "{:.1f} %"), _meets(found[2], "${:,.0f}")]
        rows.append([p.name, *cells, why])
    heads = ("Owning against", "Month", "Utilization", "Purchase price", "Why never")
    shown = len(heads) if any(row[-1] for row in rows) else len(heads) - 1
    note = "Month: cash, before resale. Owning costs less above that utilization, and below that price per GPU."
    caption = "Where owning and renting cost the same"
    rows = [row[:shown] for row in rows]
    return make_table("break_even", caption, heads[:shown], "wnnnw"[:shown], rows, note=note, screen_rows=ALL)


def lines_table(plan: TcoPlan) -> Table:
    """The owning cost line by line."""
    rows: list[Row] = [[one.name, figure(one.usd, _usd), one.words] for one in plan.lines]
    total = (cell("Total"), figure(plan.own.total_usd, _usd), cell(""))
    return make_table("lines", "Owning, line by line", ("Line", "Dollars", "How"), "wnw", rows, total=total,
                      screen_rows=ALL)  # fmt: skip


def _ends(swing: Swing) -> str:
    return f"{number(round(swing.low, 4))} to {number(round(swing.high, 4))} {swing.unit}".rstrip()


def swings_table(plan: TcoPlan) -> Table:
    """Owning less on demand with each input at its ends."""
    rows: list[Row] = [
        [
            capital(s.words), _ends(s), figure(s.low_usd, _usd), figure(s.high_usd, _usd),
            "moved by the same percentage" if s.varied else s.basis.value,
        ]
        for s in plan.swings
    ]  # fmt: skip
    heads = ("Input", "From, to", "Difference at low", "at high", "Range is")
    note = "Owning less on demand, the other inputs as they are; below zero, owning costs less."
    return make_table("swings", "What each input changes", heads, "wwnnw", rows, note=note, screen_rows=ALL)


def _few_swings(plan: TcoPlan) -> Table:
    rows: list[Row] = [
        [capital(s.words), _ends(s), figure(s.low_usd, _usd), figure(s.high_usd, _usd)]
        for s in plan.swings[:SCREEN_SWINGS]
    ]
    heads = ("What decides it", "From, to", "At low", "At high")
    note = "Owning less on demand; below zero, owning costs less."
    return make_table("few_swings", "", heads, "wwnn", rows, note=note, screen_rows=ALL)


def inputs_table(plan: TcoPlan) -> Table:
    """Every input with its range and source."""
    rows: list[Row] = []
    for one in plan.inputs:
        between = f"{number(round(one.low, 4))} to {number(round(one.high, 4))}" if one.ranged else ""
        value = f"{number(round(one.middle, 4))} {one.unit}".rstrip()
        source = f"{one.source}, {one.as_of}" if one.as_of else one.source
        rows.append([f"{capital(one.words)} ({one.name})", value, between, one.basis.value, source])
    heads = ("Input", "Value", "Range", "From", "Source")
    return make_table("inputs", "Inputs", heads, "wwnww", rows, screen_rows=ALL)
