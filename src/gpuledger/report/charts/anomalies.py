"""How did each degrading GPU do against its peers over time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.anomalies.words import WHAT
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, clip, layered, rows_of, time_axis
from gpuledger.report.written import gpus, instant, number

if TYPE_CHECKING:
    from gpuledger.anomalies.statement import AnomalyStatement, Finding
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT, MOST = 330, 120, 8
OWN, PEERS = "This GPU", "Median of its peers"


@chart_of("against_peers", document="anomalies", section="findings", order=1)
def draw(found: AnomalyStatement, theme: Theme) -> Drawing | None:
    """One panel per finding: the GPU, its peers, and when it began."""
    shown = [f for f in found.findings if f.series][:MOST]
    if not shown:
        return None
    panels = [_panel(f, theme) for f in shown]
    rows = [alt.hconcat(*panels[i : i + 2], spacing=30) for i in range(0, len(panels), 2)]
    body = alt.vconcat(*rows, spacing=24).resolve_scale(color="shared", strokeDash="shared")
    first = shown[0]
    more = len([f for f in found.findings if f.series]) - len(shown)
    title = f"{first.gpu}: {WHAT[first.kind]} since {instant(first.since_ms)} UTC"
    left = f" {number(more)} more are in the table." if more else ""
    subtitle = f"The reading that shows it best, by period, UTC; the line marks since when.{left}"
    words = "; ".join(f"{f.gpu}: {WHAT[f.kind]} since {instant(f.since_ms)}" for f in shown)
    return Drawing(title, subtitle, f"Lines of {gpus(len(shown))} against their peers. {words}.", body)


def _panel(f: Finding, theme: Theme) -> alt.LayerChart:
    rows: list[Row] = []
    for p in f.series:
        rows.append({"at": p.at_ms, "value": p.own, "kind": OWN})
        if p.peers is not None:
            rows.append({"at": p.at_ms, "value": p.peers, "kind": PEERS})
    looks = {OWN: theme.colour("bottlenecked"), PEERS: theme.colour("muted")}
    legend = alt.Legend(orient="top", title=None, symbolType="stroke")
    dashes = by_kind(alt.StrokeDash, "kind", {OWN: [1, 0], PEERS: [5, 3]}, legend)
    unit = f.evidence[0].unit
    axis = time_axis(f.series[-1].at_ms - f.series[0].at_ms if f.series else 0, 5)
    lines = (
        alt.Chart(rows_of(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("at:T", scale=alt.Scale(type="utc"), axis=axis),
            y=alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4)),
            color=by_kind(alt.Color, "kind", looks, legend),
            strokeDash=dashes,
            description=alt.Description("kind:N"),
        )
    )
    since = alt.Chart(rows_of([{"at": f.since_ms}])).mark_rule(color=theme.colour("inefficient"), aria=False)
    heading = [clip(f"{f.gpu}: {WHAT[f.kind]}", 52), clip(f.evidence[0].title, 60)]
    title = alt.TitleParams(heading[0], subtitle=heading[1], fontSize=13, anchor="start", frame="group", offset=6)
    layers = [lines] if f.from_start else [lines, since.encode(x=alt.X("at:T"))]
    return layered(*layers, width=WIDTH, height=HEIGHT, title=title)
