"""How did the price of the chosen zones move before the plan?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import layered, rows_of
from gpuledger.report.written import usd

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.spot.statement import SpotPlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 720, 240


@chart_of("spot_prices", document="spot", section="pools")
def draw(plan: SpotPlan, theme: Theme) -> Drawing | None:
    """A line for each zone, with holes where nothing was observed."""
    rows = [
        {"name": past.name, "day": day.isoformat(), "usd": value}
        for past in plan.past
        for day, value in zip(past.days, past.usd_h, strict=True)
    ]
    known = [value for past in plan.past for value in past.usd_h if value is not None]
    if not known:
        return None
    p = theme.palette
    colours = [p.target, p.moderate, p.utilization, p.rfu_counters, p.rfu_power, p.gap][: len(plan.past)]
    names = [past.name for past in plan.past]
    colour = alt.Color(
        "name:N", scale=alt.Scale(domain=names, range=colours), legend=alt.Legend(columns=2, labelLimit=340)
    )
    line = (
        alt.Chart(rows_of(rows))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("day:T", title=None),
            y=alt.Y("usd:Q", title="dollars per hour", scale=alt.Scale(domain=[0, 1.08 * max(known)])),
            color=colour,
        )
    )
    last = next((v for v in reversed(plan.past[0].usd_h) if v is not None), known[-1])
    title = f"{plan.past[0].name}: {usd(last)} per hour on {plan.prices_dated}"
    subtitle = f"Spot price of the whole job in the {len(plan.past[0].days) - 1} days before; holes were not observed."
    words = f"Lines from {usd(min(known))} to {usd(max(known))} per hour"
    return Drawing(title, subtitle, f"{words}.", layered(line, width=WIDTH, height=HEIGHT))
