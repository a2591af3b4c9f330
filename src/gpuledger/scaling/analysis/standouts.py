"""Which requests stand out on each node, how far are the nodes apart by each metric, and what kind of study is this?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpuledger.bench.records import Request, Run, present
from gpuledger.scaling.analysis.latency import cold_and_warm, flat
from gpuledger.scaling.figures import Distribution, Facts, Figure, NodeFigures, Ranged
from gpuledger.scaling.grades import Thresholds, Variance, grade_of
from gpuledger.scaling.statistics import Interval, ratio_of_means
from gpuledger.units import Unknown

What = Literal["fastest", "slowest", "outlier", "best token rate", "worst token rate"]
Status = Literal["equal", "good", "moderate", "critical"]
# Tukey's fence: answers beyond the upper quartile by this many interquartile ranges stand out.
FENCE = 1.5
LEAST_FOR_FENCE = 4
MOST_OUTLIERS = 5


@dataclass(frozen=True)
class Standout:
    """One request that stands out, by its id in the results. `value` is in seconds, or in tokens per second."""

    node: str
    what: What
    request: str
    value: float
    unit: Literal["s", "tokens/s"]


@dataclass(frozen=True)
class MetricApart:
    """One metric over the nodes: lowest and highest, and how far apart in percent of the lower (success: in points)."""

    metric: str
    unit: str
    low_node: str
    low: float
    high_node: str
    high: float
    apart_pct: float
    status: Status


@dataclass(frozen=True)
class Rating:
    """How consistent a node's answers are, as the scorecard grades it: all of them, and the warm ones."""

    node: str
    all: str | Unknown
    warm: str | Unknown


@dataclass(frozen=True)
class Detail:
    """What else a reader asks: the kind of study, when to look again, requests that stand out, nodes by metric."""

    study: str
    next_review: str
    standouts: tuple[Standout, ...]
    metrics_apart: tuple[MetricApart, ...]
    ratings: tuple[Rating, ...]
    latency_of_baseline_pct: Ranged
    mean_input_tokens: Figure
    mean_output_tokens: Figure


def standouts_of(run: Run) -> tuple[Standout, ...]:
    """Fastest, slowest and outlying answers of each node, then the best and the worst token rate of all."""
    return (*(one for name in run.names for one in _of_node(run, name)), *_token_rates(run))


def _of_node(run: Run, name: str) -> Iterator[Standout]:
    own = [(r, v) for r in run.answered if r.node == name and not isinstance(v := r.latency_s, Unknown)]
    if not own:
        return
    ordered = sorted(own, key=lambda pair: pair[1])
    yield _seconds(name, "fastest", *ordered[0])
    yield _seconds(name, "slowest", *ordered[-1])
    if len(ordered) >= LEAST_FOR_FENCE:
        low, high = np.quantile([value for _, value in ordered], (0.25, 0.75))
        beyond = [pair for pair in reversed(ordered) if pair[1] > high + FENCE * (high - low)]
        yield from (_seconds(name, "outlier", *pair) for pair in beyond[:MOST_OUTLIERS])


def _seconds(node: str, what: What, request: Request, value: float) -> Standout:
    return Standout(node, what, str(request.request), float(value), "s")


def _token_rates(run: Run) -> Iterator[Standout]:
    rates = [
        (r, r.output_tokens / r.latency_s)
        for r in run.answered
        if not isinstance(r.output_tokens, Unknown) and not isinstance(r.latency_s, Unknown) and r.latency_s > 0
    ]
    if len(rates) < 2:
        return
    ends: tuple[tuple[What, Callable[..., tuple[Request, float]]], ...] = (
        ("best token rate", max),
        ("worst token rate", min),
    )
    for what, end in ends:
        request, rate = end(rates, key=lambda pair: pair[1])
        yield Standout(request.node, what, str(request.request), rate, "tokens/s")


def metrics_apart(nodes: Sequence[NodeFigures], limits: Variance) -> tuple[MetricApart, ...]:
    """Each metric that two nodes or more have."""
    metrics: tuple[tuple[str, str, Callable[[NodeFigures], Figure | Ranged]], ...] = (
        ("answers per second", "/s", lambda n: n.throughput_per_s),
        ("warm latency", "s", lambda n: n.warm.mean_s),
        ("tokens per second", "/s", lambda n: n.tokens_per_s),
        ("memory in use", "GB", lambda n: _gb(n.memory_used_bytes)),
        ("requests answered", "%", lambda n: n.counts.success_pct),
    )
    found = []
    for name, unit, figure in metrics:
        known = [(_middle(v), n.node) for n in nodes if not isinstance(v := figure(n), Unknown)]
        if len(known) < 2:
            continue
        (low, low_node), (high, high_node) = min(known), max(known)
        if unit == "%":
            apart = high - low
        elif low > 0:
            apart = 100 * (high / low - 1)
        else:
            continue
        found.append(MetricApart(name, unit, low_node, low, high_node, high, apart, limits.status(apart)))
    return tuple(found)


def ratings_of(nodes: Sequence[NodeFigures], limits: Thresholds) -> tuple[Rating, ...]:
    """Every node's distributions, graded."""

    def mark(d: Distribution) -> str | Unknown:
        return grade_of("consistency", d.consistency_pct, limits).mark

    return tuple(Rating(n.node, mark(n.latency), mark(n.warm)) for n in nodes)


def _middle(value: float | Interval) -> float:
    return value.value if isinstance(value, Interval) else value


def _gb(value: int | Unknown) -> Figure:
    return value if isinstance(value, Unknown) else value / 1e9


def latency_against(run: Run, baseline: Run | Unknown, seed: int) -> Ranged:
    """Warm mean latency over that of the baseline, in percent."""
    if isinstance(baseline, Unknown):
        return baseline
    found = ratio_of_means(flat(cold_and_warm(run)[1]), flat(cold_and_warm(baseline)[1]), seed)
    return found if isinstance(found, Unknown) else found.each(lambda v: 100 * v)


def study_of(facts: Facts, *, compared: bool) -> str:
    """What kind of study the results make."""
    kinds = []
    if len(facts.scaling.curve.points) >= 3:
        kinds.append(f"scaling over {len(facts.scaling.curve.points)} sizes")
    elif facts.scaling.refused is None:
        kinds.append("scaling against a measured baseline")
    if len(facts.batches.points) > 1:
        kinds.append(f"sweep of {len(facts.batches.points)} batch sizes")
    if compared:
        kinds.append("comparison with an earlier run")
    if facts.nodes_n > 1:
        kinds.append(f"comparison of {facts.nodes_n} nodes")
    return ", ".join(kinds) or "one node under load"


def next_review(verdict: str, first: str, missing: Sequence[str]) -> str:
    """When to look again: after what stands in the way, or with the next change."""
    if verdict == "not ready":
        return f"after fixing: {first[:1].lower()}{first[1:]}" if first else "after fixing what is against it"
    if missing:
        return f"with what is missing: {missing[0]}"
    return "with the next change of model, GPUs, software or load"


def mean_tokens(run: Run) -> tuple[Figure, Figure]:
    """Mean tokens that went in and came out of an answered request."""
    none = Unknown("no request reports its tokens")
    sides = (present(getattr(r, side) for r in run.answered) for side in ("input_tokens", "output_tokens"))
    first, second = (sum(found) / len(found) if found else none for found in sides)
    return first, second
