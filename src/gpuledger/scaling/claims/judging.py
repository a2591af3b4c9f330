"""What does the run say to each claim, and which mistakes were made?"""

from __future__ import annotations

from gpuledger.errors import nearest
from gpuledger.scaling.claims.rule import CHECKS, CLAIMS, Case, Claim, cannot_tell, check_of, verdict_of
from gpuledger.scaling.statement import Check, Verdict
from gpuledger.units import Unknown


def verdicts(case: Case) -> tuple[Verdict, ...]:
    """One a claim, in the order of the file."""
    return tuple(_judged(case, claim) for claim in case.claims)


def _judged(case: Case, claim: Claim) -> Verdict:
    if claim.claim not in CLAIMS.names():
        near = nearest(claim.claim, CLAIMS.names())
        hint = f"did they mean {' or '.join(near)}?" if near else f"judged are {', '.join(CLAIMS.names())}"
        return verdict_of(claim, cannot_tell(f"no rule judges claims of this id; {hint}"))
    if claim.node is not None and isinstance(found := case.node(claim), Unknown):
        return verdict_of(claim, cannot_tell(found.why))
    return verdict_of(claim, CLAIMS.get(claim.claim).judge(case, claim))


def checks(case: Case) -> tuple[Check, ...]:
    """Every mistake that is looked for, found or not."""
    ordered = sorted((sought for _, sought in CHECKS), key=lambda s: (s.order, s.id))
    return tuple(check_of(sought, case) for sought in ordered)
