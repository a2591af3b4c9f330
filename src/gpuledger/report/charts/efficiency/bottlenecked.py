"""Which GPUs are busy day after day and get little done?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuledger.efficiency.naming import gpu_name
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, clip, corners, empty, fixed, layered, plottable, rows_of, says, spread
from gpuledger.report.written import gpus, plain, round_percent, whole, write

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
    from gpuledger.report.documents.efficiency import EfficiencyView
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT = 560, 400
LABELS = 8
# Beyond this many GPUs single marks hide each other: marks then stand for cells of GPUs.
SINGLE_LIMIT = 600
CELL_PCT = 2.5
AXIS: dict[str, Any] = {"values": list(range(0, 101, 20)), "labelFlush": False}


def _title(s: EfficiencyStatement) -> str:
    found = len(s.bottlenecked_gpus)
    if not s.gpus:
        return "No GPU was seen"
    if s.gpus == 1:
        return f"The GPU was {'' if found else 'not '}bottlenecked on most of its active days"
    if found <= 1:
        return f"{'One' if found else 'None'} of {gpus(s.gpus)} was bottlenecked on most of its active days"
    return f"{whole(found)} of {gpus(s.gpus)} were bottlenecked on most of their active days"


def short_id(g: GpuRow) -> str:
    """Enough of a device's name to find it: host and index, else the first digits of its UUID."""
    return gpu_name(replace(g, host=clip(g.host, 16) if g.host else None), g.gpu_instance_id)


def _row(g: GpuRow) -> Row | None:
    util, rfu = plottable(g.means.gpu_util_pct), plottable(g.means.rfu_power_pct)
    if util is None or rfu is None:
        return None
    label = (
        f"{short_id(g)}, {plain(g.gpu_model)}, {plain(g.namespace)}: utilization {write(util, 'percent')}, "
        f"RFU by power {write(rfu, 'percent')}, "
        f"bottlenecked {write(g.bottlenecked_pct_of_active, 'percent')} of active time"
    )
    if g.consistently_bottlenecked:
        label += f" on {g.bottlenecked_days} of {g.active_days} days; likely cause: {plain(g.likely_cause)}"
    return {"util": util, "rfu": rfu, "stuck": g.consistently_bottlenecked, "count": 1, "label": label}


