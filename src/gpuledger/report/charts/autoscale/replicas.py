"""How do replicas follow the demand: chosen policy against static peak?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, by_kind, layered, rows_of
from gpuledger.report.written import number
from gpuledger.units import Unknown

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.autoscale.statement import AutoscalePlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 760, 280
NEEDED = "Needed, knowing the demand"
DAY_S = 86_400.0


@chart_of("autoscale_replicas", document="autoscale", section="replicas", order=1)
def draw(plan: AutoscalePlan, theme: Theme) -> Drawing | None:
    """Steps over the evaluated time; None for a moment alone."""
    if len(plan.moments) < 2:
        return None
    shown = plan.chosen or min(plan.policies, key=lambda r: r.missed_pct)
    names = {NEEDED: theme.palette.moderate, shown.title: theme.palette.target}
    dashes = {NEEDED: [1, 0], shown.title: [1, 0]}
    static = plan.static is not None and plan.static is not shown
    if static:
        names["Static peak"], dashes["Static peak"] = theme.palette.utilization, [6, 4]
    rows = _rows(plan, shown.title, static)
    dated = not isinstance(plan.trace.start_ms, Unknown)
    long = plan.moments[-1].at_s - plan.moments[0].at_s >= 2 * DAY_S
    if dated:
        form = "%-d %b" if long else "%-d %b %H:%M"
        x = alt.X("at:T", scale=alt.Scale(type="utc"), axis=alt.Axis(title=None, format=form, tickCount=8, grid=False))
    else:
        unit = "days" if long else "hours"
        x = alt.X("at:Q", title=f"{unit} from the start of the trace", axis=alt.Axis(grid=False, tickCount=8))
    top = 1.08 * max(r["replicas"] for r in rows)
    scale, axis = alt.Scale(domain=[0, max(1.0, top)], nice=False), alt.Axis(format=",d", tickMinStep=1, tickCount=6)
    base = alt.Chart(rows_of(rows)).encode(x=x, y=alt.Y("replicas:Q", title="replicas", scale=scale, axis=axis))
    area = base.transform_filter(f"datum.name == '{NEEDED}'").mark_area(
        interpolate="step-after", opacity=0.35, color=theme.palette.moderate, aria=False
    )
    legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolStrokeWidth=3, labelLimit=260)
    lines = base.mark_line(interpolate="step-after", strokeWidth=2, clip=True).encode(
        color=by_kind(alt.Color, "name", names, legend),
        strokeDash=by_kind(alt.StrokeDash, "name", dashes),
        description=alt.Description("name:N"),
    )
    beyond = number(shown.over_gpu_h_per_month)
    title = f"{shown.title} pays {beyond} GPU-hours per month beyond need"
    if static and plan.static is not None:
        title += f", a static peak {number(plan.static.over_gpu_h_per_month)}"
    subtitle = "Replicas on the part of the trace that policies were not tuned on; the most of each piece of time."
    words = f"Lines over time. {title}; at most {shown.most_replicas} replicas."
    return Drawing(title, subtitle, words, layered(area, lines, width=WIDTH, height=HEIGHT))


def _rows(plan: AutoscalePlan, title: str, static: bool) -> list[Row]:
    start = plan.trace.start_ms
    long = plan.moments[-1].at_s - plan.moments[0].at_s >= 2 * DAY_S
    per_unit = DAY_S if long else 3600.0
    rows: list[Row] = []
    for m in plan.moments:
        at = m.at_s / per_unit if isinstance(start, Unknown) else start + 1000 * m.at_s
        figures = {NEEDED: m.needed, title: m.chosen} | ({"Static peak": m.static} if static else {})
        rows += [{"at": at, "name": name, "replicas": value} for name, value in figures.items()]
    return rows
