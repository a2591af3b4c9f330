"""Is a cause borne out by anything in the run?"""

from __future__ import annotations

from gpuledger.scaling.causes import causes_of
from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, contradicted, judges, looks_for, supported
from gpuledger.units import Unknown


def _matching(case: Case, claim: Claim) -> Finding:
    words = str(claim.value).casefold()
    for cause in causes_of(case.facts, case.run):
        if any(word in words for word in cause.words):
            if isinstance(cause.found, Unknown):
                return cannot_tell(f"{cause.evidence}: {cause.found.why}")
            return supported(cause.evidence) if cause.found else contradicted(cause.evidence)
    return cannot_tell("nothing in the results bears on this cause: it has no evidence")


@judges("cause", "text", "why something is as it is")
def judge(case: Case, claim: Claim) -> Finding:
    """By what the results hold."""
    return _matching(case, claim)


@looks_for("cause_without_evidence", "A cause without evidence", order=80)
def look(case: Case) -> str | None:
    """Claimed causes that the results contradict or do not bear on."""
    found = [(c.value, _matching(case, c)) for c in case.about("cause")]
    bad = [f"{value!r}: {finding.why}" for value, finding in found if finding.verdict != "supported"]
    return "; ".join(bad) or None
