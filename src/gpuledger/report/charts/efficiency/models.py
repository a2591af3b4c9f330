"""Which GPU model turns its busy time into work? Four panels side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, bar_row, clip, empty, layered, range_of, rows_of, says, widest_gap
from gpuledger.report.written import model, points, write
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.efficiency.statement import EfficiencyStatement, GroupRow
    from gpuledger.report.documents.efficiency import EfficiencyView
    from gpuledger.report.theme import Theme

MOST = 12
PANEL_WIDTH = 168
ROW_HEIGHT = 54


def _title(s: EfficiencyStatement) -> str:
    widest = widest_gap(s.by_model)
    if widest is None:
        return "How the GPU models compare is not known"
    gap, util = widest.means.efficiency_gap_pp, widest.means.gpu_util_pct
    if len(s.by_model) == 1:
        return f"{model(widest.name)}: {write(util, 'percent')} busy, a gap of {write(gap, 'points')} to its power"
    assert not isinstance(gap, Unknown)
    return f"{model(widest.name)} shows the widest gap: {points(gap)} between busy and realized"


def _panel(rows: list[Row], theme: Theme, heading: str, role: str, top: float, first: bool) -> alt.LayerChart:
    names = alt.Y(
        "name:N",
        sort=[r["name"] for r in rows],  # a panel that lacks a figure must not order its rows by itself
        title=None,
        axis=alt.Axis(labels=first, labelLimit=190, domain=False, labelPadding=10) if first else None,
        scale=alt.Scale(paddingInner=0.52, paddingOuter=0.25),
    )
    low = min([0.0, *[r["value"] for r in rows if r["value"] is not None]])
    x = alt.X("value:Q", scale=alt.Scale(domain=[low, top]), axis=None)
    base = alt.Chart(rows_of(rows)).encode(y=names)
    bars = base.mark_bar(color=theme.colour(role)).encode(x=x, **says())
    layers: list[alt.Chart] = [
        bars,
        base.mark_text(align="left", dx=6).encode(x=alt.X("edge:Q"), text=alt.Text("words:N")),
    ]
    if any(r.get("middle") is not None for r in rows):
        layers += _counters(rows, names, theme)
    return layered(
        *layers,
        width=PANEL_WIDTH,
        height=alt.Step(ROW_HEIGHT),
        title=alt.TitleParams(heading, fontSize=14, anchor="start", frame="group", offset=10),
    )


def _counters(rows: list[Row], names: alt.Y, theme: Theme) -> list[alt.Chart]:
    """RFU by counters, under its bar: a diamond on its range."""
    known = alt.Chart(rows_of([r for r in rows if r.get("middle") is not None])).encode(y=names)
    colour = theme.palette.rfu_counters
    span = known.mark_rule(color=colour, strokeWidth=2, yOffset=22, aria=False).encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q")
    )
    dot = known.mark_point(filled=True, shape="diamond", size=90, color=colour, opacity=1, yOffset=22).encode(
        x=alt.X("middle:Q"),
        description=alt.Description("counters_label:N"),
        tooltip=[alt.Tooltip("counters_label:N", title=" ")],
    )
    words = known.mark_text(align="left", dx=8, color=colour, yOffset=22).encode(
        x=alt.X("high:Q"), text=alt.Text("counters_words:N")
    )
    return [span, dot, words]


def _rows(groups: tuple[GroupRow, ...], field: str, style: str) -> list[Row]:
    found = [(g.name, getattr(g.means, field)) for g in groups]
    return [
        bar_row(value, style, name=clip(model(name), 24), label=f"{name}: {write(value, style)}")
        for name, value in found
    ]


@chart_of("gpu_models", document="efficiency", section="models", order=3)
def draw(view: EfficiencyView, theme: Theme) -> Drawing:
    """Utilization, PIF, RFU and the gap of each GPU model."""
    s = view.statement
    title = _title(s)
    subtitle = (
        "Time-weighted means by GPU model. RFU: the bar is by power (100 × PIF); the diamond is by "
        "counters, over the dense peak, with its range. Gap: utilization less RFU by power, in percentage points."
    )
    groups = s.by_model[:MOST]
    if not groups:
        return Drawing(title, subtitle, title, empty(theme, "not known: no GPU gives its model"))
    by_power = _rows(groups, "rfu_power_pct", "percent")
    rfu = [row | range_of(g) for row, g in zip(by_power, groups, strict=True)]
    gaps = _rows(groups, "efficiency_gap_pp", "points")
    most = max([abs(r["value"]) for r in gaps if r["value"] is not None] or [1.0])
    panels = [
        _panel(_rows(groups, "gpu_util_pct", "percent"), theme, "Utilization", "utilization", 145, True),
        _panel(_rows(groups, "pif", "factor"), theme, "Power intensity (PIF)", "rfu_power", 1.4, False),
        _panel(rfu, theme, "RFU, both ways", "rfu_power", 145, False),
        _panel(gaps, theme, "Efficiency gap", "gap", most * 2.2 or 1, False),
    ]
    alt_text = "; ".join(f"{g.name}: utilization {write(g.means.gpu_util_pct, 'percent')}" for g in groups)
    return Drawing(
        title, subtitle, f"Four bar panels by GPU model. {title}. {alt_text}.", alt.hconcat(*panels, spacing=14)
    )
