"""Is the node that is called slower really slower?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import (
    Case,
    Claim,
    Finding,
    cannot_tell,
    compare,
    contradicted,
    judges,
    ranged,
    supported,
    took,
)  # fmt: skip
from gpuledger.units import Unknown


def _warm(case: Case) -> str:
    means = [
        f"{n.node} {took(n.warm.mean_s.value)}" for n in case.facts.nodes if not isinstance(n.warm.mean_s, Unknown)
    ]
    return f"warm means: {', '.join(means)}"


@judges("slower_node", "text", "the node that is slower than the others")
def slower(case: Case, claim: Claim) -> Finding:
    """By warm requests, beyond chance."""
    node = case.node(Claim(claim.claim, claim.value, str(claim.value)))
    if isinstance(node, Unknown):
        return cannot_tell(node.why)
    if isinstance(node.slower_pct, Unknown):
        return cannot_tell(node.slower_pct.why)
    if node.slower_pct.low > 0:
        return supported(f"{_warm(case)}; {ranged(node.slower_pct, '%')} slower than the others")
    by = ranged(node.slower_pct, "%")
    return contradicted(f"{_warm(case)}: with cold requests apart it is not slower; against the others {by}")


@judges("node_slower_pct", "number", "how much slower a node is than the others, warm, in percent")
def by(case: Case, claim: Claim) -> Finding:
    """By warm requests; name the node with "node"."""
    if claim.node is None:
        return cannot_tell('the claim names no node; add "node"')
    node = case.node(claim)
    return compare(claim, node if isinstance(node, Unknown) else node.slower_pct, "%", case, _warm(case))
