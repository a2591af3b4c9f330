"""What does each way to run a job on spot cost, and when is it done?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.documents.spot import shown_options
from gpuledger.report.marks import Row, by_kind, clip, fixed, halo, layered, rows_of, says, spread
from gpuledger.report.written import loose, usd

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.spot.statement import SpotPlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 720, 340
LABEL_PX, ROOM_PX = 15, 300
FAR = 3.0  # a deadline this many times further than the last end is given in words, not drawn


@chart_of("spot_options", document="spot", section="options")
def draw(plan: SpotPlan, theme: Theme) -> Drawing | None:
    """A point for each way with the range of its cost and of its end; the deadline as a line."""
    found = shown_options(plan)
    if len(found) < 2:
        return None
    rows: list[Row] = []
    for o in found:
        words = f"{o.name}: {usd(o.cost.middle_usd)}, done after {loose(o.finish_h.middle)} h"
        late = o.on_time_pct < plan.job.confidence_pct
        rows.append(
            {
                "usd": float(o.cost.middle_usd), "low": float(o.cost.low_usd), "high": float(o.cost.high_usd),
                "h": o.finish_h.middle, "h_low": o.finish_h.low, "h_high": o.finish_h.high,
                "kind": "chosen" if o == plan.chosen else "too late" if late else "other",
                "name": clip(o.name, 48), "label": words,
            }
        )  # fmt: skip
    last = max(r["h_high"] for r in rows)
    far = plan.job.deadline_h > FAR * last
    wide = 1.05 * (last if far else max(plan.job.deadline_h, last))
    tall = 1.08 * max(r["high"] for r in rows)
    x_scale, y_scale = alt.Scale(domain=[0, wide]), alt.Scale(domain=[0, tall])
    p = theme.palette
    colour = by_kind(alt.Color, "kind", {"chosen": p.target, "other": p.moderate, "too late": p.inefficient})
    x = alt.X("h:Q", title="hours until done", scale=x_scale)
    y = alt.Y("usd:Q", title="dollars", scale=y_scale, axis=alt.Axis(format="$,.0f", tickCount=5))
    base = alt.Chart(rows_of(rows))
    costs = base.mark_rule(strokeWidth=2, opacity=0.5, aria=False).encode(
        x=x, y=alt.Y("low:Q", scale=y_scale), y2=alt.Y2("high:Q"), color=colour
    )
    times = base.mark_rule(strokeWidth=2, opacity=0.5, aria=False).encode(
        y=y, x=alt.X("h_low:Q", scale=x_scale), x2=alt.X2("h_high:Q"), color=colour
    )
    points = base.mark_point(size=90, filled=True, opacity=1).encode(x=x, y=y, color=colour, **says())
    deadline = alt.Chart(rows_of([{"at": plan.job.deadline_h, "label": "deadline"}]))
    line = deadline.mark_rule(strokeDash=[5, 4], color=p.muted).encode(x=alt.X("at:Q", scale=x_scale))
    name = deadline.mark_text(align="right", dx=-6, baseline="top", color=p.muted).encode(
        x=alt.X("at:Q", scale=x_scale), y=fixed(alt.YValue, 2), text=alt.Text("label:N")
    )
    marks = [*([] if far else [line, name]), costs, times, points, *_names(theme, rows, wide, tall)]
    drawn = layered(*marks, width=WIDTH, height=HEIGHT)
    title = f"{plan.chosen.name}: {usd(plan.chosen.cost.middle_usd)} against {usd(plan.on_demand_usd)} on demand"
    subtitle = "Expected cost against the time the job is done; lines are the 10th to 90th percentile."
    if far:
        subtitle += f" The deadline, in {loose(plan.job.deadline_h)} h, is further to the right."
    words = "; ".join(str(r["label"]) for r in rows)
    return Drawing(title, subtitle, f"Points. {words}.", drawn)


def _names(theme: Theme, rows: list[Row], wide: float, tall: float) -> list[alt.LayerChart]:
    """Names in a column to the left of the points, apart from each other."""
    places = spread([HEIGHT * (1 - r["usd"] / tall) for r in rows], LABEL_PX, LABEL_PX / 2, HEIGHT - LABEL_PX / 2)
    left = WIDTH * min(r["h_low"] for r in rows) / wide - 10
    placed = [r | {"at_x": left, "at_y": at} for r, at in zip(rows, places, strict=True)]
    chart = alt.Chart(rows_of(placed)).encode(
        x=alt.X("at_x:Q", scale=None), y=alt.Y("at_y:Q", scale=None), text=alt.Text("name:N")
    )  # fmt: skip
    return [halo(theme, chart, align="right", baseline="middle", color=theme.palette.ink, limit=max(left, ROOM_PX))]
