"""Is it called ready although requests were lost?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import (
    Case,
    Claim,
    Finding,
    cannot_tell,
    contradicted,
    judges,
    looks_for,
    supported,
)  # fmt: skip

READY = "ready as far as measured"


@judges("ready_for_production", "yes or no", "whether the run speaks for production")
def judge(case: Case, claim: Claim) -> Finding:
    """By what readiness asks for (thresholds.toml)."""
    found = case.readiness
    if found.verdict == "cannot tell":
        return cannot_tell("; ".join(found.unknown))
    ready = found.verdict == READY
    why = "; ".join(found.passed if ready else found.against)
    return supported(why) if bool(claim.value) is ready else contradicted(why)


@looks_for("ready_despite_failures", "Readiness despite failures", order=90)
def look(case: Case) -> str | None:
    """Called ready while something speaks against it."""
    claimed = any(c.value is True for c in case.about("ready_for_production"))
    if case.readiness.verdict != "not ready":
        return None
    start = "it was called ready, but " if claimed else "it must not be called ready: "
    return start + "; ".join(case.readiness.against)
