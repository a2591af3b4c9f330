"""How long did each request take, in the order they started?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, clip, layered, rows_of, says
from gpuledger.scaling.figures import ColdStart
from gpuledger.units import Unknown, some

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme
    from gpuledger.scaling.statement import ScalingStatement

WIDTH, HEIGHT = 720, 260
ROLES = ("efficient", "bottlenecked", "inefficient", "moderate", "idle")
MOST_NODES = 5


@chart_of("latency", document="scaling", section="distribution", order=3)
def draw(statement: ScalingStatement, theme: Theme) -> Drawing | None:
    """One point per request; cold ones are hollow."""
    facts = statement.facts
    if not facts.samples:
        return None
    names = [n.node for n in facts.nodes][:MOST_NODES]
    samples = [s for s in facts.samples if s.node in names]
    rows: list[Row] = [
        {"node": clip(s.node), "place": s.place, "latency": s.latency_s, "kind": "cold" if s.cold else "warm",
         "label": f"{s.node}, request {s.place}: {s.latency_s:.3f} s{', cold' * s.cold}"}
        for s in samples
    ]  # fmt: skip
    shown = [clip(n) for n in names]
    colours = {name: theme.colour(role) for name, role in zip(shown, ROLES, strict=False)}
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X(
            "place:Q",
            title="request of the node, in the order of starts",
            axis=alt.Axis(grid=False, format="d", tickMinStep=1, tickCount=10),
            scale=alt.Scale(domain=[0, 1.03 * max((s.place for s in samples), default=1)], nice=False),
        ),
        y=alt.Y("latency:Q", title="seconds", scale=alt.Scale(zero=True)),
        color=by_kind(alt.Color, "node", colours, alt.Legend(orient="top", title=None)),
        **says(),
    )
    size = 70 if len(rows) < 200 else 18
    warm = base.transform_filter("datum.kind == 'warm'").mark_circle(size=size, opacity=0.8)
    cold = base.transform_filter("datum.kind == 'cold'").mark_point(size=size * 1.8, strokeWidth=2.5, filled=False)
    colds = [n for n in facts.nodes if isinstance(n.cold_start, ColdStart)]
    if colds:
        named = some([n.node for n in colds])
        title = f"The first requests of {named} are slower than the rest"
    else:
        unseen = any(isinstance(n.cold_start, Unknown) for n in facts.nodes)
        title = "Latency in the order of the requests" if unseen else "No node has a cold start"
    more = f" Only the first {MOST_NODES} nodes are drawn." if len(facts.nodes) > MOST_NODES else ""
    subtitle = f"Latency of each answered request; a ring is a cold one. {facts.samples_note}{more}".strip()
    warm_means = "; ".join(
        f"{n.node} warm {n.warm.mean_s.value:.3f} s" for n in facts.nodes if not isinstance(n.warm.mean_s, Unknown)
    )
    return Drawing(title, subtitle, f"Points by node. {warm_means}.", layered(warm, cold, width=WIDTH, height=HEIGHT))
