"""Was the cold start split off, and is it as large as claimed?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, judges, looks_for, took
from gpuledger.scaling.coldstart import ColdStart
from gpuledger.units import Unknown


@judges("cold_start_pct", "number", "how far the cold requests lie above the mean, in percent")
def judge(case: Case, claim: Claim) -> Finding:
    """Over the mean; said beside it how far over the minimum and over the warm ones."""
    if claim.node is not None:
        node = case.node(claim)
        found = node if isinstance(node, Unknown) else node.cold_start
    else:
        colds = [c for n in case.facts.nodes if isinstance(c := n.cold_start, ColdStart)]
        unseen = next((c for n in case.facts.nodes if isinstance(c := n.cold_start, Unknown)), None)
        found = max(colds, key=lambda c: c.over_mean_pct, default=unseen)
    if isinstance(found, Unknown):
        return cannot_tell(found.why)
    if found is None:
        return compare(
            claim, 0.0, "%", case, "there was no cold start: the first requests are not slower than the rest"
        )
    over = f"{found.over_min_pct:.0f} % over the minimum, {found.over_warm_pct:.0f} % over the warm requests"
    said = f"over the mean; {over}"
    return compare(claim, found.over_mean_pct, "%", case, said)


def _first(count: int) -> str:
    return "request" if count == 1 else f"{count} requests"


@looks_for("cold_start_in_the_means", "Cold requests mixed into the means", order=45)
def look(case: Case) -> str | None:
    """Nodes whose first requests are slower than the rest."""
    said = [
        f"{n.node}: its first {_first(c.requests)} took {took(c.mean_s)}, {c.over_mean_pct:.0f} % over its mean and "
        f"{c.over_min_pct:.0f} % over its minimum; warm it is {took(c.warm_mean_s)}"
        for n in case.facts.nodes
        if isinstance(c := n.cold_start, ColdStart)
    ]
    return "; ".join(said) or None
