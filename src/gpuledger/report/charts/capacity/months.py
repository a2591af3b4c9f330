"""How many GPUs are needed month by month, on each basis, next to those there are?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.capacity.words import BASES
from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, by_kind, fixed, layered, rows_of, says
from gpuledger.report.written import gpus
from gpuledger.units import Unknown

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.capacity.statement import CapacityPlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 640, 240


@chart_of("capacity_months", document="capacity", section="months")
def draw(plan: CapacityPlan, theme: Theme) -> Drawing | None:
    """Bars by month and basis with their ranges, all pools together; None where no need is known."""
    rows = _rows(plan)
    if not rows:
        return None
    p = theme.palette
    kinds = {BASES["held"]: p.utilization, BASES["working"]: p.moderate, BASES["realized"]: p.rfu_counters,
             BASES["demand"]: p.efficient}  # fmt: skip
    used = {name: color for name, color in kinds.items() if any(r["basis"] == name for r in rows)}
    top = max([r["high"] for r in rows] + [plan.gpus_now or 0])
    scale = alt.Scale(domain=[0, 1.1 * top], nice=False)
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X("month:O", title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("basis:N", sort=list(used)),
    )
    y = alt.Y("middle:Q", title="GPUs needed", scale=scale)
    color = by_kind(alt.Color, "basis", used, alt.Legend(orient="top", symbolType="square"))
    layers = [
        base.mark_bar(opacity=0.9).encode(y=y, color=color, **says()),
        base.mark_rule(color=p.ink, strokeWidth=1.4, aria=False).encode(
            y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q")
        ),
    ]
    if plan.gpus_now is not None:
        there = alt.Chart(rows_of([{"gpus": plan.gpus_now, "words": f"{gpus(plan.gpus_now)} there"}]))
        at = alt.Y("gpus:Q", scale=scale)
        layers.append(there.mark_rule(color=p.target, strokeWidth=1.6, aria=False).encode(y=at))
        text = there.mark_text(color=p.target, align="left", dx=6, aria=False)
        layers.append(text.encode(y=at, x=fixed(alt.XValue, WIDTH), text=alt.Text("words:N")))
    words = "; ".join(str(r["label"]) for r in rows)
    subtitle = "All pools together, the demand that covers the hours of each month; the thin line is the range."
    return Drawing("GPUs needed by month", subtitle, f"Bars. {words}.", layered(*layers, width=WIDTH, height=HEIGHT))


def _rows(plan: CapacityPlan) -> list[Row]:
    out: list[Row] = []
    for i, month in enumerate(plan.pools[0].months):
        for basis in plan.needs:
            each = [pool.months[i].needs[basis] for pool in plan.pools if i < len(pool.months)]
            known = [n for n in each if not isinstance(n, Unknown)]
            if len(known) < len(each):
                continue
            low, middle, high = (sum(getattr(n, end) for n in known) for end in ("low", "middle", "high"))
            label = f"{month.name}, {BASES[basis]}: {middle} ({low} to {high})"
            out.append({"month": month.name, "basis": BASES[basis], "low": low, "middle": middle, "high": high,
                        "label": label})  # fmt: skip
    return out
