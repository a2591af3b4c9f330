"""What became of each node's requests?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, by_name, clip, stacked

if TYPE_CHECKING:
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
        high = 0
        for title, field, _ in kinds:
            if count := getattr(n.counts, field):
                words, low, high = f"{n.node}: {count:,} {title.lower()}", high, high + count
                rows.append({"node": clip(n.node), "low": low, "high": high, "kind": title, "label": words})
    totals = [
        {"node": clip(n.node), "at": n.counts.planned, "words": f"{n.counts.ok:,} of {n.counts.planned:,}"}
        for n in nodes
    ]
    legend = alt.Legend(orient="top", symbolType="square", title=None)
    body = stacked(
        theme, rows, totals, y=by_name("node", labelLimit=180), description=alt.Description("label:N"), end="at",
        scale=alt.Scale(domain=[0, max(n.counts.planned for n in nodes) * 1.2], nice=False),
        color=by_kind(alt.Color, "kind", {title: theme.colour(role) for title, _, role in kinds}, legend),
        size={"width": WIDTH, "height": alt.Step(ROW_HEIGHT)},
    )  # fmt: skip
    counts = statement.facts.counts
    gone = counts.planned - counts.ok
    lost = f"{gone:,} of {counts.planned:,} planned requests were not answered"
    alt_text = "; ".join(f"{n.node}: {n.counts.ok} of {n.counts.planned} answered" for n in nodes)
    title, subtitle = (
        lost if gone else "Every request was answered",
        "Planned requests of each node, by what became of them.",
    )
    return Drawing(title, subtitle, f"Bars by node. {alt_text}.", body)
