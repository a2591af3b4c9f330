"""Were the first requests slower than the rest, and by how much? One change point in the order of starts.

The logarithms of the first k latencies are held against the rest (Student's t with the rest's own scatter, k from 1 to
a quarter of all); of all k the one that leaves least unexplained is taken, and its error is shared among all k tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.efficiency.trend import two_sided_p
from gpuledger.units import Unknown

LEAST_SAMPLES = 4
ERROR_P = 0.01
SLOWER_BY_RATIO = 0.1  # a start that is slower by less is no cold start, however sure


@dataclass(frozen=True)
class ColdStart:
    """The first `requests` latencies against the others; percentages say how far their mean lies above."""

    requests: int
    mean_s: float
    warm_mean_s: float
    over_mean_pct: float
    over_min_pct: float
    over_warm_pct: float


def cold_start(latencies_s: Sequence[float]) -> ColdStart | Unknown | None:
    """The cold start of one node, from its latencies in the order of their start; None where it had none."""
    found = change_point(latencies_s)
    if isinstance(found, Unknown):
        return found
    if not found:
        return None
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
    tried = range(1, max(1, n // 4) + 1)
    k = int(np.argmin(_unexplained(logs, len(tried)))) + 1
    first, rest = logs[:k], logs[k:]
    if data[:k].mean() < (1 + SLOWER_BY_RATIO) * data[k:].mean():
        return 0
    scatter = float(rest.std(ddof=1))
    if scatter <= 1e-12:
        return k
    t = float(first.mean() - rest.mean()) / (scatter * float(np.sqrt(1 / k + 1 / len(rest))))
    if two_sided_p(t, len(rest) - 1) * len(tried) > ERROR_P:
        return 0
    return k


def _unexplained(logs: np.ndarray, most: int) -> np.ndarray:
    """The squares left when the first k and the rest each have their own mean, for k from 1 to `most`.

    All squares less those that the two means explain; what is the same for every k is left out.
    """
    sums = np.cumsum(logs - logs.mean())
    k = np.arange(1, most + 1)
    first = sums[:most]
    explained: np.ndarray = first**2 / k + (sums[-1] - first) ** 2 / (len(logs) - k)
    return -explained
