"""How long did requests take, how sure is that, and which of them were cold? Marked warm-up stays apart.

A cold start is one change point in the order of starts. The logarithms of the first k latencies are compared with the
rest (Student's t with the rest's own scatter, k from 1 to a quarter of all); the k that leaves least unexplained is
taken, and its error is shared among all k tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpuledger.bench.records import Request, Run, present
from gpuledger.efficiency.trend import two_sided_p
from gpuledger.scaling.analysis.counting import swept
from gpuledger.scaling.figures import ColdStart, Distribution, Figure, Latency, Sample
from gpuledger.scaling.statistics import NOTHING, mean_of, quantile_of
from gpuledger.units import Unknown

WITHIN_RATIO = 0.15
MOST_DRAWN = 1500
LEAST_SAMPLES = 4
ERROR_P = 0.01
SLOWER_BY_RATIO = 0.1  # a start that is slower by less does not count as cold, however sure
Seconds = dict[str, list[float]]


def distribution(values: Sequence[float], seed: int) -> Distribution:
    """All figures of a list of seconds; unknown for an empty one."""
    n, none = len(values), Unknown(NOTHING)
    return Distribution(
        n=n,
        min_s=float(min(values)) if n else none,
        max_s=float(max(values)) if n else none,
        mean_s=mean_of(values, seed),
        sd_s=float(np.std(values, ddof=1)) if n > 1 else Unknown("a standard deviation needs two samples"),
        p50_s=quantile_of(values, 0.5, seed),
        p90_s=quantile_of(values, 0.9, seed),
        p95_s=quantile_of(values, 0.95, seed),
        p99_s=quantile_of(values, 0.99, seed),
        consistency_pct=_consistency(values) if n else none,
    )


def _consistency(values: Sequence[float]) -> Figure:
    data = np.asarray(values)
    middle = float(np.median(data))
    return 100 * float((np.abs(data - middle) <= WITHIN_RATIO * middle).mean())


def _timed(run: Run) -> list[Request]:
    """Answers with a latency by start; in file order where a start is unknown."""
    answered = run.answered
    starts = present(r.start_s for r in answered)
    if len(starts) == len(answered):
        order = sorted(range(len(answered)), key=starts.__getitem__)
        answered = tuple(answered[i] for i in order)
    return [r for r in answered if not isinstance(r.latency_s, Unknown)]


def by_node(run: Run) -> Seconds:
    """Latencies of answered requests by node, in the order of their start."""
    out: Seconds = {name: [] for name in run.names}
    for r in _timed(run):
        out[r.node] += present([r.latency_s])
    return out


def cold_and_warm(run: Run) -> tuple[Seconds, Seconds]:
    """Cold and warm latencies of each node; all are warm without a cold start, and in a sweep of batches."""
    cold: Seconds = {}
    warm: Seconds = {}
    batches = swept(run)
    for name, values in by_node(run).items():
        found = 0 if batches else change_point(values)
        first = 0 if isinstance(found, Unknown) else found
        cold[name], warm[name] = values[:first], values[first:]
    return cold, warm


def flat(latencies: Seconds) -> list[float]:
    """The latencies of all nodes."""
    return [v for values in latencies.values() for v in values]


def warm_requests(run: Run) -> list[Request]:
    """Answered requests with a latency, without each node's cold ones."""
    left = {name: len(values) for name, values in cold_and_warm(run)[0].items()}
    out = []
    for r in _timed(run):
        left[r.node] -= 1
        if left[r.node] < 0:
            out.append(r)
    return out


def samples_of(run: Run) -> tuple[tuple[Sample, ...], str]:
    """Latencies to draw, by node; of a long run every n-th, with a note."""
    cold, warm = cold_and_warm(run)
    out = [
        Sample(name, place, value, place <= len(cold[name]))
        for name in cold
        for place, value in enumerate((*cold[name], *warm[name]), 1)
    ]
    step = -(-len(out) // MOST_DRAWN)
    if step <= 1:
        return tuple(out), ""
    drawn = tuple(s for s in out if s.cold or s.place % step == 0)
    return drawn, f"Every {step}th answer is drawn, and every cold one."


def latency_of(run: Run, seed: int) -> Latency:
    """The latencies of a run."""
    cold, warm = cold_and_warm(run)
    lists: dict[str, Iterable[float | Unknown]] = {
        "all": flat(by_node(run)),
        "warm": flat(warm),
        "cold": flat(cold),
        "warmup": (r.latency_s for r in run.requests if r.warmup and r.ok),
        "ttft": (r.ttft_s for r in run.answered),
        "per_token": (r.per_token_s for r in run.answered),
    }
    return Latency(**{name: distribution(present(values), seed) for name, values in lists.items()})


def cold_start(latencies_s: Sequence[float]) -> ColdStart | Unknown | None:
    """The cold start of one node, from its latencies in the order of their start; None where it had none."""
    found = change_point(latencies_s)
    if isinstance(found, Unknown) or not found:
        return found if isinstance(found, Unknown) else None
    data = np.asarray(latencies_s, dtype=float)
    cold, warm = float(data[:found].mean()), float(data[found:].mean())
    return ColdStart(
        requests=found,
        mean_s=cold,
        warm_mean_s=warm,
        over_mean_pct=100 * (cold / float(data.mean()) - 1),
        over_min_pct=100 * (cold / float(data.min()) - 1),
        over_warm_pct=100 * (cold / warm - 1),
    )


def change_point(latencies_s: Sequence[float]) -> int | Unknown:
    """How many of the first latencies are cold; 0 where they are not slower than the rest, or only by chance."""
    data = np.asarray(latencies_s, dtype=float)
    n = len(data)
    if n < LEAST_SAMPLES:
        return Unknown(f"too few answered requests to see a cold start: {n}, at least {LEAST_SAMPLES} are needed")
    if (data <= 0).any():
        return Unknown("a latency of 0 s was recorded")
    logs = np.log(data)
    tried = max(1, n // 4)
    k = int(np.argmax(_explained(logs, tried))) + 1
    first, rest = logs[:k], logs[k:]
    if data[:k].mean() < (1 + SLOWER_BY_RATIO) * data[k:].mean():
        return 0
    scatter = float(rest.std(ddof=1))
    if scatter <= 1e-12:
        return k
    t = float(first.mean() - rest.mean()) / (scatter * float(np.sqrt(1 / k + 1 / len(rest))))
    return 0 if two_sided_p(t, len(rest) - 1) * tried > ERROR_P else k


def _explained(logs: np.ndarray, most: int) -> np.ndarray:
    """The squares that the means of the first k and of the rest explain, for k from 1 to `most`."""
    sums = np.cumsum(logs - logs.mean())
    k = np.arange(1, most + 1)
    first = sums[:most]
    explained: np.ndarray = first**2 / k + (sums[-1] - first) ** 2 / (len(logs) - k)
    return explained
