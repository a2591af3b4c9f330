"""Did busy GPUs draw the power of real work? Utilization against power intensity, by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuledger.report.adding import shares_adding_up
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import alt, by_kind, corners, empty, fixed, halo, layered, rows_of, says
from gpuledger.report.written import amount, percent, plain, round_percent, tenth
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Classes
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.report.documents.efficiency import EfficiencyView
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT = 600, 400
BIN_UTIL_PCT, BIN_PIF = 5.0, 0.05


def _title(s: EfficiencyStatement) -> str:
    share = s.active.bottlenecked_pct_of_active
    if isinstance(share, Unknown):
        return f"Whether busy GPUs did their work is {share}"
    return f"{percent(share)} of active GPU time looked busy but drew little power"


def _cells(s: EfficiencyStatement, theme: Theme) -> alt.Chart:
    rows = [
        {
            # A cell is drawn at its middle; the last one (exactly 100 %) stays inside the frame.
            "util": min(c.util_low_pct + BIN_UTIL_PCT / 2, 99.0),
            "pif": min(c.pif_low + BIN_PIF / 2, 0.99),
            "hours": c.hours,
            "class": c.klass.lower(),
            "label": f"{plain(c.klass)}: {amount(tenth(c.hours), 'GPU-hour')} at {c.util_low_pct:.0f} % utilization "
            f"and up, PIF {c.pif_low:.2f} and up",
        }
        for c in s.util_power
    ]
    names = list(s.active.classes_pct) or sorted({str(r["class"]) for r in rows})
    folded = [n.lower() for n in names]
    return (
        alt.Chart(rows_of(rows))
        .mark_point(filled=True, opacity=0.88, strokeWidth=0)
        .encode(
            x=alt.X(
                "util:Q",
                title="GPU utilization, %",
                scale=alt.Scale(domain=[0, 100]),
                axis=alt.Axis(grid=False, values=list(range(0, 101, 10)), labelFlush=False),
            ),
            y=alt.Y(
                "pif:Q",
                title="Power intensity (PIF): board power over its limit",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(grid=False, format=".1f"),
            ),
            size=alt.Size("hours:Q", legend=None, scale=alt.Scale(range=[24, 640])),
            color=by_kind(alt.Color, "class", {n: theme.colour(n) for n in folded}),
            shape=by_kind(alt.Shape, "class", {n: theme.shape(n) for n in folded}),
            **says(),
        )
    )


def _borders(c: Classes, theme: Theme) -> alt.Chart:
    """The lines where one class ends and the next begins."""
    ratios = c.idle_util_below_ratio, c.moderate_util_from_ratio, c.efficient_util_from_ratio
    idle, moderate, busy = (100 * ratio for ratio in ratios)
    low, mid, high = c.moderate_pif_from_ratio, c.bottlenecked_pif_below_ratio, c.efficient_pif_from_ratio
    lines = [(idle, 0, idle, 1), (moderate, low, moderate, 1), (busy, 0, busy, mid), (busy, high, busy, 1)]
    lines += [(moderate, low, busy, low), (busy, mid, 100, mid), (busy, high, 100, high)]
    rows = [dict(zip(corners(), line, strict=True)) for line in lines]
    rules = alt.Chart(rows_of(rows)).mark_rule(color=theme.palette.rule, strokeWidth=1.2, aria=False)
    return rules.encode(**corners())


def _wash(c: Classes, theme: Theme) -> alt.Chart:
    """The region the title speaks of."""
    row = {"x": 100 * c.bottlenecked_util_from_ratio, "x2": 100, "y": 0, "y2": c.bottlenecked_pif_below_ratio}
    return alt.Chart(rows_of([row])).mark_rect(color=theme.palette.wash, aria=False).encode(**corners())


def _names(c: Classes, theme: Theme) -> alt.LayerChart:
    busy, idle = 100 * c.efficient_util_from_ratio, 100 * c.idle_util_below_ratio
    places = [
        (idle / 2, 0.97, "Idle"),
        (idle + 1.5, 0.03, "Inefficient"),
        (100 * c.moderate_util_from_ratio + 1.5, 0.97, "Moderate"),
        (busy + 1.5, 0.97, "Efficient"),
        (busy + 1.5, 0.03, "Bottlenecked"),
    ]
    rows = [{"x": x, "y": y, "name": name} for x, y, name in places]
    base = alt.Chart(rows_of(rows[1:])).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("name:N"))
    middle = alt.Chart(rows_of(rows[:1])).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("name:N"))
    style: dict[str, Any] = {"size": theme.text_px, "color": theme.palette.muted, "fontWeight": "bold"}
    return layered(halo(theme, base, align="left", **style), halo(theme, middle, align="center", **style))


def _key(s: EfficiencyStatement, theme: Theme) -> alt.LayerChart:
    """The legend, with each class's share of observed time."""
    shares = shares_adding_up(s.active.classes_pct)
    rows = [
        {"class": name.lower(), "name": f"{plain(name).capitalize()}  {percent(share)}", "row": i + 1}
        for i, (name, share) in enumerate(sorted(shares.items(), key=lambda pair: -pair[1]))
    ]
    heading = alt.Chart(rows_of([{"t": "Share of observed time"}])).mark_text(align="left", color=theme.palette.muted)
    base = alt.Chart(rows_of(rows)).encode(
        y=alt.Y("row:Q", axis=None, scale=alt.Scale(domain=[0, HEIGHT / 28], reverse=True))
    )
    dots = base.mark_point(filled=True, size=130, opacity=1, aria=False).encode(
        x=fixed(alt.XValue, 12),
        color=alt.Color("class:N", legend=None),
        shape=alt.Shape("class:N", legend=None),
    )
    words = base.mark_text(align="left", size=theme.text_px + 1).encode(
        x=fixed(alt.XValue, 28), text=alt.Text("name:N")
    )
    return layered(
        heading.encode(x=fixed(alt.XValue, 4), y=fixed(alt.YValue, 4), text=alt.Text("t:N")),
        dots,
        words,
        width=200,
        height=HEIGHT,
    )


@chart_of("utilization_vs_power", document="efficiency", section="active", order=1)
def draw(view: EfficiencyView, theme: Theme) -> Drawing:
    """Device-hours by utilization and power intensity."""
    s, limits = view.statement, view.limits
    subtitle = (
        "Each mark counts hours of single GPUs by the hour's mean utilization and power (5 % steps); area: GPU-hours. "
        f"Bottlenecked: over {round_percent(100 * limits.bottleneck.util_above_ratio)} utilization with under "
        f"{round_percent(100 * limits.bottleneck.pif_below_ratio)} of board power."
    )
    title = _title(s)
    if not s.util_power:
        return Drawing(title, subtitle, title, empty(theme, "not known: no time with both utilization and power"))
    c = limits.classes
    plot = layered(_wash(c, theme), _borders(c, theme), _cells(s, theme), _names(c, theme), width=WIDTH, height=HEIGHT)
    body = alt.hconcat(plot, _key(s, theme), spacing=24)
    shares = ", ".join(f"{plain(n)} {percent(v)}" for n, v in shares_adding_up(s.active.classes_pct).items())
    return Drawing(title, subtitle, f"Scatter of GPU time by utilization and power intensity. {title}. {shares}.", body)
