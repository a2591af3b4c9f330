"""What does each policy cost, and how many requests wait too long?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, by_kind, fixed, layered, named_points, rows_of, says, spread
from gpuledger.report.written import number, percent

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.autoscale.statement import AutoscalePlan, PolicyRow
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 760, 300
LEAST_PCT = 0.01
LABEL_PX, ROOM_PX = 16, 190


@chart_of("autoscale_policies", document="autoscale", section="policies", order=2)
def draw(plan: AutoscalePlan, theme: Theme) -> Drawing | None:
    """A point per policy after tuning, small ones for every value tried; the goal as a line."""
    if len(plan.policies) < 2:
        return None
    p = theme.palette
    allowed = 100 * plan.slo.missed_ratio
    rows = [_row(plan, r) for r in plan.policies]
    wide = 1.06 * max(r["gpu_h"] for r in rows)
    tried: list[Row] = [
        {"gpu_h": t.gpu_h_per_month, "missed": max(LEAST_PCT, t.missed_pct)}
        for t in plan.tried
        if t.gpu_h_per_month <= wide
    ]
    x = alt.X(
        "gpu_h:Q", title="GPU-hours per month", scale=alt.Scale(domain=[0, wide], nice=False),
        axis=alt.Axis(format=",.0f", tickCount=6),
    )  # fmt: skip
    scale = alt.Scale(type="log", domain=[LEAST_PCT, 100], nice=False)
    axis = alt.Axis(values=[0.01, 0.1, 1, 10, 100], format="~g")
    y = alt.Y("missed:Q", title=f"% waiting over {plan.slo.wait_s:g} s", scale=scale, axis=axis)
    small = alt.Chart(rows_of(tried)).mark_circle(size=16, opacity=0.5, color=p.idle, aria=False).encode(x=x, y=y)
    kinds = {"chosen": p.target, "meets the goal": p.moderate, "misses the goal": p.bottlenecked}
    points = alt.Chart(rows_of(rows)).mark_point(size=110, filled=True, opacity=1)
    points = points.encode(
        x=x, y=y, color=by_kind(alt.Color, "kind", kinds, alt.Legend(orient="top", title=None)), **says()
    )
    goal = alt.Chart(rows_of([{"missed": allowed, "words": f"{allowed:.3g} % allowed"}]))
    rule = goal.mark_rule(color=p.target, strokeDash=[4, 4], aria=False).encode(y=y)
    word = goal.mark_text(align="left", dy=-8, color=p.target).encode(
        y=y, x=fixed(alt.XValue, 4), text=alt.Text("words:N")
    )
    title = f"{plan.chosen.title} meets the goal for the least" if plan.chosen else "No policy meets the goal"
    subtitle = (
        "Large: each policy as tuned, on the rest of the trace. Small: every value tried, on the first part. "
        f"Down and to the left is better; {LEAST_PCT:g} % stands for that or fewer."
    )
    words = "; ".join(str(r["label"]) for r in rows)
    body = layered(small, rule, word, points, *_names(theme, rows, wide), width=WIDTH, height=HEIGHT)
    return Drawing(title, subtitle, f"Points. {words}.", body)


def _row(plan: AutoscalePlan, row: PolicyRow) -> Row:
    kind = "chosen" if row == plan.chosen else "meets the goal" if row.meets else "misses the goal"
    label = f"{row.title}: {number(row.gpu_h_per_month)} GPU-hours per month, {percent(row.missed_pct)} over the wait"
    missed = max(LEAST_PCT, row.missed_pct)
    return {"gpu_h": row.gpu_h_per_month, "missed": missed, "kind": kind, "name": row.title, "label": label}


def _names(theme: Theme, rows: list[Row], wide: float) -> list[alt.LayerChart]:
    """A name next to each point, apart from each other."""
    span = math.log10(100 / LEAST_PCT)
    places = spread(
        [HEIGHT * (1 - math.log10(r["missed"] / LEAST_PCT) / span) for r in rows], LABEL_PX, LABEL_PX / 2,
        HEIGHT - LABEL_PX / 2,
    )  # fmt: skip
    placed = [r | {"at_x": WIDTH * r["gpu_h"] / wide, "at_y": at} for r, at in zip(rows, places, strict=True)]
    return named_points(theme, placed, WIDTH, ROOM_PX, dx=10)
