"""Which job runs where and when? A lane per pool, as tall as its GPUs; for few enough jobs to tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.encode import iso
from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, clip, halo, layered, rows_of, says
from gpuledger.report.written import instant, usd
from gpuledger.units import count

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.batching.statement import BatchPlan, Placement
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, LEAST_HEIGHT, MOST_HEIGHT, GPU_PX = 760, 60, 240, 10
MOST_JOBS = 60
LABEL_PX = 6.5


@chart_of("batch_gantt", document="batch", section="schedule", order=1)
def draw(plan: BatchPlan, theme: Theme) -> Drawing | None:
    """A bar for each stretch of a job; None where there are too many jobs for it."""
    if len(plan.placements) > MOST_JOBS:
        return None
    used = [p for p in plan.pools if p.jobs]
    panels = [_panel(plan, pool.pool, pool.gpus, theme) for pool in used]
    title = f"{count(len(plan.placements), 'job')} on {count(len(used), 'pool')}"
    subtitle = "Each bar is a job: as long as it runs, as tall as its GPUs. Times in UTC."
    words = "; ".join(
        f"{p.job} on {p.pool} from {instant(p.start_ms)} to {instant(p.end_ms)}" for p in plan.placements
    )  # fmt: skip
    return Drawing(title, subtitle, f"A Gantt chart. {words}.", alt.VConcatChart(vconcat=panels, spacing=14))


def _panel(plan: BatchPlan, pool: str, gpus: int, theme: Theme) -> alt.LayerChart:
    mine = [p for p in plan.placements if p.pool == pool]
    first, last = min(p.start_ms for p in plan.placements), max(p.end_ms for p in plan.placements)
    height = max(LEAST_HEIGHT, min(MOST_HEIGHT, gpus * GPU_PX))
    rows = bars(mine, gpus)
    colours = [theme.palette.utilization, theme.palette.rfu_power, theme.palette.rfu_counters, theme.palette.moderate,
               theme.palette.efficient, theme.palette.target]  # fmt: skip
    order = {p.job: i for i, p in enumerate(plan.placements)}
    for row in rows:
        row["colour"] = colours[order[row["job"]] % len(colours)]
        row["name"] = _name(row, first, last)
    domain = [iso(first), iso(last)]
    x = alt.X(
        "from:T", title=None, scale=alt.Scale(domain=domain, type="utc"), axis=alt.Axis(format="%a %H:%M", tickCount=8)
    )
    y = alt.Y("low:Q", title=clip(pool, 22), scale=alt.Scale(domain=[0, gpus], nice=False),
              axis=alt.Axis(tickMinStep=1, tickCount=4, format="d"))  # fmt: skip
    base = alt.Chart(rows_of(rows))
    marks = base.mark_rect(stroke=theme.palette.background, strokeWidth=1, opacity=0.85).encode(
        x=x, x2=alt.X2("to:T"), y=y, y2=alt.Y2("high:Q"), color=alt.Color("colour:N", scale=None, legend=None), **says()
    )
    named = alt.Chart(rows_of([r for r in rows if r["name"]])).encode(
        x=alt.X("middle:T", scale=alt.Scale(domain=domain, type="utc")), y=alt.Y("level:Q"), text=alt.Text("name:N")
    )
    return layered(marks, halo(theme, named, baseline="middle", align="center"), width=WIDTH, height=height)


def _name(row: Row, first: int, last: int) -> str:
    room = WIDTH * (row["to_ms"] - row["from_ms"]) / max(1, last - first) / LABEL_PX
    return clip(str(row["job"]), int(room)) if room >= 4 else ""


def bars(placements: list[Placement], gpus: int) -> list[Row]:
    """Rectangles: each stretch on the lowest free GPUs, in several where they are not next to each other."""
    until = [0] * gpus
    out: list[Row] = []
    pieces = sorted((piece.start_ms, i, piece) for i, p in enumerate(placements) for piece in p.pieces)
    for start, i, piece in pieces:
        p = placements[i]
        free = [g for g in range(gpus) if until[g] <= start]
        block = next((free[k : k + p.gpus] for k in range(len(free) - p.gpus + 1)
                      if free[k + p.gpus - 1] - free[k] == p.gpus - 1), free[: p.gpus])  # fmt: skip
        for g in block:
            until[g] = piece.end_ms
        label = (
            f"{p.job}: {count(p.gpus, 'GPU')} on {p.pool}, {instant(start)} to {instant(piece.end_ms)}, {usd(p.usd)}"
        )
        out += [
            {"job": p.job, "from": iso(start), "to": iso(piece.end_ms), "from_ms": start, "to_ms": piece.end_ms,
             "low": low, "high": high, "level": (low + high) / 2, "middle": iso((start + piece.end_ms) // 2),
             "label": label}
            for low, high in _ranges(block)
        ]  # fmt: skip
    return out


def _ranges(block: list[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for g in block:
        if out and out[-1][1] == g:
            out[-1] = (out[-1][0], g + 1)
        else:
            out.append((g, g + 1))
    return out
