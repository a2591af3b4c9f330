"""Was throughput read off the wall clock, or made from latency?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, compare, fact, judges, looks_for, number
from gpuledger.units import Unknown

DIFFERS_RATIO = 0.1


def _source(case: Case, value: float) -> str:
    """Where a figure that is not the measured one may come from."""
    inverse = case.facts.inverse_latency_per_s
    if not isinstance(inverse, Unknown) and abs(value / inverse - 1) < 0.02:
        return f"{number(value)} is the sum over nodes of 1 / mean latency, which leaves out all time between requests"
    return ""


@judges("throughput_per_s", "number", "answered requests a second, by wall clock")
def judge(case: Case, claim: Claim) -> Finding:
    """By wall clock."""
    if claim.node is None:
        return compare(claim, fact(case.facts.throughput_per_s), "/s by wall clock", case, _source(case, claim.number))
    node = case.node(claim)
    if isinstance(node, Unknown):
        return cannot_tell(node.why)
    said = ""
    if (
        not isinstance(node.inverse_latency_per_s, Unknown)
        and abs(claim.number / node.inverse_latency_per_s - 1) < 0.02
    ):
        said = f"{number(claim.number)} is 1 / mean latency"
    return compare(claim, node.throughput_per_s, "/s by wall clock", case, said)


@looks_for("throughput_from_latency", "Throughput made from 1 / latency", order=40)
def look(case: Case) -> str | None:
    """Whether 1 / latency would claim something else than the wall clock says."""
    rate, inverse, wall = case.facts.throughput_per_s, case.facts.inverse_latency_per_s, case.facts.wall_s
    if isinstance(rate, Unknown) or isinstance(inverse, Unknown) or isinstance(wall, Unknown) or not rate.value:
        return None
    claimed = any(abs(c.number / inverse - 1) < 0.02 for c in case.about("throughput_per_s") if c.node is None)
    # With several requests in flight 1 / latency is below the truth, and nobody would claim it.
    if inverse < rate.value * (1 + DIFFERS_RATIO) and not claimed:
        return None
    return (
        f"{case.facts.counts.ok} answers in {wall:.2f} s are {rate.value:.2f}/s; the sum of 1 / mean latency over the "
        f"nodes would claim {inverse:.2f}/s, which counts neither lost requests nor the time between requests"
    )
