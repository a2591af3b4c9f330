"""What is in the scaling report? The figures of a run, the judgments on them, and what a single page says of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from gpuledger.encode import Json
from gpuledger.scaling.figures import Facts, Figure, NodeFigures, Ranged, Scaling
from gpuledger.units import Unknown, known

if TYPE_CHECKING:
    from gpuledger.scaling.analysis.standouts import Detail
    from gpuledger.scaling.grades import Thresholds

Word = Literal["supported", "contradicted", "cannot tell"]
Horizon = Literal["immediate", "1-3 months", "later"]
Level = Literal["not ready", "cannot tell", "ready as far as measured"]
HORIZONS = ("immediate", "1-3 months", "later")
NAMED = 3


@dataclass(frozen=True)
class Grade:
    """One line of the scorecard; the grade is unknown where the figure is. `mark`: with a plus or a minus."""

    area: str
    title: str
    value: Figure
    unit: str
    grade: str | Unknown
    mark: str | Unknown
    limits: str
    essential: bool


@dataclass(frozen=True)
class Check:
    """One usual mistake of such reports, and whether this run or its claims make it."""

    check: str
    title: str
    caught: bool
    why: str


@dataclass(frozen=True)
class Verdict:
    """The verdict of the run on a claim about it."""

    claim: str
    value: Any
    node: str | None
    verdict: Word
    why: str


@dataclass(frozen=True)
class Cause:
    """A possible cause and the evidence of the run for or against it."""

    name: str
    found: bool | Unknown
    evidence: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bottleneck:
    """What holds the run back; `gain_pct`: the throughput that fixing it would add."""

    rank: int
    name: str
    gain_pct: Figure
    why: str


@dataclass(frozen=True)
class Optimization:
    """A change, its gain, and what that rests on."""

    name: str
    horizon: Horizon
    gain: str
    basis: str
    why: str


@dataclass(frozen=True)
class Readiness:
    """Whether the run shows readiness for production: what is against it, unknown, or passed."""

    verdict: Level
    against: tuple[str, ...]
    unknown: tuple[str, ...]
    passed: tuple[str, ...]


@dataclass(frozen=True)
class PublicFigure:
    """A published figure for the same model and GPU, compared with `ours`."""

    model: str
    gpu: str
    what: str
    value: float
    unit: str
    source: str
    as_of: str
    ours: Figure
    note: str


@dataclass(frozen=True)
class Change:
    """One figure before and after, and whether the difference is beyond noise."""

    figure: str
    before: float | Unknown
    after: float | Unknown
    change_pct: Ranged
    beyond_noise: bool | Unknown
    words: str


@dataclass(frozen=True)
class Comparison:
    """This run against an earlier one."""

    before_file: str
    after_file: str
    settings: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class ScalingStatement:
    """The whole report; as JSON the main figures are at the top under their own names."""

    headline: str
    second: str
    facts: Facts
    grades: tuple[Grade, ...]
    overall: str | Unknown
    overall_words: str
    checks: tuple[Check, ...]
    claims: tuple[Verdict, ...]
    causes: tuple[Cause, ...]
    bottlenecks: tuple[Bottleneck, ...]
    optimizations: tuple[Optimization, ...]
    public: tuple[PublicFigure, ...]
    public_words: str
    readiness: Readiness
    summary: tuple[str, ...]
    recommendations: tuple[tuple[str, tuple[str, ...]], ...]
    comparison: Comparison | Unknown
    detail: Detail

    def as_json(self) -> Json:
        """A figure with an interval is {value, low, high}, except for the main ones, whose interval is next to them."""
        f = self.facts
        lead = {
            "headline": [self.headline, self.second],
            "file": f.file,
            "results": f.files,
            "throughput_per_s": _point(f.throughput_per_s),
            "throughput_interval": known(f.throughput_per_s),
            "success_pct": _point(f.counts.success_pct),
        }
        none = {} if f.latency.all.n else {"mean": f.latency.all.mean_s}
        shaped = {
            "latency_s": {**f.latency.all.as_json(), **{name: getattr(f.latency, name) for name in _KINDS}, **none},
            "nodes": [_node(n) for n in f.nodes],
            "scaling": _scaling(f.scaling),
            "grades": {g.area: g for g in self.grades},
            "overall_grade": self.overall,
            "recommendations": dict(self.recommendations),
        }
        facts = {name: getattr(f, name) for name in _FACTS}
        return lead | shaped | facts | {name: getattr(self, name) for name in _OWN} | vars(self.detail)


_KINDS = ("warm", "cold", "warmup", "ttft", "per_token")
_FACTS = (
    "counts", "wall_s", "wall_words", "inverse_latency_per_s", "in_flight", "tokens", "batches", "memory_pct",
    "telemetry", "cost", "factors", "gpus", "model", "client_bottleneck", "config", "samples", "samples_note",
    "sources", "faults", "assumptions", "seed",
)  # fmt: skip
_OWN = (
    "overall_words", "claims", "checks", "causes", "bottlenecks", "optimizations", "public", "public_words",
    "readiness", "summary", "comparison",
)  # fmt: skip


def _point(found: Ranged) -> Figure:
    return found if isinstance(found, Unknown) else found.value


def _node(node: NodeFigures) -> Json:
    own = {f.name: getattr(node, f.name) for f in fields(node)}
    spreads = {"latency_s": own.pop("latency"), "warm_latency_s": own.pop("warm")}
    return {"node": node.node, "success_pct": _point(node.counts.success_pct), **own, **spreads}


def _scaling(scaling: Scaling) -> Json:
    """Without a baseline only the efficiency is listed as unknown: its parts have the same reason."""
    found = scaling.efficiency_pct
    low, high = (None, None) if isinstance(found, Unknown) else (found.low, found.high)
    own = {f.name: getattr(scaling, f.name) for f in fields(scaling)}
    rest = own if scaling.refused is None else {k: v if k == "curve" else known(v) for k, v in own.items()}
    return {**rest, "efficiency_pct": _point(found), "low_pct": low, "high_pct": high, "why": scaling.refused}


def headline(facts: Facts, ready: Readiness, holds: Sequence[Bottleneck]) -> tuple[str, str]:
    """The result in one sentence, and the first thing to do in another."""
    counts, rate = facts.counts, facts.throughput_per_s
    nodes = f"{facts.nodes_n} node{'s' * (facts.nodes_n != 1)}"
    done = f"{counts.ok:,} of {counts.planned:,} requests answered on {nodes}"
    if isinstance(rate, Unknown):
        return f"{done}; the rate is not known", _first(holds, ready)
    shown = f"{rate.value:,.1f}" if rate.value >= 10 else f"{rate.value:.2f}"
    return f"{done}: {shown} per second by wall clock", _first(holds, ready)


def _first(holds: Sequence[Bottleneck], ready: Readiness) -> str:
    verdict = {"not ready": "Not ready for production", "cannot tell": "Readiness is not known"}.get(
        ready.verdict, "Ready as far as measured"
    )
    why = (ready.against or ready.unknown or ready.passed)[:1]
    first = f"{verdict}: {why[0]}." if why else f"{verdict}."
    for hold in holds:
        if not isinstance(hold.gain_pct, Unknown):
            return f"{first} Largest possible gain: {hold.name.lower()} (+{hold.gain_pct:.0f} % throughput)."
    return first


def summary(facts: Facts, ready: Readiness, holds: Sequence[Bottleneck], checks: Sequence[Check]) -> tuple[str, ...]:
    """The whole report in a few sentences."""
    counts, out = facts.counts, []
    if not isinstance(counts.success_pct, Unknown):
        out.append(
            f"{counts.success_pct.value:.1f} % of planned requests were answered ({counts.ok} of {counts.planned}; "
            f"{counts.failed} failed, {counts.lost} lost)."
        )
    rate = facts.throughput_per_s
    if not isinstance(rate, Unknown) and not isinstance(facts.wall_s, Unknown):
        out.append(
            f"Throughput is {rate.value:.3g}/s ({rate.low:.3g} to {rate.high:.3g}) over {facts.wall_s:.2f} s of wall "
            "clock."
        )
    scaling = facts.scaling
    if isinstance(scaling.efficiency_pct, Unknown):
        out.append(f"Scaling efficiency is not known: {scaling.refused}.")
    else:
        found = scaling.efficiency_pct
        linear = "above linear" if scaling.superlinear else "not shown to be above linear"
        out.append(f"Scaling efficiency is {found.value:.1f} % ({found.low:.1f} to {found.high:.1f} %), {linear}.")
    warm = facts.latency.warm.mean_s
    if not isinstance(warm, Unknown):
        out.append(f"A warm request takes {warm.value:.3f} s on average ({warm.low:.3f} to {warm.high:.3f} s).")
    out += [f"{h.name}: {h.why}{_gain(h)}." for h in holds[:NAMED]]
    if caught := [c.title.lower() for c in checks if c.caught]:
        out.append(f"Mistakes found: {', '.join(caught)}.")
    out.append(f"Readiness: {ready.verdict}.")
    return tuple(out)


def _gain(hold: Bottleneck) -> str:
    return "" if isinstance(hold.gain_pct, Unknown) else f"; fixing it adds {hold.gain_pct:.0f} % throughput"


def recommendations(
    facts: Facts, changes: Sequence[Optimization], limits: Thresholds
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What to do now, in the next months, later; what is unknown is measured first."""
    now: list[str] = []
    need = limits.readiness.answers_per_node_from
    if any(n.counts.ok < need for n in facts.nodes):
        now.append(f"Run at least {need} requests on every node before judging latency or readiness.")
    if facts.scaling.refused and facts.nodes_n > 1:
        now.append("Measure one node with the same requests and give it as the baseline.")
    if isinstance(facts.telemetry.gpu_util_pct, Unknown):
        now.append("Record telemetry with the run, so that utilization, energy and memory are known.")
    if facts.scaling.curve.refused and facts.nodes_n > 1:
        now.append("Run three sizes or more (1, 2 and 4 nodes) before planning for 4 or 8.")
    by_horizon: dict[str, list[str]] = {h: [] for h in HORIZONS}
    for change in changes:
        by_horizon[change.horizon].append(f"{change.name} ({change.gain}).")
    by_horizon["immediate"] += now
    return tuple((h, tuple(by_horizon[h])) for h in HORIZONS)
