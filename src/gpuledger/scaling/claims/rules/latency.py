"""Do claimed latencies match the answers, were cold requests split off, and is a node called slower really slower?"""

from __future__ import annotations

from functools import partial

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, contradicted, judges, looks_for, supported
from gpuledger.scaling.figures import ColdStart, Distribution
from gpuledger.scaling.statistics import number, sd_range, took
from gpuledger.units import Unknown


def _spread(case: Case, claim: Claim) -> Distribution:
    node = case.node(claim)
    return case.facts.latency.all if node is None else node.latency


@judges("latency_mean_s", "number")
def mean(case: Case, claim: Claim) -> Finding:
    """Mean latency of the answered requests, cold ones included."""
    means = [n.latency.mean_s.value for n in case.facts.nodes if not isinstance(n.latency.mean_s, Unknown)]
    said = ""
    if claim.node is None and len(means) > 1 and abs(claim.number - sum(means) / len(means)) < 0.005 * claim.number:
        said = f"{number(claim.number)} s is the mean of the nodes' means, which counts every node alike"
    return case.count(claim, _spread(case, claim).mean_s, "s", said)


def _quantile(name: str, case: Case, claim: Claim) -> Finding:
    return case.count(claim, getattr(_spread(case, claim), name), "s")


for _name in ("p50", "p95", "p99"):
    judges(f"latency_{_name}_s", "number")(partial(_quantile, f"{_name}_s"))


@judges("latency_sd_s", "number")
def deviation(case: Case, claim: Claim) -> Finding:
    """Standard deviation of latency, and whether samples with this minimum, maximum and mean could have it."""
    found, said = _spread(case, claim), ""
    low, high, middle = found.min_s, found.max_s, found.mean_s
    if not isinstance(low, Unknown) and not isinstance(high, Unknown) and not isinstance(middle, Unknown):
        bounds = sd_range(found.n, low, high, middle.value)
        if not isinstance(bounds, Unknown) and not any(a <= claim.number <= b for a, b in _either(bounds, found.n)):
            spans = " or ".join(f"{a:.3f} to {b:.3f}" for a, b in _either(bounds, found.n))
            said = f"impossible: {found.n} samples with this minimum, maximum and mean have {spans} s"
    return case.compare(claim, found.sd_s, "s", said)


def _either(bounds: tuple[float, float], n: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The bounds when dividing by n and by n - 1, each with room for figures rounded to a millisecond."""
    least, most = bounds
    turn = (n / (n - 1)) ** 0.5
    return (least - 0.001, most / turn + 0.001), (least * turn - 0.001, most + 0.001)


@judges("consistency_pct", "number")
def consistency(case: Case, claim: Claim) -> Finding:
    """Warm answers within 15 % of the median, in percent."""
    node = case.node(claim)
    found = case.facts.latency.warm if node is None else node.warm
    return case.compare(claim, found.consistency_pct, "% of warm answers within 15 % of the median")


@judges("cold_start_pct", "number")
def cold(case: Case, claim: Claim) -> Finding:
    """How far the cold requests are above the mean, in percent; also over the minimum and the warm requests."""
    node = case.node(claim)
    starts = [n.cold_start for n in (case.facts.nodes if node is None else (node,))]
    colds = [c for c in starts if isinstance(c, ColdStart)]
    if not colds:
        unseen = next((c for c in starts if isinstance(c, Unknown)), 0.0)
        return case.compare(claim, unseen, "%", "no cold start: the first requests are not slower than the rest")
    found = max(colds, key=lambda c: c.over_mean_pct)
    over = f"{found.over_min_pct:.0f} % over the minimum, {found.over_warm_pct:.0f} % over the warm requests"
    return case.compare(claim, found.over_mean_pct, "%", f"over the mean; {over}")


@looks_for("cold_start_in_the_means", "Cold requests mixed into the means", order=45)
def cold_in_means(case: Case) -> str | None:
    """Nodes whose first requests are slower than the rest."""
    said = [
        f"{n.node}: its first {'request' if c.requests == 1 else f'{c.requests} requests'} took {took(c.mean_s)}, "
        f"{c.over_mean_pct:.0f} % over its mean and {c.over_min_pct:.0f} % over its minimum; warm it is "
        f"{took(c.warm_mean_s)}"
        for n in case.facts.nodes
        if isinstance(c := n.cold_start, ColdStart)
    ]
    return "; ".join(said) or None


def _warm(case: Case) -> str:
    means = ((n.node, n.warm.mean_s) for n in case.facts.nodes)
    return f"warm means: {', '.join(f'{node} {took(m.value)}' for node, m in means if not isinstance(m, Unknown))}"


@judges("slower_node", "text")
def slower(case: Case, claim: Claim) -> Finding:
    """The node that is slower than the others: by warm requests, beyond chance."""
    node = case.named(claim.value)
    found = node if isinstance(node, Unknown) else node.slower_pct
    if isinstance(found, Unknown):
        return cannot_tell(found.why)
    if found.low > 0:
        return supported(f"{_warm(case)}; {found.words('%')} slower than the others")
    return contradicted(f"{_warm(case)}: without cold requests it is not slower; against the others {found.words('%')}")


@judges("node_slower_pct", "number")
def slower_by(case: Case, claim: Claim) -> Finding:
    """How much slower the node named by "node" is than the others when warm, in percent."""
    node = case.node(claim)
    found = Unknown('the claim names no node; add "node"') if node is None else node.slower_pct
    return case.compare(claim, found, "%", _warm(case))
