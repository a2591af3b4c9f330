"""Do claimed latencies match the answered requests?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, fact, judges, number
from gpuledger.scaling.figures import Distribution, Ranged
from gpuledger.scaling.statistics import sd_range
from gpuledger.units import Unknown


def _spread(case: Case, claim: Claim) -> Distribution | Unknown:
    if claim.node is None:
        return case.facts.latency.all
    node = case.node(claim)
    return node if isinstance(node, Unknown) else node.latency


def _against(case: Case, claim: Claim, field: str, said: str = "") -> Finding:
    found = _spread(case, claim)
    if isinstance(found, Unknown):
        return cannot_tell(found.why)
    figure: Ranged | float = getattr(found, field)
    return compare(claim, fact(figure), "s", case, said)


@judges("latency_mean_s", "number", "mean latency of the answered requests")
def mean(case: Case, claim: Claim) -> Finding:
    """Of all answers, cold ones included."""
    means = [n.latency.mean_s.value for n in case.facts.nodes if not isinstance(n.latency.mean_s, Unknown)]
    said = ""
    if claim.node is None and len(means) > 1 and abs(claim.number - sum(means) / len(means)) < 0.005 * claim.number:
        said = f"{number(claim.number)} s is the mean of the nodes' means, which counts every node alike"
    return _against(case, claim, "mean_s", said)


@judges("latency_p50_s", "number", "median latency")
def p50(case: Case, claim: Claim) -> Finding:
    """As measured."""
    return _against(case, claim, "p50_s")


@judges("latency_p95_s", "number", "95th percentile of latency")
def p95(case: Case, claim: Claim) -> Finding:
    """As measured, where there are samples enough."""
    return _against(case, claim, "p95_s")


@judges("latency_p99_s", "number", "99th percentile of latency")
def p99(case: Case, claim: Claim) -> Finding:
    """As measured, where there are samples enough."""
    return _against(case, claim, "p99_s")


@judges("latency_sd_s", "number", "standard deviation of latency")
def deviation(case: Case, claim: Claim) -> Finding:
    """As measured; and whether any samples with this minimum, maximum and mean could have it."""
    found = _spread(case, claim)
    if isinstance(found, Unknown):
        return cannot_tell(found.why)
    low, high, mean_s = found.min_s, found.max_s, found.mean_s
    said = ""
    if not isinstance(low, Unknown) and not isinstance(high, Unknown) and not isinstance(mean_s, Unknown):
        bounds = sd_range(found.n, low, high, mean_s.value)
        if not isinstance(bounds, Unknown) and not any(a <= claim.number <= b for a, b in _either(bounds, found.n)):
            spans = " or ".join(f"{a:.3f} to {b:.3f}" for a, b in _either(bounds, found.n))
            said = f"impossible: {found.n} samples with this minimum, maximum and mean have {spans} s"
    return compare(claim, found.sd_s, "s", case, said)


def _either(bounds: tuple[float, float], n: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The bounds for either habit, each with room for figures rounded to a millisecond: over n, over n - 1."""
    least, most = bounds
    turn = (n / (n - 1)) ** 0.5
    return (least - 0.001, most / turn + 0.001), (least * turn - 0.001, most + 0.001)


@judges("consistency_pct", "number", "warm answers within 15 % of the median, in percent")
def consistency(case: Case, claim: Claim) -> Finding:
    """One meaning only: the share of warm answers within 15 % of their median."""
    node = None if claim.node is None else case.node(claim)
    if isinstance(node, Unknown):
        return cannot_tell(node.why)
    found = case.facts.latency.warm if node is None else node.warm
    return compare(claim, found.consistency_pct, "% of warm answers within 15 % of the median", case)
