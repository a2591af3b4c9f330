"""Is the scaling efficiency borne out by a measured baseline, and "super-linear" by the interval?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import (
    Case,
    Claim,
    Finding,
    cannot_tell,
    compare,
    contradicted,
    judges,
    looks_for,
    number,
    ranged,
    supported,
)  # fmt: skip
from gpuledger.scaling.claims.rules.mix import against_baseline
from gpuledger.units import Unknown

UNEVEN = "the baseline had requests of other lengths"


def _by_typed_in(case: Case) -> str:
    """What the wall clock would say against a baseline somebody typed in."""
    rate, size = case.facts.throughput_per_s, case.facts.scaling.size
    typed = next((c for c in case.about("baseline_throughput_per_s") if c.number > 0), None)
    if typed is None or isinstance(rate, Unknown) or not size:
        return ""
    one = typed.number * size / 100
    return (
        f". Even against the typed-in {number(typed.number)}/s the wall clock gives {number(rate.value / one)} % "
        f"({number(rate.low / one)} to {number(rate.high / one)} %)"
    )


@judges("scaling_efficiency_pct", "number", "throughput over that of the baseline times the size, in percent")
def efficiency(case: Case, claim: Claim) -> Finding:
    """Against a measured baseline only; above 100 only where the interval is."""
    scaling = case.facts.scaling
    found = scaling.efficiency_pct
    if isinstance(found, Unknown):
        return cannot_tell(f"{found.why}{_by_typed_in(case)}")
    if uneven := against_baseline(case):
        return cannot_tell(f"{UNEVEN}: {uneven}")
    if claim.number > 100 and found.holds(claim.number) and found.low <= 100:
        return cannot_tell(f"measured: {ranged(found, '%')}; the interval holds 100 %, so super-linear is not shown")
    return compare(claim, found, "%", case)


@judges("scaling_factor_x", "number", "throughput over that of the baseline")
def factor(case: Case, claim: Claim) -> Finding:
    """Against a measured baseline only."""
    if uneven := against_baseline(case):
        return cannot_tell(f"{UNEVEN}: {uneven}")
    return compare(claim, case.facts.scaling.factor_x, "x", case)


@judges("super_linear", "yes or no", "more than the baseline times the size")
def superlinear(case: Case, claim: Claim) -> Finding:
    """Only where the interval leaves out 100 %."""
    found = case.facts.scaling.superlinear
    if isinstance(found, Unknown):
        return cannot_tell(f"{found.why}{_by_typed_in(case)}")
    if uneven := against_baseline(case):
        return cannot_tell(f"{UNEVEN}: {uneven}")
    spread = case.facts.scaling.efficiency_pct
    why = f"measured: {spread if isinstance(spread, Unknown) else ranged(spread, '%')}"
    if claim.value is found:
        return supported(why)
    shown = isinstance(spread, Unknown) or spread.holds(100)
    return cannot_tell(f"{why}; the interval holds 100 %") if shown else contradicted(why)


@looks_for("super_linear_without_interval", "Super-linear scaling that the interval does not support", order=25)
def look(case: Case) -> str | None:
    """A claim above linear. A figure above 100 that nobody claims is no mistake: half of all linear runs have one."""
    found, said = case.facts.scaling.efficiency_pct, None
    for claim in case.about("scaling_efficiency_pct", "scaling_factor_x", "super_linear"):
        linear = {"scaling_efficiency_pct": 100, "scaling_factor_x": case.facts.scaling.size}.get(claim.claim)
        if claim.value is True or (linear is not None and claim.number > linear):
            said = claim
    if said is None or (not isinstance(found, Unknown) and found.low > 100):
        return None
    if not isinstance(found, Unknown):
        return f"efficiency is {ranged(found, '%')}: its low end is not above 100 %, so super-linear is not shown"
    return f"{said.claim} = {said.value} claims more than linear, without an interval: {found.why}{_by_typed_in(case)}"
