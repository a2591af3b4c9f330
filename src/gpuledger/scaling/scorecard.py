"""Which figures are graded, and does the run show readiness for production?"""

from __future__ import annotations

from gpuledger.bench.records import present
from gpuledger.scaling.analysis.counting import SWEPT
from gpuledger.scaling.figures import ColdStart, Facts, Figure
from gpuledger.scaling.grades import Ready, Thresholds, grade_of
from gpuledger.scaling.statement import Grade, Level, Readiness
from gpuledger.units import Unknown

NO_NODE = Unknown("the run has no node")


def scorecard(facts: Facts, limits: Thresholds) -> tuple[Grade, ...]:
    """One grade per area of the thresholds file, in its order; the cautious end where a figure has an interval."""
    success, efficiency = facts.counts.success_pct, facts.scaling.efficiency_pct
    values: dict[str, Figure] = {
        "success": success if isinstance(success, Unknown) else success.value,
        "scaling": efficiency if isinstance(efficiency, Unknown) else efficiency.low,
        "evidence": float(min((n.warm.n for n in facts.nodes), default=0)),
        "symmetry": _symmetry(facts),
        "consistency": facts.latency.warm.consistency_pct,
        "tail": _tail(facts),
        "cold_start": _cold(facts),
        "memory": facts.memory_pct,
        "utilization": facts.telemetry.gpu_util_pct,
        "occupancy": _occupancy(facts),
    }
    if len(facts.batches.points) > 1:
        values |= dict.fromkeys(("consistency", "tail", "cold_start", "occupancy"), Unknown(SWEPT))
    return tuple(grade_of(area, values[area], limits) for area in limits.grades if area in values)


def _symmetry(facts: Facts) -> Figure:
    slower = [n.slower_pct for n in facts.nodes]
    known = [s.value for s in present(slower)]
    return max(0.0, *known) if known else next((s for s in slower if isinstance(s, Unknown)), NO_NODE)


def _tail(facts: Facts) -> Figure:
    high, middle = facts.latency.warm.p95_s, facts.latency.warm.p50_s
    if isinstance(high, Unknown) or isinstance(middle, Unknown):
        return high if isinstance(high, Unknown) else Unknown("the median is not known")
    return high.value / middle.value if middle.value else Unknown("the median is 0")


def _cold(facts: Facts) -> Figure:
    """No cold start found is a figure, 0; too few samples to look for one is not."""
    colds = [n.cold_start for n in facts.nodes]
    known = [c.over_warm_pct for c in colds if isinstance(c, ColdStart)]
    if known:
        return max(known)
    return next((c for c in colds if isinstance(c, Unknown)), 0.0 if colds else NO_NODE)


def _occupancy(facts: Facts) -> Figure:
    busy = present(n.busy_s for n in facts.nodes)
    if isinstance(facts.wall_s, Unknown) or not busy:
        return Unknown("start and end of the requests are not known")
    return min(100.0, 100 * max(busy) / facts.wall_s)


def readiness_of(facts: Facts, limits: Thresholds) -> Readiness:
    """Not ready where something is against it; cannot tell where something is missing."""
    against: list[str] = []
    unknown: list[str] = []
    passed: list[str] = []
    ask = limits.readiness
    _success(facts, ask, against, unknown, passed)
    least = min((n.counts.ok for n in facts.nodes), default=0)
    if least < ask.answers_per_node_from:
        few = "1 answer on a node is" if least == 1 else f"{least} answers on a node are"
        unknown.append(f"{few} too few, {ask.answers_per_node_from} are required")
    else:
        passed.append(f"at least {least} answers on every node")
    if facts.nodes_n > 1 and facts.scaling.refused:
        unknown.append(f"scaling: {facts.scaling.refused}")
    if facts.client_bottleneck:
        unknown.append(f"the client was the bottleneck: {facts.client_bottleneck}")
    if isinstance(facts.wall_s, Unknown):
        unknown.append(facts.wall_s.why)
    verdict: Level = "not ready" if against else "cannot tell" if unknown else "ready as far as measured"
    return Readiness(verdict, tuple(against), tuple(unknown), tuple(passed))


def _success(facts: Facts, ask: Ready, against: list[str], unknown: list[str], passed: list[str]) -> None:
    """Whether enough of the planned requests were answered, in all and on each node."""
    counts, share = facts.counts, facts.counts.success_pct
    if isinstance(share, Unknown):
        unknown.append(f"success: {share.why}")
    elif share.value < ask.success_from_pct:
        words = f"{share.value:.1f} % of planned requests were answered"
        against.append(f"{words}, {ask.success_from_pct:g} % are required")
    elif not counts.planned_known:
        unknown.append("what was planned is not known, so lost requests cannot be counted")
    else:
        passed.append(f"{share.value:.2f} % of planned requests were answered")
    for node in facts.nodes:
        own = node.counts.success_pct
        if not isinstance(own, Unknown) and own.value < ask.success_from_pct:
            against.append(f"{node.node} answered {node.counts.ok} of {node.counts.planned}")
