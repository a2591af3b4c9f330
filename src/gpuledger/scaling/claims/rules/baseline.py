"""Was the baseline measured, or typed in?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, fact, judges, looks_for, number
from gpuledger.units import Unknown

TYPED = ("baseline_throughput_per_s", "baseline_latency_s", "baseline_tokens_per_s")


@judges("baseline_throughput_per_s", "number", "throughput of the baseline run")
def throughput(case: Case, claim: Claim) -> Finding:
    """Only a baseline file can bear it out."""
    found = case.facts.scaling.baseline_per_s
    if isinstance(found, Unknown):
        return cannot_tell(f"{number(claim.number)}/s is typed in: {found.why}")
    return compare(claim, fact(found), "/s", case)


@judges("baseline_latency_s", "number", "mean latency of the baseline run")
def latency(case: Case, claim: Claim) -> Finding:
    """Only a baseline file can bear it out."""
    if case.baseline is None:
        return cannot_tell(f"{number(claim.number)} s is typed in: {case.facts.scaling.refused}")
    from gpuledger.scaling.analysis.latency import latency_of

    return compare(claim, fact(latency_of(case.baseline, case.facts.seed).all.mean_s), "s", case)


@judges("baseline_tokens_per_s", "number", "tokens a second of the baseline run")
def tokens(case: Case, claim: Claim) -> Finding:
    """Only a baseline file can bear it out."""
    base = case.facts.scaling
    if case.baseline is None or isinstance(base.token_factor_x, Unknown):
        why = base.refused or "the baseline does not say its tokens"
        return cannot_tell(f"{number(claim.number)} tokens/s is typed in: {why}")
    rate = case.facts.tokens.per_s
    if isinstance(rate, Unknown):
        return cannot_tell(rate.why)
    return compare(claim, rate.value / base.token_factor_x.value, "tokens/s", case)


@looks_for("baseline_not_measured", "Baseline missing or typed in", order=20)
def look(case: Case) -> str | None:
    """No baseline file, whatever was typed."""
    if case.facts.scaling.refused is None or case.facts.scaling.size < 2:
        return None
    typed = [f"{c.claim} = {c.value}" for c in case.about(*TYPED)]
    held = case.run.more.get("baseline_throughput_per_s", case.run.more.get("baseline_typed_in"))
    typed += [f"the header's {held}"] if held is not None else []
    tail = f"; {', '.join(typed)} is typed in, not measured" if typed else ""
    return f"{case.facts.scaling.refused}{tail}"
