"""How will N nodes do? The Universal Scalability Law, fitted to measured sizes.

X(N) = rate N / (1 + contention (N - 1) + coherency N (N - 1)) (N. Gunther, "Guerrilla Capacity Planning", 2007).
N / X is linear in (1, N - 1, N (N - 1)), so least squares finds it without a start to guess; negative shares are not
allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gpuledger.units import Unknown

LEAST_SIZES = 3


@dataclass(frozen=True)
class Law:
    """The fitted law: what one would do, what waiting in line costs, what agreeing with each other costs."""

    rate_per_s: float
    contention: float
    coherency: float

    def throughput_per_s(self, size: float) -> float:
        """What the law says a size does."""
        held = 1 + self.contention * (size - 1) + self.coherency * size * (size - 1)
        return self.rate_per_s * size / held

    @property
    def best_size(self) -> float | Unknown:
        """The size beyond which more do less."""
        if self.coherency <= 0:
            return Unknown("the fit has no coherency cost, so throughput never turns down")
        return float(np.sqrt(max(0.0, 1 - self.contention) / self.coherency))


def fit(sizes: Sequence[float], rates_per_s: Sequence[float]) -> Law | Unknown:
    """The law that comes nearest to measured rates, by relative error."""
    n, x = np.asarray(sizes, dtype=float), np.asarray(rates_per_s, dtype=float)
    distinct = sorted(set(n.tolist()))
    if len(distinct) < LEAST_SIZES:
        shown = ", ".join(f"{s:g}" for s in distinct) or "none"
        return Unknown(
            f"{len(distinct)} size{'s' * (len(distinct) != 1)} measured ({shown}): the law has three unknowns, "
            f"so {LEAST_SIZES} sizes are needed to fit it"
        )
    if (x <= 0).any():
        return Unknown("a run of one size had no success, so its rate is 0")
    table = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    weight = x / n  # 1 / (N / X): errors count relative to the value
    best: np.ndarray | None = None
    left = np.inf
    # Non-negative least squares with three unknowns: every set of those that may differ from zero is tried.
    for chosen in (c for k in (1, 2, 3) for c in combinations(range(3), k) if 0 in c):
        part, *_ = np.linalg.lstsq(table[:, chosen] * weight[:, None], np.ones_like(n), rcond=None)
        if part[0] <= 0 or (part < -1e-12).any():
            continue
        whole = np.zeros(3)
        whole[list(chosen)] = np.maximum(part, 0)
        error = float((((table @ whole) * weight - 1) ** 2).sum())
        if error < left * (1 - 1e-9) - 1e-18:  # of two equal fits the one with fewer costs
            best, left = whole, error
    if best is None:
        return Unknown("no law with a rate above 0 fits these figures")
    return Law(float(1 / best[0]), float(best[1] / best[0]), float(best[2] / best[0]))
