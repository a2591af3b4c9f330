"""How long did requests take, and how sure is that? Cold requests and marked warm-up stand apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gpuledger.bench.records import Request, Run
from gpuledger.scaling.analysis.counting import ok_requests
from gpuledger.scaling.analysis.settings import swept
from gpuledger.scaling.coldstart import change_point
from gpuledger.scaling.figures import Distribution, Figure, Latency, Sample
from gpuledger.scaling.statistics import NOTHING, mean_of, quantile_of
from gpuledger.units import Unknown

WITHIN_RATIO = 0.15
MOST_DRAWN = 1500


def seconds(values: Iterable[float | Unknown]) -> list[float]:
    """The known ones."""
    return [v for v in values if not isinstance(v, Unknown)]


def distribution(values: Sequence[float], seed: int) -> Distribution:
    """Everything that is said of a list of seconds; nothing is said of an empty one."""
    n = len(values)
    none = Unknown(NOTHING)
    sd: Figure = float(np.std(values, ddof=1)) if n > 1 else Unknown("a spread needs two samples")
    return Distribution(
        n=n,
        min_s=float(min(values)) if n else none,
        max_s=float(max(values)) if n else none,
        mean_s=mean_of(values, seed),
        sd_s=sd,
        p50_s=quantile_of(values, 0.5, seed),
        p90_s=quantile_of(values, 0.9, seed),
        p95_s=quantile_of(values, 0.95, seed),
        p99_s=quantile_of(values, 0.99, seed),
        consistency_pct=_consistency(values),
    )


def _consistency(values: Sequence[float]) -> Figure:
    if not len(values):
        return Unknown(NOTHING)
    data = np.asarray(values)
    middle = float(np.median(data))
    return 100 * float((np.abs(data - middle) <= WITHIN_RATIO * middle).mean())


def in_order(requests: Iterable[Request]) -> list[Request]:
    """By start; those without one keep their place in the file."""
    listed = list(requests)
    if any(isinstance(r.start_s, Unknown) for r in listed):
        return listed
    return sorted(listed, key=lambda r: float(r.start_s) if not isinstance(r.start_s, Unknown) else 0.0)


def by_node(run: Run) -> dict[str, list[float]]:
    """Latencies of answered requests, node by node, in the order of their start."""
    out: dict[str, list[float]] = {name: [] for name in run.names}
    for r in in_order(ok_requests(run.measured)):
        if not isinstance(r.latency_s, Unknown):
            out[r.node].append(r.latency_s)
    return out


def warm_requests(run: Run) -> list[Request]:
    """Answered requests with a latency, each node's cold ones left out."""
    answered = [r for r in in_order(ok_requests(run.measured)) if not isinstance(r.latency_s, Unknown)]
    cold, _ = split(by_node(run), swept_batches=swept(run))
    seen: dict[str, int] = {}
    out = []
    for r in answered:
        seen[r.node] = seen.get(r.node, 0) + 1
        if seen[r.node] > len(cold[r.node]):
            out.append(r)
    return out


def samples_of(run: Run) -> tuple[tuple[Sample, ...], str]:
    """Latencies to draw, node by node; of a long run every n-th, which is said."""
    cold, warm = split(by_node(run), swept_batches=swept(run))
    out = [
        Sample(name, place, value, place <= len(cold[name]))
        for name in cold
        for place, value in enumerate((*cold[name], *warm[name]), 1)
    ]
    step = -(-len(out) // MOST_DRAWN)
    if step <= 1:
        return tuple(out), ""
    return tuple(
        s for s in out if s.cold or s.place % step == 0
    ), f"Every {step}th answer is drawn, and every cold one."


def split(
    latencies: Mapping[str, Sequence[float]], *, swept_batches: bool
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Cold and warm latencies of each node; a node without a cold start is all warm."""
    cold: dict[str, list[float]] = {}
    warm: dict[str, list[float]] = {}
    for name, values in latencies.items():
        k = 0 if swept_batches else change_point(values)
        first = 0 if isinstance(k, Unknown) else k
        cold[name], warm[name] = list(values[:first]), list(values[first:])
    return cold, warm


def latency_of(run: Run, seed: int) -> Latency:
    """The latencies of a run."""
    latencies = by_node(run)
    cold, warm = split(latencies, swept_batches=swept(run))
    answered = ok_requests(run.measured)
    marked = seconds(r.latency_s for r in run.requests if r.warmup and r.ok)
    return Latency(
        all=distribution([v for values in latencies.values() for v in values], seed),
        warm=distribution([v for values in warm.values() for v in values], seed),
        cold=distribution([v for values in cold.values() for v in values], seed),
        warmup=distribution(marked, seed),
        ttft=distribution(seconds(r.ttft_s for r in answered), seed),
        per_token=distribution(seconds(r.per_token_s for r in answered), seed),
    )
