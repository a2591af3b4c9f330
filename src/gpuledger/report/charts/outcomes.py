"""What became of each node's requests?"""

from __future__ import annotations

import altair as alt

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, along, by_name, clip, layered, rows_of
from gpuledger.report.theme import Theme
from gpuledger.scaling.statement import ScalingStatement

WIDTH, ROW_HEIGHT = 560, 38
MOST = 24


@chart_of("outcomes", document="scaling", section="nodes", order=2)
def draw(statement: ScalingStatement, theme: Theme) -> Drawing | None:
    """Answered, failed and lost, stacked, one bar per node."""
    nodes = statement.facts.nodes[:MOST]
    if not any(n.counts.planned for n in nodes):
        return None
    kinds = (("Answered", "ok", "efficient"), ("Failed", "failed", "inefficient"), ("Lost", "lost", "bottlenecked"))
    rows: list[Row] = []
    for n in nodes:
        low = 0
        for title, field, role in kinds:
            count = getattr(n.counts, field)
            if count:
                words = f"{n.node}: {count:,} {title.lower()}"
                rows.append({"node": clip(n.node), "low": low, "high": low + count, "kind": title, "label": words}
                            | {"colour": theme.colour(role)})  # fmt: skip
            low += count
    totals = [
        {"node": clip(n.node), "at": n.counts.planned, "words": f"{n.counts.ok:,} of {n.counts.planned:,}"}
        for n in nodes
    ]
    top = max(n.counts.planned for n in nodes) * 1.2
    scale = alt.Scale(domain=[0, top], nice=False)
    y = by_name("node", labelLimit=180)
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=[k[0] for k in kinds], range=[theme.colour(k[2]) for k in kinds]),
        legend=alt.Legend(orient="top", symbolType="square", title=None),
    )
    bars = (
        alt.Chart(rows_of(rows))
        .mark_bar(stroke=theme.palette.background, strokeWidth=1)
        .encode(y=y, x=along("low", scale), x2="high:Q", color=colour, description="label:N")
    )
    words = (
        alt.Chart(rows_of(totals))
        .mark_text(align="left", dx=8, fontWeight="bold")
        .encode(y=y, x=along("at", scale), text="words:N")
    )
    counts = statement.facts.counts
    gone = counts.planned - counts.ok
    title = (
        f"{gone:,} of {counts.planned:,} planned requests were not answered" if gone else "Every request was answered"
    )
    alt_text = "; ".join(f"{n.node}: {n.counts.ok} of {n.counts.planned} answered" for n in nodes)
    body = layered(bars, words, width=WIDTH, height=alt.Step(ROW_HEIGHT))
    return Drawing(title, "Planned requests of each node, by what became of them.", f"Bars by node. {alt_text}.", body)