def _binned(rows: list[Row]) -> list[Row]:
    """One mark a cell; how many GPUs it stands for shows as its size only."""
    cells = Counter((r["util"] // CELL_PCT, r["rfu"] // CELL_PCT, r["stuck"]) for r in rows)
    return [
        {
            "util": min((u + 0.5) * CELL_PCT, 100.0),
            "rfu": min((r + 0.5) * CELL_PCT, 100.0),
            "stuck": stuck,
            "count": count,
            "label": "consistently bottlenecked" if stuck else "not consistently bottlenecked",
        }
        for (u, r, stuck), count in sorted(cells.items())
    ]


def _points(rows: list[Row], theme: Theme, many: bool) -> alt.LayerChart:
    p = theme.palette
    pct = alt.Scale(domain=[0, 100])
    x = alt.X("util:Q", title="GPU utilization, mean %", scale=pct, axis=alt.Axis(**AXIS))
    y = alt.Y("rfu:Q", title="RFU by power, mean %", scale=pct, axis=alt.Axis(**AXIS))
    size = alt.Size("count:Q", legend=None, scale=alt.Scale(range=[20, 500])) if many else fixed(alt.SizeValue, 140)
    layers = []
    for stuck, colour, shape in ((False, p.idle, "circle"), (True, p.bottlenecked, "triangle-up")):
        data = rows_of([r for r in rows if r["stuck"] is stuck])
        mark = alt.Chart(data).mark_point(
            filled=True, color=colour, shape=shape, opacity=0.6, stroke=p.background, strokeWidth=0.8
        )
        layers.append(mark.encode(x=x, y=y, size=size, **says()))
    return layered(*layers)


def _ground(limits: Thresholds, theme: Theme) -> list[alt.Chart]:
    """The bottlenecked region and the line on which utilization tells the truth."""
    p, b = theme.palette, limits.bottleneck
    region = [{"x": 100 * b.util_above_ratio, "x2": 100, "y": 0, "y2": 100 * b.pif_below_ratio}]
    line = [{"x": 0, "y": 0, "x2": 100, "y2": 100}]
    words = [
        {"x": 100 * b.util_above_ratio + 1.5, "y": 3, "words": "Busy, little power"},
        {"x": 27, "y": 35, "words": "No gap: RFU = utilization"},
    ]
    style: dict[str, Any] = {"color": p.muted, "align": "left", "fontSize": theme.text_px}
    text: dict[str, Any] = {"x": alt.X("x:Q"), "y": alt.Y("y:Q"), "text": alt.Text("words:N")}
    # The diagonal's own slope on this plot, so that its words lie along it.
    return [
        alt.Chart(rows_of(region)).mark_rect(color=p.wash, aria=False).encode(**corners()),
        alt.Chart(rows_of(line)).mark_rule(color=p.rule, strokeDash=[4, 4], aria=False).encode(**corners()),
        alt.Chart(rows_of(words[:1])).mark_text(fontWeight="bold", **style).encode(**text),
        alt.Chart(rows_of(words[1:])).mark_text(angle=324.5, **style).encode(**text),
    ]


def _each_cause(stuck: list[GpuRow]) -> list[GpuRow]:
    """The worst of every cause in turn, so that a common cause does not hide the others."""
    ranked = sorted(stuck, key=lambda g: (-(plottable(g.bottlenecked_pct_of_active) or 0.0), g.gpu_uuid))
    turns = Counter[str | None]()
    placed: list[tuple[int, int, GpuRow]] = []
    for place, g in enumerate(ranked):
        cause = g.cause.cause if g.cause else None
        turns[cause] += 1
        placed.append((turns[cause], place, g))
    return [g for _, _, g in sorted(placed, key=lambda p: p[:2])[:LABELS]]


def _labels(s: EfficiencyStatement, theme: Theme) -> list[alt.Chart]:
    """The worst devices by name, in a lane next to the plot."""
    worst = _each_cause([g for g in s.bottlenecked_gpus if _row(g) is not None])
    if not worst:
        return []
    rfus = [plottable(g.means.rfu_power_pct) or 0.0 for g in worst]
    rows = [
        {
            "util": plottable(g.means.gpu_util_pct),
            "rfu": rfu,
            "y": y,
            "lane": 104,
            "words": f"{short_id(g)}: {clip(plain(g.likely_cause), 18)}",
        }
        for g, rfu, y in zip(worst, rfus, spread(rfus, 6.0, 4, 92), strict=True)
    ]
    base = alt.Chart(rows_of(rows))
    p = theme.palette
    listed = f"{whole(len(rows))} of {whole(len(s.bottlenecked_gpus))}: GPU, likely cause"
    heading = alt.Chart(rows_of([{"t": listed}]))
    return [
        base.mark_rule(color=p.rule, strokeWidth=0.8, aria=False).encode(
            x=alt.X("util:Q"), y=alt.Y("rfu:Q"), x2=alt.X2("lane:Q"), y2=alt.Y2("y:Q")
        ),
        base.mark_text(align="left", dx=5).encode(x=alt.X("lane:Q"), y=alt.Y("y:Q"), text=alt.Text("words:N")),
        heading.mark_text(align="left", dx=5, color=p.muted).encode(
            x=fixed(alt.XValue, WIDTH * 1.04), y=fixed(alt.YValue, 4), text=alt.Text("t:N")
        ),
    ]


@chart_of("bottlenecked_gpus", document="efficiency", section="bottlenecks", order=4)
def draw(view: EfficiencyView, theme: Theme) -> Drawing:
    """Each GPU by utilization and RFU, the consistently bottlenecked named."""
    s, limits = view.statement, view.limits
    title = _title(s)
    rows = [row for g in s.per_gpu if (row := _row(g)) is not None]
    many = len(rows) > SINGLE_LIMIT
    each = "Each mark stands for the GPUs at one place, larger for more" if many else "Each mark is one GPU"
    subtitle = (
        f"{each}, at its means over the window. Triangles: bottlenecked (over "
        f"{round_percent(100 * limits.bottleneck.util_above_ratio)} utilization, under "
        f"{round_percent(100 * limits.bottleneck.pif_below_ratio)} of board power) on most of their active days."
    )
    if not rows:
        return Drawing(title, subtitle, title, empty(theme, "not known: no GPU has both utilization and power"))
    layers: list[Any] = [
        *_ground(limits, theme),
        *_labels(s, theme),
        _points(_binned(rows) if many else rows, theme, many),
    ]
    return Drawing(
        title,
        subtitle,
        f"Scatter of GPUs by utilization and RFU by power. {title}.",
        layered(*layers, width=WIDTH, height=HEIGHT),
    )
