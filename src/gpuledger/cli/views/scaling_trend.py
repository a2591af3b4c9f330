"""How do stored runs look on a terminal, one line a run?"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType

from gpuledger.cli.figures import number, percent
from gpuledger.cli.terminal import escape, text_of
from gpuledger.cli.views.look import plain_table
from gpuledger.scaling.figures import Ranged
from gpuledger.scaling.trend import Trend, TrendPoint
from gpuledger.units import Unknown


def parts(trend: Trend) -> list[RenderableType]:
    """The runs in order, then the slopes."""
    table = plain_table(f"{len(trend.points)} runs, {trend.order}")
    table.add_column("run", overflow="fold")
    table.add_column("started", overflow="fold")
    for head in ("nodes", "success", "answers/s", "warm mean, s"):
        table.add_column(head, justify="right", no_wrap=True)
    for p in trend.points:
        table.add_row(
            escape(Path(p.file).name), escape(_started(p.started)), str(p.nodes), percent(_value(p.success_pct)),
            number(_value(p.throughput_per_s), 3), number(_value(p.warm_latency_mean_s), 3),
        )  # fmt: skip
    lines: list[RenderableType] = [text_of(f"{s.figure}: {s.direction}" + _slope(s.per_run_pct)) for s in trend.slopes]
    moved = [text_of(words) for p in trend.points if p.changes for words in _since(p)]
    return [table, "", *moved, "", *lines]


def _started(instant: str | None) -> str:
    """To the minute, as the other tables have it."""
    return "not given" if instant is None else instant[:16].replace("T", " ")


def _since(point: TrendPoint) -> list[str]:
    """A change of settings first: then the figures are no trend of the same thing."""
    name = Path(point.file).name
    other = [f"{name}: set otherwise than the last: {'; '.join(point.settings)}"] if point.settings else []
    return [*other, f"{name}: beyond noise since the last: {_changed(point)}"]


def _slope(per_run_pct: float | Unknown) -> str:
    return "" if isinstance(per_run_pct, Unknown) else f" ({per_run_pct:+.2f} % of the mean a run)"


def _value(found: Ranged) -> float | Unknown:
    return found if isinstance(found, Unknown) else found.value


def _changed(point: TrendPoint) -> str:
    if not point.changes:
        return ""
    said = []
    for c in point.changes:
        if c.beyond_noise is True:
            by = c.words if isinstance(c.change_pct, Unknown) else f"{c.change_pct.value:+.1f} %"
            said.append(f"{c.figure} {by}")
    return ", ".join(said) or "nothing"
