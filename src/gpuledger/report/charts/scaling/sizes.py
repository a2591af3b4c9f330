"""How does throughput grow with the size, measured and predicted?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, layered, rows_of
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme
    from gpuledger.scaling.statement import ScalingStatement
    from gpuledger.scaling.statistics import Interval

WIDTH, HEIGHT = 640, 300


def _row(size: int, found: Interval, kind: str) -> Row:
    words = f"{size}: {found.value:.3g}/s ({found.low:.3g} to {found.high:.3g}), {kind}"
    return {"size": size, "rate": found.value, "low": found.low, "high": found.high, "kind": kind, "label": words}


@chart_of("sizes", document="scaling", section="scaling", order=1)
def draw(statement: ScalingStatement, theme: Theme) -> Drawing | None:
    """Points with their ranges; the straight line is the smallest size times more of it."""
    scaling = statement.facts.scaling
    points = scaling.curve.points
    if len({p.size for p in points}) < 2:
        return None
    rows = [_row(p.size, p.throughput_per_s, "measured") for p in points]
    seen = {p.size for p in points}
    ahead = [p for p in scaling.curve.predictions if p.size not in seen]
    rows += [_row(p.size, p.throughput_per_s, "predicted") for p in ahead]
    smallest, largest = min(points, key=lambda p: p.size), max(float(r["size"]) for r in rows)
    one = smallest.throughput_per_s.value / smallest.size
    line = [{"size": smallest.size, "rate": smallest.throughput_per_s.value}, {"size": largest, "rate": one * largest}]
    x = alt.X(
        "size:Q", title=scaling.unit, axis=alt.Axis(format="d", tickMinStep=1, grid=False), scale=alt.Scale(zero=True)
    )
    y = alt.Y("rate:Q", title="answers per second", scale=alt.Scale(zero=True))
    kinds = {"measured": theme.palette.efficient} | ({"predicted": theme.palette.rfu_power} if ahead else {})
    colour = by_kind(alt.Color, "kind", kinds, alt.Legend(orient="top", title=None))
    base = alt.Chart(rows_of(rows)).encode(x=x, color=colour)
    layers = (
        alt.Chart(rows_of(line)).mark_line(strokeDash=[5, 4], color=theme.palette.idle, aria=False).encode(x=x, y=y),
        base.mark_rule(strokeWidth=3, opacity=0.55, aria=False).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(size=90, filled=True, opacity=1).encode(
            y=y, description=alt.Description("label:N"), shape=alt.Shape("kind:N", legend=None)
        ),
    )
    title, found = "Throughput by size", scaling.efficiency_pct
    if not isinstance(found, Unknown):
        ends = f"({found.low:.0f} to {found.high:.0f} %)"
        title = f"{scaling.size} {scaling.unit} reach {found.value:.0f} % of linear {ends}"
    subtitle = "Answers per second by wall clock, with ranges; dashed: linear from the smallest."
    alt_text = "; ".join(str(r["label"]) for r in rows)
    return Drawing(title, subtitle, f"Points by size. {alt_text}.", layered(*layers, width=WIDTH, height=HEIGHT))
