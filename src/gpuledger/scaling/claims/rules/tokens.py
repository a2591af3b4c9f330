"""Are tokens counted by wall clock, and compared with something else than themselves?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, fact, judges, looks_for, number
from gpuledger.units import Unknown

ALIKE_RATIO = 0.02


@judges("tokens_per_s", "number", "output tokens a second, by wall clock")
def rate(case: Case, claim: Claim) -> Finding:
    """By wall clock."""
    single = case.facts.tokens.single_stream_per_s
    said = ""
    if claim.node is None and not isinstance(single, Unknown):
        times = case.facts.scaling.size * single
        if times and abs(claim.number / times - 1) < 0.05:
            said = f"{claim.value:g} is the rate within one request times {case.facts.scaling.size}"
    found = case.facts.tokens.per_s
    if claim.node is not None:
        node = case.node(claim)
        return compare(claim, node if isinstance(node, Unknown) else node.tokens_per_s, "tokens/s", case)
    return compare(claim, fact(found), "tokens/s by wall clock", case, said)


def _circular(case: Case, claim: Claim) -> str:
    """Why a factor without a baseline can only be the run divided by itself."""
    size, rate = case.facts.scaling.size, case.facts.tokens.per_s
    if not size or abs(claim.number / size - 1) > ALIKE_RATIO:
        return ""
    words = (
        f"the only rate of one {case.facts.scaling.unit.removesuffix('s')} at hand is this run's own mean, and {size} "
        f"times a mean over that mean is {size} whatever was measured: a comparison with itself"
    )
    if not isinstance(rate, Unknown):
        words += f". By wall clock the run made {number(rate.value)} tokens/s"
    return words


@judges("token_scaling_x", "number", "tokens a second over those of the baseline")
def factor(case: Case, claim: Claim) -> Finding:
    """Against a measured baseline only."""
    found = case.facts.scaling.token_factor_x
    if isinstance(found, Unknown):
        circle = _circular(case, claim)
        return cannot_tell(f"{circle}; {found.why}" if circle else found.why)
    return compare(claim, found, "x", case)


@looks_for("comparison_with_itself", "A comparison with itself", order=60)
def look(case: Case) -> str | None:
    """The baseline is the run, or a factor equals the size with nothing to divide by."""
    refused = case.facts.scaling.refused or ""
    if "itself" in refused:
        return refused
    if case.facts.scaling.refused is None:
        return None
    for claim in case.about("token_scaling_x", "scaling_factor_x"):
        if said := _circular(case, claim):
            return f"{claim.claim} = {claim.value}: {said}"
    return None
