"""Does a ranking name its source?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, judges, looks_for

SOURCES = ("source", "url", "as_of")


def _unsourced(claim: Claim) -> bool:
    return not any(isinstance(claim.more.get(name), str) and claim.more[name].strip() for name in SOURCES[:2])


@judges("ranking", "text", "a place among others, such as top 5 %")
def ranking(_case: Case, claim: Claim) -> Finding:
    """No run can bear out a place among runs that it does not hold."""
    if _unsourced(claim):
        return cannot_tell("the ranking names no source: no list of others, no date, no way to look it up")
    return cannot_tell(f"the source ({claim.more.get('source') or claim.more.get('url')}) is not part of the run")


@judges("industry_average", "text", "what others are said to reach")
def average(case: Case, claim: Claim) -> Finding:
    """As a ranking."""
    return ranking(case, claim)


@looks_for("ranking_without_source", "A ranking without a source", order=70)
def look(case: Case) -> str | None:
    """Claims of rank or average that name nobody."""
    found = [f"{c.value!r}" for c in case.about("ranking", "industry_average") if _unsourced(c)]
    return f"{', '.join(found)}: no source and no date, so it cannot be looked up" if found else None
