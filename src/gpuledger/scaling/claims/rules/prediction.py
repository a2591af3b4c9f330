"""Is a figure for a size that was not run more than a guess?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, judges
from gpuledger.units import Unknown


@judges("predicted_throughput_per_s", "number", 'throughput of a size that was not run; give it as "size"')
def judge(case: Case, claim: Claim) -> Finding:
    """By the scalability law over three sizes or more."""
    curve, size = case.facts.scaling.curve, claim.more.get("size")
    if curve.refused:
        return cannot_tell(curve.refused)
    found = next((p.throughput_per_s for p in curve.predictions if p.size == size), None)
    return compare(claim, found or Unknown(f"size {size!r} was not predicted"), "/s predicted", case)
