"""What would the same jobs cost in a queue?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.batching.statement import dollars
from gpuledger.quick_start import Later
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, along, by_name, layered, rows_of, says
from gpuledger.units import count

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.plan.batching.statement import BatchPlan
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

WIDTH, ROW_HEIGHT = 520, 34
# The widest bar leaves room for its words.
ROOM = 1.5


@chart_of("batch_compared", document="batch", section="compared", order=1)
def draw(plan: BatchPlan, theme: Theme) -> Drawing | None:
    """A bar for the plan and for each queue; None where nothing is paid."""
    ways = (plan.chosen, *plan.runners_up)
    most = max(float(way.usd) for way in ways)
    if not most:
        return None
    rows: list[Row] = []
    for way in ways:
        words = f"{dollars(way.usd)}, {count(way.missed, 'deadline')} missed" if way.missed else dollars(way.usd)
        colour = theme.palette.target if way is plan.chosen else theme.palette.moderate
        rows.append({"name": way.name, "usd": float(way.usd), "words": words, "colour": colour,
                     "label": f"{way.name}: {words}"})  # fmt: skip
    scale = alt.Scale(domain=[0, most * ROOM], nice=False)
    base = alt.Chart(rows_of(rows)).encode(
        y=by_name("name", [str(r["name"]) for r in rows], (0.3, 0.1), labelLimit=200)
    )
    body = layered(
        base.mark_bar().encode(x=along("usd", scale), color=alt.Color("colour:N", scale=None, legend=None), **says()),
        base.mark_text(align="left", dx=8).encode(x=along("usd", scale), text=alt.Text("words:N")),
        width=WIDTH, height=alt.Step(ROW_HEIGHT),
    )  # fmt: skip
    subtitle = "Dollars for the same jobs on the same pools, and deadlines missed."
    saved = plan.runners_up[0].more_usd
    title = f"The plan saves {dollars(saved)} against FIFO" if saved > 0 else "The plan and what queues would cost"
    return Drawing(title, subtitle, "Bars. " + "; ".join(str(r["label"]) for r in rows) + ".", body)
