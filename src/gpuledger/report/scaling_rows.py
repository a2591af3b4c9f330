"""Which rows does a scaling report give to its tables, as people read them? Every figure is the report's own."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.efficiency.statement import Range
from gpuledger.report.written import loose, tenth, whole
from gpuledger.scaling.figures import BatchPoint, Distribution, Figure, Latency, NodeFigures, Ranged
from gpuledger.scaling.statement import Change, Comparison, Grade, ScalingStatement
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown

Shown = float | int | str | Range | Unknown


@dataclass(frozen=True)
class Words:
    """A name, what is said of it, and a remark."""

    name: str
    said: str
    note: str = ""


@dataclass(frozen=True)
class GradeRow:
    """One line of the scorecard."""

    title: str
    value: str
    grade: str
    change: str
    limits: str


@dataclass(frozen=True)
class PredictionRow:
    """A size that was not run, or was."""

    size: int
    per_s: Shown
    efficiency_pct: float
    beyond: str


@dataclass(frozen=True)
class SpreadRow:
    """Latencies of one kind."""

    name: str
    n: int
    min_s: Shown
    mean_s: Shown
    p50_s: Shown
    p95_s: Shown
    p99_s: Shown
    max_s: Shown
    sd_s: Shown
    consistency_pct: Shown


@dataclass(frozen=True)
class NodeRow:
    """One node against the others."""

    node: str
    gpu: str
    answered: str
    success_pct: Shown
    per_s: Shown
    warm_s: Shown
    tokens_per_s: Shown
    slower_pct: Shown
    status: str
    problems: str


@dataclass(frozen=True)
class MemoryRow:
    """Memory of one node."""

    node: str
    card: str | Unknown
    used: str | Unknown
    size: str | Unknown
    pct: Shown


@dataclass(frozen=True)
class ColdRow:
    """Cold start of one node."""

    node: str
    requests: Shown
    cold_s: Shown
    warm_s: Shown
    over_warm_pct: Shown
    over_mean_pct: Shown
    over_min_pct: Shown
    note: str = ""


@dataclass(frozen=True)
class BatchRow:
    """One batch size."""

    batch: int
    requests: int
    per_s: float
    tokens_per_s: Shown
    latency_s: float
    ttft_ms: Shown
    per_token_ms: Shown
    usd: object
    joules: Shown


@dataclass(frozen=True)
class GainRow:
    """One bottleneck."""

    rank: int
    name: str
    gain_pct: Shown
    why: str


@dataclass(frozen=True)
class OptimizationRow:
    """One change."""

    name: str
    horizon: str
    gain: str
    why: str


@dataclass(frozen=True)
class PublicRow:
    """One published figure."""

    name: str
    what: str
    value: float
    ours: Shown
    unit: str
    source: str


@dataclass(frozen=True)
class ClaimRow:
    """One claim."""

    claim: str
    value: str
    verdict: str
    why: str


@dataclass(frozen=True)
class CheckRow:
    """One mistake that was looked for."""

    title: str
    found: str
    why: str


@dataclass(frozen=True)
class ChangeRow:
    """One figure before and after."""

    figure: str
    before: Shown
    after: Shown
    change_pct: Shown
    words: str


@dataclass(frozen=True)
class SourceRow:
    """One file."""

    file: str
    requests: int
    started: str
    sha256: str


def spanned(found: Ranged) -> Shown:
    """A figure with its interval, as tables write it."""
    return found if isinstance(found, Unknown) else Range(found.low, found.value, found.high, "")


def _short(found: Figure | Ranged | int) -> Shown:
    """A figure that is not known leaves its cell empty where a neighbour says why."""
    if isinstance(found, Unknown):
        return ""
    return found.value if isinstance(found, Interval) else found


def grade_row(g: Grade, s: ScalingStatement) -> GradeRow:
    """One area; its change where an earlier run was given."""
    if isinstance(g.value, Unknown):
        value = str(g.value)
    else:
        tail = {"%": "\u202f%", "x": " x"}.get(g.unit, f" {g.unit}")
        value = f"{_figure(g.value, g.unit)}{tail}"
    return GradeRow(g.title, value, "not graded" if isinstance(g.grade, Unknown) else g.grade, _trend(g, s), g.limits)


def _figure(value: float, unit: str) -> str:
    if unit == "answers":
        return whole(value)
    return tenth(value) if unit == "%" else loose(value)


def _trend(g: Grade, s: ScalingStatement) -> str:
    figure = {"success": "success_pct", "tail": "warm_latency_p95_s"}.get(g.area)
    if not isinstance(s.comparison, Comparison) or figure is None:
        return ""
    return next((c.words for c in s.comparison.changes if c.figure == figure), "")


def spread_row(name: str, d: Distribution, times: float = 1) -> SpreadRow:
    """One list of latencies, in seconds or, with times 1000, in milliseconds."""

    def much(found: Figure | Ranged) -> Shown:
        return times * value if isinstance(value := _short(found), float | int) else ""

    mean = d.mean_s
    spread = mean if isinstance(mean, Unknown) else Interval(*(times * v for v in (mean.value, mean.low, mean.high)))
    return SpreadRow(
        name,
        d.n,
        much(d.min_s),
        spanned(spread) if d.n else "",
        much(d.p50_s),
        much(d.p95_s),
        much(d.p99_s),
        much(d.max_s),
        much(d.sd_s),
        _short(d.consistency_pct),
    )


def spread_rows(latency: Latency) -> tuple[SpreadRow, ...]:
    """Those kinds there are any of."""
    kinds = (
        ("All answers", latency.all, 1),
        ("Warm", latency.warm, 1),
        ("Cold", latency.cold, 1),
        ("Marked as warm-up", latency.warmup, 1),
        ("To the first token, ms", latency.ttft, 1000),
        ("Between tokens, ms", latency.per_token, 1000),
    )
    return tuple(spread_row(name, d, times) for name, d, times in kinds if d.n or name == "All answers")


def node_row(n: NodeFigures) -> NodeRow:
    """One node."""
    gpu = str(n.gpu) if isinstance(n.gpu, Unknown) else n.gpu
    return NodeRow(
        n.node,
        gpu,
        f"{n.counts.ok:,} of {n.counts.planned:,}",
        _short(n.counts.success_pct),
        _short(n.throughput_per_s),
        _short(n.warm.mean_s),
        _short(n.tokens_per_s),
        spanned(n.slower_pct),
        n.status,
        "; ".join(n.problems),
    )


def batch_row(p: BatchPoint) -> BatchRow:
    """One batch size."""
    ttft, each = (f if isinstance(f, Unknown) else 1000 * f for f in (p.ttft_median_s, p.per_token_median_s))
    return BatchRow(
        p.batch, p.requests, p.throughput_per_s, p.tokens_per_s, p.mean_latency_s, ttft, each,
        p.usd_per_million_tokens, p.joules_per_million_tokens,
    )  # fmt: skip


def cold_row(n: NodeFigures) -> ColdRow:
    """One node; the reason where it has none."""
    c = n.cold_start
    if isinstance(c, Unknown):
        return ColdRow(n.node, "", "", "", "", "", "", c.why)
    if c is None:
        return ColdRow(n.node, 0, "", "", "", "", "", "the first requests are not slower than the rest")
    return ColdRow(n.node, c.requests, c.mean_s, c.warm_mean_s, c.over_warm_pct, c.over_mean_pct, c.over_min_pct)


def change_row(c: Change) -> ChangeRow:
    """One figure before and after."""
    return ChangeRow(c.figure, _short(c.before), _short(c.after), spanned(c.change_pct), c.words)
