"""Are requests and tokens counted by wall clock, and compared with something other than themselves?"""

from __future__ import annotations

from gpuledger.scaling.analysis.curve import same_run
from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, judges, looks_for
from gpuledger.scaling.figures import Figure
from gpuledger.scaling.statistics import number
from gpuledger.units import Unknown

DIFFERS_RATIO = 0.1
ALIKE_RATIO = 0.02


def _near(value: float, other: Figure, within: float = ALIKE_RATIO) -> bool:
    return not isinstance(other, Unknown) and other != 0 and abs(value / other - 1) < within


@judges("throughput_per_s", "number")
def throughput(case: Case, claim: Claim) -> Finding:
    """Answered requests per second, by wall clock."""
    node, said = case.node(claim), ""
    if node is not None:
        if _near(claim.number, node.inverse_latency_per_s):
            said = f"{number(claim.number)} is 1 / mean latency"
        return case.compare(claim, node.throughput_per_s, "/s by wall clock", said)
    if _near(claim.number, case.facts.inverse_latency_per_s):
        said = f"{number(claim.number)} is the sum over nodes of 1 / mean latency, which omits time between requests"
    return case.count(claim, case.facts.throughput_per_s, "/s by wall clock", said)


@looks_for("throughput_from_latency", "Throughput made from 1 / latency", order=40)
def from_latency(case: Case) -> str | None:
    """Whether 1 / latency would claim something other than the wall clock shows."""
    rate, inverse, wall = case.facts.throughput_per_s, case.facts.inverse_latency_per_s, case.facts.wall_s
    if isinstance(rate, Unknown) or isinstance(inverse, Unknown) or isinstance(wall, Unknown) or not rate.value:
        return None
    claimed = any(_near(c.number, inverse) for c in case.about("throughput_per_s") if c.node is None)
    # With several requests in flight 1 / latency is below the truth, and is not a tempting claim.
    if inverse < rate.value * (1 + DIFFERS_RATIO) and not claimed:
        return None
    return (
        f"{case.facts.counts.ok} answers in {wall:.2f} s are {rate.value:.2f}/s; the sum of 1 / mean latency over the "
        f"nodes would claim {inverse:.2f}/s, which counts neither lost requests nor the time between requests"
    )


@judges("tokens_per_s", "number")
def tokens(case: Case, claim: Claim) -> Finding:
    """Output tokens per second, by wall clock."""
    node, size, single = case.node(claim), case.facts.scaling.size, case.facts.tokens.single_stream_per_s
    if node is not None:
        return case.compare(claim, node.tokens_per_s, "tokens/s")
    said = ""
    if not isinstance(single, Unknown) and _near(claim.number, size * single, 0.05):
        said = f"{claim.value:g} is the rate within one request times {size}"
    return case.count(claim, case.facts.tokens.per_s, "tokens/s by wall clock", said)


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


@judges("token_scaling_x", "number")
def token_factor(case: Case, claim: Claim) -> Finding:
    """Tokens per second over those of a measured baseline."""
    found = case.facts.scaling.token_factor_x
    if isinstance(found, Unknown) and (circle := _circular(case, claim)):
        return cannot_tell(f"{circle}; {found.why}")
    return case.compare(claim, found, "x")


@looks_for("comparison_with_itself", "A comparison with itself", order=60)
def with_itself(case: Case) -> str | None:
    """The baseline is the run, or a factor equals the size with nothing to divide by."""
    refused = case.facts.scaling.refused
    if refused is None or (case.baseline is not None and same_run(case.run, case.baseline)):
        return refused
    for claim in case.about("token_scaling_x", "scaling_factor_x"):
        if said := _circular(case, claim):
            return f"{claim.claim} = {claim.value}: {said}"
    return None
