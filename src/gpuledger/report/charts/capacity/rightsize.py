"""Which namespaces hold more GPUs than they use?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, by_kind, by_name, clip, layered, rows_of, says
from gpuledger.report.written import gpus, tenth

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.capacity.statement import CapacityPlan, RightSize
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, ROW_HEIGHT, MOST = 520, 34, 15


@chart_of("capacity_rightsize", document="capacity", section="rightsize")
def draw(plan: CapacityPlan, theme: Theme) -> Drawing | None:
    """GPUs held, used at the same time and at work, a row per namespace; None where no owner is known."""
    found = sorted((r for r in plan.rightsize if r.kind == "namespace"), key=lambda r: (-r.held_gpus, r.name))[:MOST]
    if not found:
        return None
    p = theme.palette
    rows = [row for r in found for row in _rows(r)]
    top = max(r.held_gpus for r in found)
    names = [clip(r.name) for r in found]
    y = by_name("name", sort=names, labelLimit=190)
    x = alt.X("gpus:Q", title="GPUs in the hours to cover", scale=alt.Scale(domain=[0, 1.05 * top], nice=False))
    bars = alt.Chart(rows_of(r for r in rows if r["kind"] == "held")).mark_bar(color=p.rule, height=16)
    marks = alt.Chart(rows_of(r for r in rows if r["kind"] != "held")).mark_point(filled=True, size=90, opacity=1)
    kinds = {"used at the same time": p.utilization, "at work": p.moderate}
    shapes = by_kind(alt.Shape, "kind", dict(zip(kinds, ("circle", "diamond"), strict=True)), alt.Legend(orient="top"))
    color = by_kind(alt.Color, "kind", kinds, alt.Legend(orient="top"))
    body = layered(
        bars.encode(y=y, x=x, **says()), marks.encode(y=y, x=x, color=color, shape=shapes, **says()),
        width=WIDTH, height=alt.Step(ROW_HEIGHT),
    )  # fmt: skip
    back = sum(r.give_back for r in found)
    most = sum(r.give_back_shared for r in found)
    title = (
        f"{gpus(back)} can go back as they are, {most} if GPUs are shared" if most else "Namespaces use what they hold"
    )
    words = "; ".join(str(r["label"]) for r in rows)
    return Drawing(title, "The bar is what a namespace holds.", f"Bars and points. {words}.", body)


def _rows(row: RightSize) -> list[Row]:
    parts = {"held": row.held_gpus, "used at the same time": row.used_gpus, "at work": row.working_gpus}
    return [
        {"name": clip(row.name), "kind": kind, "gpus": value, "label": f"{row.name}: {tenth(value)} {kind}"}
        for kind, value in parts.items()
    ]
