"""Does the run speak for production? What speaks against it, and what it does not say."""

from __future__ import annotations

from gpuledger.scaling.figures import Facts
from gpuledger.scaling.grades import Ready, Thresholds
from gpuledger.scaling.statement import Readiness
from gpuledger.units import Unknown


def readiness_of(facts: Facts, limits: Thresholds) -> Readiness:
    """Not ready where something speaks against it; cannot tell where something is missing."""
    against: list[str] = []
    unknown: list[str] = []
    passed: list[str] = []
    ask = limits.readiness
    _success(facts, ask, against, unknown, passed)
    least = min((n.counts.ok for n in facts.nodes), default=0)
    if least < ask.answers_per_node_from:
        few = "1 answer on a node is" if least == 1 else f"{least} answers on a node are"
        unknown.append(f"{few} too few, {ask.answers_per_node_from} are asked for")
    else:
        passed.append(f"at least {least} answers on every node")
    if facts.nodes_n > 1 and facts.scaling.refused:
        unknown.append(f"scaling: {facts.scaling.refused}")
    if facts.client_bottleneck:
        unknown.append(f"the client was the limit: {facts.client_bottleneck}")
    if isinstance(facts.wall_s, Unknown):
        unknown.append(facts.wall_s.why)
    if against:
        return Readiness("not ready", tuple(against), tuple(unknown), tuple(passed))
    if unknown:
        return Readiness("cannot tell", (), tuple(unknown), tuple(passed))
    return Readiness("ready as far as measured", (), (), tuple(passed))


def _success(facts: Facts, ask: Ready, against: list[str], unknown: list[str], passed: list[str]) -> None:
    """Whether enough of the planned requests were answered, in all and on each node."""
    counts, share = facts.counts, facts.counts.success_pct
    if isinstance(share, Unknown):
        unknown.append(f"success: {share.why}")
    elif share.value < ask.success_from_pct:
        words = f"{share.value:.1f} % of planned requests were answered"
        against.append(f"{words}, {ask.success_from_pct:g} % are asked for")
    elif not counts.planned_known:
        unknown.append("what was planned is not known, so lost requests cannot be counted")
    else:
        passed.append(f"{share.value:.2f} % of planned requests were answered")
    for node in facts.nodes:
        own = node.counts.success_pct
        if not isinstance(own, Unknown) and own.value < ask.success_from_pct:
            against.append(f"{node.node} answered {node.counts.ok} of {node.counts.planned}")
