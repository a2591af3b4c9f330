"""How much energy did each region draw, hour by hour?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import alt, rows_of, says
from gpuledger.report.written import instant, loose

if TYPE_CHECKING:
    from gpuledger.cost.emissions.statement import EnergyStatement
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT = 760, 200
MOST_HOURS = 24 * 31


@chart_of("energy_hours", document="energy", section="hours")
def draw(found: EnergyStatement, theme: Theme) -> Drawing | None:
    """A bar per hour, stacked by region; the newest month."""
    starts = sorted({h.start_ms for h in found.by_hour})[-MOST_HOURS:]
    rows = [
        {
            "at": h.start_ms, "region": h.region, "kwh": h.energy_kwh,
            "label": f"{instant(h.start_ms)} UTC, {h.region}: {loose(h.energy_kwh)} kWh",
        }
        for h in found.by_hour
        if starts and h.start_ms >= starts[0]
    ]  # fmt: skip
    if not rows:
        return None
    regions = sorted({h.region for h in found.by_hour})
    p = theme.palette
    colors = [p.utilization, p.rfu_power, p.moderate, p.efficient, p.gap, p.inefficient]
    shades = [colors[i % len(colors)] for i in range(len(regions))]
    legend = alt.Legend(title=None, orient="top", symbolType="square") if len(regions) > 1 else None
    body = (
        alt.Chart(rows_of(rows))
        .mark_bar(size=max(1, min(14, int(WIDTH / len(starts)) - 1)))
        .encode(
            x=alt.X(
                "at:T", scale=alt.Scale(type="utc"), title=None, axis=alt.Axis(format="%b %d %H:%M", labelOverlap=True)
            ),
            y=alt.Y("kwh:Q", title="kWh"),
            color=alt.Color("region:N", scale=alt.Scale(domain=regions, range=shades), legend=legend),
            **says(),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return Drawing("Energy of each hour", "kWh of the GPU boards, UTC.", f"Bars over {len(starts)} hours.", body)
