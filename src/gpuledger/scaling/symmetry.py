"""Do the nodes do alike, or is one of them apart from the others?

Each node's warm latencies are held against those of all others (ratio of means, both sides resampled). With m nodes m
comparisons are made, so each gets an m-th of the error allowed. The node furthest off is apart where its interval
leaves out 0 and the difference is as large as the thresholds ask; it is then set aside and the rest looked at again,
so that one slow node does not make the others look fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuledger.scaling.statistics import LEVEL, Interval, fisher_p, ratio_of_means
from gpuledger.units import Unknown

LEAST_SAMPLES = 2


@dataclass(frozen=True)
class Apart:
    """One node against the others: how much slower (%), whether that is beyond chance, and whether it loses more."""

    slower_pct: Interval | Unknown
    outlier: bool | Unknown
    loses_more_p: float | Unknown
    loses_more: bool | Unknown


def compare_nodes(
    warm_s: Mapping[str, Sequence[float]], counts: Mapping[str, tuple[int, int]], beyond_pct: float, seed: int
) -> dict[str, Apart]:
    """Every node against the rest, from warm latencies and from (successes, planned)."""
    if len(counts) < 2:
        only = Unknown("one node only: there is none to compare it with")
        return {name: Apart(only, only, only, only) for name in counts}
    level = 1 - (1 - LEVEL) / len(counts)
    slower = {name: _slower(name, warm_s, level, seed + i) for i, name in enumerate(counts)}
    apart = _outliers(slower, warm_s, level, beyond_pct, seed)
    out = {}
    for name, found in slower.items():
        p = _loses(name, counts)
        out[name] = Apart(
            found,
            found if isinstance(found, Unknown) else name in apart,
            p,
            p if isinstance(p, Unknown) else p < (1 - LEVEL) / len(counts),
        )
    return out


def _outliers(
    slower: Mapping[str, Interval | Unknown],
    warm_s: Mapping[str, Sequence[float]],
    level: float,
    beyond_pct: float,
    seed: int,
) -> set[str]:
    """The nodes apart, one after another."""
    apart: set[str] = set()
    left = dict(slower)
    while True:
        far = {
            name: found
            for name, found in left.items()
            if not isinstance(found, Unknown) and not found.holds(0) and abs(found.value) >= beyond_pct
        }
        if not far:
            return apart
        worst = max(far, key=lambda name: abs(far[name].value))
        apart.add(worst)
        rest = {name: values for name, values in warm_s.items() if name not in apart}
        left = {name: _slower(name, rest, level, seed + i) for i, name in enumerate(rest)} if len(rest) > 1 else {}


def _slower(name: str, warm_s: Mapping[str, Sequence[float]], level: float, seed: int) -> Interval | Unknown:
    own = warm_s.get(name, ())
    rest = [v for other, values in warm_s.items() if other != name for v in values]
    if min(len(own), len(rest)) < LEAST_SAMPLES:
        return Unknown(f"fewer than {LEAST_SAMPLES} warm answers on one side")
    found = ratio_of_means(own, rest, seed, level)
    if isinstance(found, Unknown):
        return found
    return Interval(*(100 * (v - 1) for v in (found.value, found.low, found.high)))


def _loses(name: str, counts: Mapping[str, tuple[int, int]]) -> float | Unknown:
    good, planned = counts[name]
    others = [c for other, c in counts.items() if other != name]
    good_rest, planned_rest = sum(g for g, _ in others), sum(n for _, n in others)
    if not planned or not planned_rest:
        return Unknown("nothing was planned on one side")
    return fisher_p(good, planned, good_rest, planned_rest)
