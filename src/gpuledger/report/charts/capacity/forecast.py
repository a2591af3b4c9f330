"""How did a pool's demand go, where is it going, and when does it pass the GPUs there are?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, layered, rows_of
from gpuledger.report.written import gpus, tenth
from gpuledger.units import Unknown

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.capacity.statement import DayPoint, PoolPlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, HEIGHT = 700, 240
WHAT = {"held": "GPUs held", "working": "GPUs at work", "realized": "GPUs' worth put to use", "demand": "GPUs demanded"}


@chart_of("capacity_forecast", document="capacity", section="forecast")
def draw(pool: PoolPlan, theme: Theme) -> Drawing | None:
    """History, forecast with its range, and the GPUs there are; None without a day of history."""
    if not any(not d.ahead for d in pool.days):
        return None
    p, rows = theme.palette, [_row(d) for d in pool.days]
    tops = [r["high"] for r in rows if r["high"] is not None] + ([pool.gpus_now] if pool.gpus_now else [])
    x = alt.X("day:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(format="%-d %b", tickCount=8, grid=False))
    scale = alt.Scale(domain=[0, 1.08 * max(tops)], nice=False)
    y = alt.Y("middle:Q", title=WHAT[pool.days_of], scale=scale)
    ahead = [r for r in rows if r["ahead"]]
    fan = alt.Chart(rows_of(ahead)).mark_area(color=p.moderate, opacity=0.25, aria=False)
    later = alt.Chart(rows_of(ahead)).mark_line(color=p.moderate, strokeWidth=2.2, strokeDash=[6, 3], aria=False)
    seen = alt.Chart(rows_of(r for r in rows if not r["ahead"]))
    layers = [
        fan.encode(x=x, y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q")),
        seen.mark_line(color=p.utilization, strokeWidth=2.2, aria=False).encode(x=x, y=y),
        seen.mark_point(color=p.utilization, size=18, filled=True, opacity=1).encode(
            x=x, y=y, description=alt.Description("label:N")
        ),
        later.encode(x=x, y=y),
        *_there(pool, x, scale, theme),
    ]
    return Drawing(_title(pool), SUBTITLE, _words(pool), layered(*layers, width=WIDTH, height=HEIGHT))


SUBTITLE = "By day, what is enough for the hours to cover. Solid: observed; dashed: forecast with its range."


def _there(pool: PoolPlan, x: alt.X, scale: alt.Scale, theme: Theme) -> list[alt.Chart]:
    """The line of the GPUs there are."""
    if pool.gpus_now is None:
        return []
    ends: list[Row] = [{"day": d.day, "gpus": pool.gpus_now} for d in (pool.days[0], pool.days[-1])]
    line = alt.Chart(rows_of(ends)).mark_line(color=theme.palette.target, strokeWidth=1.6, aria=False)
    name = alt.Chart(rows_of([ends[0] | {"words": f"{gpus(pool.gpus_now)} there"}]))
    y = alt.Y("gpus:Q", scale=scale)
    words = name.mark_text(color=theme.palette.target, align="left", dx=4, dy=-8, aria=False)
    return [line.encode(x=x, y=y), words.encode(x=x, y=y, text=alt.Text("words:N"))]


def _row(point: DayPoint) -> Row:
    label = f"{point.day}: unobserved" if point.middle is None else f"{point.day}: {tenth(point.middle)} GPUs"
    return {**vars(point), "label": label}


def _title(pool: PoolPlan) -> str:
    found = pool.runs_out
    if isinstance(found, Unknown) or found.expected is None:
        return f"{pool.name}: {WHAT[pool.days_of].lower().replace('gpus', 'GPUs')}, and what is expected"
    first = next(d.day for d in pool.days if d.ahead)
    need = pool.needs[pool.basis]
    if found.expected == first:
        how = " as owners hold them" if pool.basis == "held" else ""
        wanted = "" if isinstance(need, Unknown) else f", {need.middle} needed{how}"
        return f"{pool.name}: short already{wanted}"
    return f"{pool.name} runs out in the week of {found.expected}"


def _words(pool: PoolPlan) -> str:
    last = pool.days[-1]
    if last.middle is None or last.low is None or last.high is None:
        return f"A line of {WHAT[pool.days_of]} in {pool.name}."
    end = f"{tenth(last.middle)} ({tenth(last.low)} to {tenth(last.high)})"
    return f"A line of {WHAT[pool.days_of]} in {pool.name}; expected on {last.day}: {end}."
