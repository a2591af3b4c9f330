"""How does throughput grow with the batch, and where does it stop being worth it?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from gpuledger.bench.records import Request, Run
from gpuledger.bench.summary import Level, summary_of
from gpuledger.cost.pricing import PriceChoice
from gpuledger.scaling.analysis.counting import ok_requests
from gpuledger.scaling.figures import Batches, BatchPoint
from gpuledger.scaling.grades import Thresholds
from gpuledger.units import Unknown, ratio


def batches_of(runs: Sequence[Run], limits: Thresholds, choice: PriceChoice | None = None) -> Batches:
    """The curve over every batch size the runs swept."""
    found: dict[int, list[BatchPoint]] = {}
    for run in runs:
        groups: dict[int, list[Request]] = {}
        for r in ok_requests(run.measured):
            if not isinstance(r.batch, Unknown):
                groups.setdefault(r.batch, []).append(r)
        levels = {} if not groups else {x.batch: x for x in summary_of(run, choice or PriceChoice()).levels}
        for batch, members in groups.items():
            if (point := _point(batch, members, levels[batch])) is not None:
                found.setdefault(batch, []).append(point)
    # Of several runs with the same batch the last one stands: it is the newest given.
    points = tuple(members[-1] for _, members in sorted(found.items()))
    if len(points) < 2:
        why = "no sweep: the requests name fewer than two batch sizes"
        return Batches(points, Unknown(why), "")
    return Batches(points, _knee(points, limits.batches.knee_below_ratio), _note(points))


def _point(batch: int, members: Sequence[Request], level: Level) -> BatchPoint | None:
    spans = [(r.start_s, r.end_s) for r in members]
    known = [(s, e) for s, e in spans if not isinstance(s, Unknown) and not isinstance(e, Unknown)]
    latencies = [r.latency_s for r in members if not isinstance(r.latency_s, Unknown)]
    if len(known) < len(members) or not latencies:
        return None
    span = max(e for _, e in known) - min(s for s, _ in known)
    if span <= 0:
        return None
    tokens = [r.output_tokens for r in members if not isinstance(r.output_tokens, Unknown)]
    short = Unknown("some answers do not say how many tokens they have")
    return BatchPoint(
        batch=batch,
        requests=len(members),
        throughput_per_s=len(members) / span,
        tokens_per_s=ratio(sum(tokens), span, "no time passed") if len(tokens) == len(members) else short,
        mean_latency_s=sum(latencies) / len(latencies),
        ttft_median_s=level.ttft_median_s,
        per_token_median_s=level.per_token_median_s,
        usd_per_million_tokens=level.usd_per_million_tokens,
        joules_per_million_tokens=level.joules_per_million_tokens,
    )


def _knee(points: Sequence[BatchPoint], below: float) -> int | Unknown:
    """The last batch before growth falls under that share of being proportional."""
    for first, second in itertools.pairwise(points):
        if first.batch <= 0 or second.batch <= first.batch:
            continue
        growth = math.log(_rate(second) / _rate(first)) / math.log(second.batch / first.batch)
        if growth < below:
            return first.batch
    return Unknown(f"throughput still grew at the largest batch, {points[-1].batch}: sweep further")


def _rate(point: BatchPoint) -> float:
    return point.throughput_per_s if isinstance(point.tokens_per_s, Unknown) else max(point.tokens_per_s, 1e-12)


def _note(points: Sequence[BatchPoint]) -> str:
    gain = max(_rate(p) for p in points) / _rate(points[0])
    top = max(points, key=_rate).batch
    return f"batch {top} does {gain:.1f} times what batch {points[0].batch} does"
