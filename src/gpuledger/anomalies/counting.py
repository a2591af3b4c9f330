"""Which GPUs report more errors than the others do?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuledger.anomalies.reading import Hours
from gpuledger.anomalies.signals import CountKind, Rules
from gpuledger.anomalies.statistics import chosen, poisson_tail, start_of_rise
from gpuledger.units import MS_PER_HOUR

_WORST_LEFT_OUT = 0.05  # the rate of the others leaves out the worst of them


@dataclass(frozen=True)
class Excess:
    """Errors of one GPU beyond those of the others."""

    gpu: int
    kind: CountKind
    since_ms: int
    events: int
    expected: float
    chance: float


def excesses(hours: Hours, limits: Rules) -> tuple[list[Excess], int]:
    """The GPUs to believe of, and how many were tested."""
    tried = [e for kind in limits.counts for e in _tests(kind, hours)]
    kept = chosen([e.chance for e in tried], limits.false_findings_ratio)
    return [e for e, good in zip(tried, kept.tolist(), strict=True) if good and e.events >= e.kind.least], len(tried)


def _tests(kind: CountKind, hours: Hours) -> list[Excess]:
    counts, gpus = hours.counts[kind.name], len(hours.gpus)
    events = np.bincount(hours.gpu, counts, gpus)
    time_h = np.bincount(hours.gpu, hours.observed_ms, gpus) / MS_PER_HOUR
    floor = kind.floor_per_1000_h / 1000
    if not events.any():
        return []
    per_h = max(others_rate(events, time_h), floor)
    out = []
    for gpu in np.flatnonzero(time_h > 0).tolist():
        expected = per_h * float(time_h[gpu])
        chance = poisson_tail(int(events[gpu] / kind.burst), expected / kind.burst)
        since = _since(hours, gpu, counts, per_h) if events[gpu] >= kind.least else hours.start_ms
        out.append(Excess(gpu, kind, since, int(events[gpu]), expected, chance))
    return out


def others_rate(events: np.ndarray, time_h: np.ndarray) -> float:
    """Events per hour of the fleet, without its worst GPUs."""
    left_out = max(1, int(len(events) * _WORST_LEFT_OUT)) if len(events) > 1 else 0
    order = np.argsort(events, kind="stable")[: len(events) - left_out]
    time = float(time_h[order].sum())
    return float(events[order].sum()) / time if time else 0.0


def _since(hours: Hours, gpu: int, counts: np.ndarray, per_h: float) -> int:
    mine = np.flatnonzero(hours.gpu == gpu)
    mine = mine[np.argsort(hours.at_ms[mine], kind="stable")]
    at = start_of_rise(counts[mine], hours.observed_ms[mine] / MS_PER_HOUR, per_h)
    return int(hours.at_ms[mine[at]])
