"""Which namespace loses most between busy and realized?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import (
    Row,
    along,
    alt,
    bar_row,
    by_kind,
    by_name,
    clip,
    empty,
    layered,
    plottable,
    range_of,
    rows_of,
    says,
    widest_gap,
)
from gpuledger.report.written import points, write
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.efficiency.statement import EfficiencyStatement, GroupRow
    from gpuledger.report.documents.efficiency import EfficiencyView
    from gpuledger.report.theme import Theme

MOST = 20
WIDTH, GAP_WIDTH, ROW_HEIGHT = 480, 150, 54
# Field of the statement, role in the theme, name, shape.
MEASURES = (
    ("gpu_util_pct", "utilization", "Utilization", "circle"),
    ("rfu_power_pct", "rfu_power", "RFU by power", "square"),
    ("rfu_counters_pct", "rfu_counters", "RFU by counters", "diamond"),
)
TARGET = ("target", "RFU target", "M-0.16,-1.1H0.16V1.1H-0.16Z")


def _title(s: EfficiencyStatement) -> str:
    widest = widest_gap(s.by_namespace)
    if widest is None:
        return "How the namespaces compare is not known"
    gap = widest.means.efficiency_gap_pp
    assert not isinstance(gap, Unknown)
    return f"{clip(widest.name)} loses most between busy and realized: {points(gap)}"


def _rows(groups: list[GroupRow]) -> list[Row]:
    return [
        {
            "ns": clip(g.name),
            "measure": name,
            "value": plottable(value),
            "label": f"{g.name}: {name} {write(value, 'percent')}",
        }
        for g in groups
        for name, value in [*((m[2], getattr(g.means, m[0])) for m in MEASURES), (TARGET[1], g.target_rfu_pct)]
        if plottable(value) is not None
    ]


def _dots(groups: list[GroupRow], theme: Theme, y: alt.Y) -> alt.LayerChart:
    rows, kinds = _rows(groups), [*(m[1:] for m in MEASURES), TARGET]
    x = alt.X(
        "value:Q",
        title="% of time (utilization), of board power (RFU by power), of dense peak (RFU by counters)",
        scale=alt.Scale(domain=[0, 100]),
    )
    spans = [
        {"ns": clip(g.name), "a": plottable(g.means.gpu_util_pct), "b": plottable(g.means.rfu_power_pct)}
        for g in groups
    ]
    ranges = [{"ns": clip(g.name)} | range_of(g) for g in groups]
    legend = alt.Legend(orient="top", values=[name for _, name, _ in kinds], symbolOpacity=1)
    return layered(
        alt.Chart(rows_of(spans))
        .mark_rule(color=theme.palette.rule, strokeWidth=5, aria=False)
        .encode(y=y, x=alt.X("a:Q"), x2=alt.X2("b:Q")),
        alt.Chart(rows_of(ranges))
        .mark_rule(color=theme.palette.rfu_counters, strokeWidth=1.5, aria=False)
        .encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        alt.Chart(rows_of(rows))
        .mark_point(filled=True, size=140, opacity=1)
        .encode(
            y=y,
            x=x,
            color=by_kind(alt.Color, "measure", {name: theme.colour(role) for role, name, _ in kinds}, legend),
            shape=by_kind(alt.Shape, "measure", {name: shape for _, name, shape in kinds}, legend),
            **says(),
        ),
        width=WIDTH,
        height=alt.Step(ROW_HEIGHT),
    )


def _gaps(groups: list[GroupRow], theme: Theme, y: alt.Y) -> alt.LayerChart:
    rows = [bar_row(g.means.efficiency_gap_pp, "points", ns=clip(g.name)) for g in groups]
    for g, row in zip(groups, rows, strict=True):
        row["label"] = f"{g.name}: gap {row['words']}"
    known = [r["value"] for r in rows if r["value"] is not None]
    scale = alt.Scale(domain=[min([0.0, *known]), max([1.0, *known]) * 1.9])
    base = alt.Chart(rows_of(rows)).encode(y=y)
    return layered(
        base.mark_bar(color=theme.palette.gap, height=18).encode(x=along("value", scale), **says()),
        base.mark_text(align="left", dx=6, fontWeight="bold").encode(x=alt.X("edge:Q"), text=alt.Text("words:N")),
        width=GAP_WIDTH,
        height=alt.Step(ROW_HEIGHT),
        title=alt.TitleParams("Efficiency gap", fontSize=14, anchor="start", frame="group", offset=12),
    )


@chart_of("namespaces", document="efficiency", section="namespaces", order=6)
def draw(view: EfficiencyView, theme: Theme) -> Drawing:
    """Utilization, both RFU and the target of each namespace, and the gap."""
    s = view.statement
    title = _title(s)
    more = f" The {MOST} with most time of {len(s.by_namespace)}." if len(s.by_namespace) > MOST else ""
    subtitle = (
        "Time-weighted means by namespace, widest gap first. The grey bar spans the gap from utilization to RFU by "
        f"power; the thin line is the range of RFU by counters.{more}"
    )
    if not s.by_namespace:
        return Drawing(title, subtitle, title, empty(theme, "not known: no sample gives a namespace"))
    most_time = sorted(s.by_namespace, key=lambda g: (-g.means.observed_h, g.name))[:MOST]
    groups = sorted(most_time, key=lambda g: (-(plottable(g.means.efficiency_gap_pp) or float("-inf")), g.name))
    order = [clip(g.name) for g in groups]
    left = by_name("ns", sort=order, labelPadding=12, grid=False, labelLimit=200)
    right = alt.Y("ns:N", sort=order, axis=None)
    body = alt.hconcat(_dots(groups, theme, left), _gaps(groups, theme, right), spacing=24)
    words = "; ".join(f"{g.name}: gap {write(g.means.efficiency_gap_pp, 'points')}" for g in groups)
    return Drawing(title, subtitle, f"Dots and bars by namespace. {words}.", body)
