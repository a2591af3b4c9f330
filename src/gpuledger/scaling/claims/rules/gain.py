"""What would mending the failures bring?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, judges


@judges("mending_gain_pct", "number", "throughput gained if every planned request were answered, in percent")
def judge(case: Case, claim: Claim) -> Finding:
    """planned / answered - 1: what is missing, over what there is."""
    counts = case.facts.counts
    if not counts.ok:
        return cannot_tell("no request was answered, so there is nothing to gain upon")
    gone = f"{counts.planned - counts.ok} of {counts.planned}"
    said = f"{counts.planned} planned over {counts.ok} answered; {gone} lost is a share of the plan, not a gain"
    return compare(claim, 100 * (counts.planned / counts.ok - 1), "%", case, said)
