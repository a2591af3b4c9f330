"""How many GPUs of each pool are in use over time, and what does a GPU-hour cost then?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.encode import iso
from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, clip, layered, rows_of
from gpuledger.report.written import percent
from gpuledger.units import count

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.batching.statement import BatchPlan, PoolUse
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 760, 120
MOST_POINTS = 2000


@chart_of("batch_load", document="batch", section="pools", order=1)
def draw(plan: BatchPlan, theme: Theme) -> Drawing | None:
    """A panel per pool: GPUs in use as steps, times of a low price shaded."""
    if not plan.pools:
        return None
    panels = [_panel(plan, pool, theme) for pool in plan.pools]
    title = f"GPUs in use on {count(len(plan.pools), 'pool')}"
    subtitle = (
        "Steps: GPUs in use; the dashed line is all GPUs of the pool. Shaded: below the pool's highest price. UTC."
    )
    words = "; ".join(f"{p.pool}: {percent(p.used_pct)} of {count(p.gpus, 'GPU')} used" for p in plan.pools)
    return Drawing(title, subtitle, f"Steps over time. {words}.", alt.VConcatChart(vconcat=panels, spacing=14))


def _panel(plan: BatchPlan, pool: PoolUse, theme: Theme) -> alt.LayerChart:
    loads = [load for load in plan.loads if load.pool == pool.pool]
    stride = max(1, len(loads) // MOST_POINTS)
    ends = [*(load.start_ms for load in loads[1:]), plan.end_ms]
    steps: list[Row] = [{"at": iso(load.start_ms), "gpus": load.gpus} for load in loads[::stride]]
    steps.append({"at": iso(plan.end_ms), "gpus": loads[-1].gpus})
    most = max(load.usd_per_gpu_h for load in loads)
    cheap: list[Row] = []
    for load, end in zip(loads, ends, strict=True):
        if load.usd_per_gpu_h < most:
            if cheap and cheap[-1]["to"] == iso(load.start_ms):
                cheap[-1]["to"] = iso(end)
            else:
                cheap.append({"at": iso(load.start_ms), "to": iso(end)})
    scale = alt.Scale(domain=[iso(plan.start_ms), iso(plan.end_ms)], type="utc")
    x = alt.X("at:T", title=None, scale=scale, axis=alt.Axis(format="%b %d %H:%M", tickCount=6))
    y = alt.Y("gpus:Q", title=clip(pool.pool, 20), scale=alt.Scale(domain=[0, pool.gpus * 1.05], nice=False),
              axis=alt.Axis(tickCount=4, tickMinStep=1, format="d"))  # fmt: skip
    shade = alt.Chart(rows_of(cheap)).mark_rect(color=theme.palette.wash, aria=False).encode(x=x, x2=alt.X2("to:T"))
    area = alt.Chart(rows_of(steps)).mark_area(interpolate="step-after", color=theme.palette.utilization, opacity=0.75)
    limit = (
        alt.Chart(rows_of([{"gpus": pool.gpus}])).mark_rule(strokeDash=[4, 3], color=theme.palette.muted).encode(y=y)
    )
    return layered(shade, area.encode(x=x, y=y), limit, width=WIDTH, height=HEIGHT)
