"""What do a million tokens cost in dollars and joules, and at which batch size does throughput stop growing?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal

from gpuledger.bench.records import SOME_TOKENS, Request, Run, present
from gpuledger.bench.summary import Level, hourly_price, levels_of, metered_j, per_million
from gpuledger.cost.pricing import PriceChoice
from gpuledger.scaling.figures import Batches, BatchPoint, Cost, Figure, Telemetry, Tokens
from gpuledger.scaling.grades import Thresholds
from gpuledger.units import Unknown


def cost_of(run: Run, wall_s: Figure, tokens: Tokens, telemetry: Telemetry, choice: PriceChoice) -> Cost:
    """Every GPU of the run is paid for from its start to its end, busy or not."""
    made, energy = tokens.output_tokens, telemetry.energy_j
    if isinstance(energy, Unknown) and not isinstance(metered := metered_j(run.answered), Unknown):
        energy = metered
    joules = made if isinstance(made, Unknown) else per_million(energy, made)
    price = hourly_price(run, choice)
    if isinstance(wall_s, Unknown) or isinstance(price, Unknown) or not price.gpus:
        none = next((p for p in (wall_s, price) if isinstance(p, Unknown)), Unknown("the run has no GPU"))
        return Cost(none, str(none), none, none, none, none, joules)
    hours = Decimal(repr(wall_s)) / 3600
    usd, low, high = (v * hours for v in (price.usd_per_h, price.low_usd, price.high_usd))
    each, least, most = (per_million(v, made) for v in (usd, low, high))
    return Cost(price.usd_per_h / price.gpus, price.words, usd, each, least, most, joules)


def batches_of(runs: Sequence[Run], limits: Thresholds, choice: PriceChoice) -> Batches:
    """The curve over every batch size that the runs swept; of several runs with the same batch the last counts."""
    found: dict[int, BatchPoint] = {}
    for run in runs:
        for level in levels_of(run, hourly_price(run, choice)):
            if (point := _point([r for r in run.answered if r.batch == level.batch], level)) is not None:
                found[level.batch] = point
    points = tuple(point for _, point in sorted(found.items()))
    if len(points) < 2:
        return Batches(points, Unknown("no sweep: the requests name fewer than two batch sizes"), "")
    return Batches(points, _knee(points, limits.batches.knee_below_ratio), _note(points))


def _point(members: Sequence[Request], level: Level) -> BatchPoint | None:
    spans, latencies = present(r.span_s for r in members), present(r.latency_s for r in members)
    if len(spans) < len(members) or not latencies:
        return None
    seconds = max(e for _, e in spans) - min(s for s, _ in spans)
    if seconds <= 0:
        return None
    tokens = present(r.output_tokens for r in members)
    return BatchPoint(
        batch=level.batch,
        requests=len(members),
        throughput_per_s=len(members) / seconds,
        tokens_per_s=sum(tokens) / seconds if len(tokens) == len(members) else Unknown(SOME_TOKENS),
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
    return f"batch {top} has {gain:.1f} times the throughput of batch {points[0].batch}"
