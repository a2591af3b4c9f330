"""What did one GPU do hour by hour? Minutes of each hour by what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import alt, by_kind, rows_of, says
from gpuledger.report.written import instant, number

if TYPE_CHECKING:
    from gpuledger.efficiency.gpu_history import GpuHistory
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT = 760, 200
# The color of each is that of the bucket most of its time is paid as.
BUCKET = {
    "working": "productive", "light": "stalled", "unrated": "unrated", "waiting": "underused", "idle": "idle",
    "idle, memory held": "idle_held", "activity not recorded": "unobserved",
}  # fmt: skip
ORDER = tuple(BUCKET)


@chart_of("gpu_hours", document="gpu", section="hours")
def draw(gpu: GpuHistory, theme: Theme) -> Drawing | None:
    """A bar per hour, stacked by what the GPU did."""
    roles = {str(kind.name): kind.role for kind in bucket_kinds()}
    colors = {doing: theme.colour(roles[bucket]) for doing, bucket in BUCKET.items()}
    rows = [
        {
            "at": hour.start_ms, "doing": doing, "minutes": minutes, "order": ORDER.index(doing),
            "label": f"{instant(hour.start_ms)} UTC: {doing} {number(minutes)} min",
        }
        for hour in gpu.hours
        for doing, minutes in hour.minutes.items()
        if minutes
    ]  # fmt: skip
    if not rows:
        return None
    legend = alt.Legend(title=None, orient="top", symbolType="square")
    used = {name: color for name, color in colors.items() if any(r["doing"] == name for r in rows)}
    body = (
        alt.Chart(rows_of(rows))
        .mark_bar(size=max(1, min(14, int(WIDTH / len(gpu.hours)) - 1)))
        .encode(
            x=alt.X(
                "at:T", scale=alt.Scale(type="utc"), title=None, axis=alt.Axis(format="%b %d %H:%M", labelOverlap=True)
            ),
            y=alt.Y("minutes:Q", title="minutes", scale=alt.Scale(domain=[0, 60])),
            color=by_kind(alt.Color, "doing", used, legend),
            order=alt.Order("order:O"),
            **says(),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return Drawing("Minutes of each hour", "By what the GPU did, UTC.", f"Bars over {len(gpu.hours)} hours.", body)
