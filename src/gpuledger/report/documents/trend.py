"""What does the trend of stored benchmark runs show? One line per run, what moved beyond noise, and the slopes."""

from __future__ import annotations

from pathlib import Path

from gpuledger.encode import encode
from gpuledger.report.document import Block, Bullets, Document
from gpuledger.report.documents import document_for
from gpuledger.report.tables import make_table, styled
from gpuledger.report.written import amount, loose
from gpuledger.scaling.figures import Ranged
from gpuledger.scaling.trend import Slope, Trend, TrendPoint
from gpuledger.units import Unknown

HEADS = ("Run", "Started", "Nodes", "Success", "Answers/s", "Warm mean, s")


@document_for(Trend)
def trend_document(trend: Trend) -> Document:
    """The runs in order, then what changed from one to the next."""
    points = trend.points
    rows = [
        (
            Path(p.file).name, _started(p.started), str(p.nodes), styled(_value(p.success_pct), "percent"),
            styled(_value(p.throughput_per_s), "factor"), styled(_value(p.warm_latency_mean_s), "factor"),
        )
        for p in points
    ]  # fmt: skip
    changes = [words for p in points if p.changes for words in _since(p)]
    summary: list[Block] = [make_table("runs", "Runs", HEADS, "wwnnnn", rows, screen_rows=len(rows))]
    return Document(
        name="trend",
        kind="Trend",
        title=f"Trend of {amount(str(len(points)), 'run')}",
        headline=_headline(points),
        facts=[amount(str(len(points)), "run"), f"order: {trend.order}"],
        summary=[
            *summary,
            Bullets([f"{s.figure}: {_direction(s)}" for s in trend.slopes], "Slope over the runs"),
            Bullets(changes, "Changes beyond noise, from run to run"),
        ],
        data=lambda: encode("scaling_trend", trend),
    )


def _headline(points: tuple[TrendPoint, ...]) -> str:
    runs = amount(str(len(points)), "run")
    first, last = points[0].throughput_per_s, points[-1].throughput_per_s
    if isinstance(first, Unknown) or isinstance(last, Unknown):
        return runs
    return f"{runs}: {loose(first.value)} answers per second in the first, {loose(last.value)} in the last"


def _direction(s: Slope) -> str:
    slope = "" if isinstance(s.per_run_pct, Unknown) else f" ({s.per_run_pct:+.2f} % of the mean per run)"
    return f"{s.direction}{slope}"


def _started(instant: str | None) -> str:
    """To the minute, as in the other tables."""
    return "not given" if instant is None else instant[:16].replace("T", " ")


def _since(point: TrendPoint) -> list[str]:
    """A change of settings first: then the figures are not a trend of the same thing."""
    name = Path(point.file).name
    settings = [f"{name}: settings changed: {'; '.join(point.settings)}"] if point.settings else []
    moved = [
        f"{c.figure} {c.words if isinstance(c.change_pct, Unknown) else f'{c.change_pct.value:+.1f} %'}"
        for c in point.changes
        if c.beyond_noise is True
    ]
    return [*settings, f"{name}: {', '.join(moved) or 'nothing'}"]


def _value(found: Ranged) -> float | Unknown:
    return found if isinstance(found, Unknown) else found.value
