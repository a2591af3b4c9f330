"""Are there samples enough to say anything?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, looks_for


@looks_for("too_few_samples", "Too few samples", order=10)
def look(case: Case) -> str | None:
    """A node with fewer answers than readiness asks for."""
    need = case.limits.readiness.answers_per_node_from
    few = [f"{n.node} {n.counts.ok}" for n in case.facts.nodes if n.counts.ok < need]
    if not few:
        return None
    return f"answers by node: {', '.join(few)}; {need} a node are needed for a 99th percentile and for readiness"
