"""Does a claimed cause have evidence in the run, and a ranking a source?"""

from __future__ import annotations

from gpuledger.scaling.causes import causes_of
from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, contradicted, judges, looks_for, supported
from gpuledger.units import Unknown


@judges("cause", "text")
def cause(case: Case, claim: Claim) -> Finding:
    """Why something is as it is, by the evidence in the results."""
    words = str(claim.value).casefold()
    for found in causes_of(case.facts, case.run):
        if any(word in words for word in found.words):
            if isinstance(found.found, Unknown):
                return cannot_tell(f"{found.evidence}: {found.found.why}")
            return supported(found.evidence) if found.found else contradicted(found.evidence)
    return cannot_tell("nothing in the results bears on this cause: it has no evidence")


@looks_for("cause_without_evidence", "A cause without evidence", order=80)
def without_evidence(case: Case) -> str | None:
    """Claimed causes that the results contradict or do not bear on."""
    found = [(c.value, cause(case, c)) for c in case.about("cause")]
    bad = [f"{value!r}: {finding.why}" for value, finding in found if finding.verdict != "supported"]
    return "; ".join(bad) or None


def _source(claim: Claim) -> str:
    named = (claim.more.get(name) for name in ("source", "url"))
    return next((s for s in named if isinstance(s, str) and s.strip()), "")


def ranking(_case: Case, claim: Claim) -> Finding:
    """A run cannot show a place among runs it does not hold."""
    if source := _source(claim):
        return cannot_tell(f"the source ({source}) is not part of the run")
    return cannot_tell("the ranking names no source: no list of others, no date, no way to look it up")


judges("ranking", "text")(ranking)
judges("industry_average", "text")(ranking)


@looks_for("ranking_without_source", "A ranking without a source", order=70)
def without_source(case: Case) -> str | None:
    """Claims of rank or average without a source."""
    found = [f"{c.value!r}" for c in case.about("ranking", "industry_average") if not _source(c)]
    return f"{', '.join(found)}: no source and no date, so it cannot be looked up" if found else None
