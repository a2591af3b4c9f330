"""Were all planned requests counted, are there enough of them, and is the run called ready although some were lost?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, contradicted, judges, looks_for, supported
from gpuledger.scaling.figures import Counts
from gpuledger.scaling.gains import fixing_gain_pct
from gpuledger.scaling.statistics import number
from gpuledger.units import Unknown


def _outcome(counts: Counts) -> str:
    gone = [f"{n} {word}" for n, word in ((counts.failed, "failed"), (counts.lost, "lost")) if n]
    answered = f"{counts.ok} of {counts.planned} planned requests were answered"
    return f"{answered}, {' and '.join(gone)}" if gone else answered


@judges("success_pct", "number")
def success(case: Case, claim: Claim) -> Finding:
    """Requests answered, in percent of those planned, lost ones included."""
    node = case.node(claim)
    counts = case.facts.counts if node is None else node.counts
    if not counts.planned_known:
        return cannot_tell(
            f"the header does not report the plan: {counts.ok} of {counts.ok + counts.failed} lines are answers, and "
            "a request that left no line cannot be counted"
        )
    if claim.number >= 100 and counts.ok < counts.planned:
        share = 100 * counts.ok / counts.planned
        return contradicted(f"measured: {number(share)} %; {_outcome(counts)}")  # 99.6 % does not round to all
    return case.count(claim, counts.success_pct, "%", _outcome(counts))


@looks_for("survivors_only", "A success rate of survivors only", order=30)
def survivors(case: Case) -> str | None:
    """Whether counting only those that came back would look better."""
    counts, share = case.facts.counts, case.facts.counts.success_pct
    if isinstance(share, Unknown) or isinstance(counts.survivors_pct, Unknown):
        return None
    if counts.survivors_pct <= share.value + 1e-9:
        return None
    return (
        f"{_outcome(counts)}: success is {share.value:.1f} %; counting only those that came back it would read "
        f"{counts.survivors_pct:.1f} %"
    )


@judges("mending_gain_pct", "number")
def gain(case: Case, claim: Claim) -> Finding:
    """Throughput gained if every planned request were answered, in percent: planned / answered - 1."""
    counts = case.facts.counts
    gone = f"{counts.planned - counts.ok} of {counts.planned}"
    said = f"{counts.planned} planned over {counts.ok} answered; {gone} lost is a share of the plan, not a gain"
    return case.compare(claim, fixing_gain_pct(case.facts), "%", said)


@looks_for("too_few_samples", "Too few samples", order=10)
def few(case: Case) -> str | None:
    """A node with fewer answers than readiness requires."""
    need = case.limits.readiness.answers_per_node_from
    found = [f"{n.node} {n.counts.ok}" for n in case.facts.nodes if n.counts.ok < need]
    if not found:
        return None
    return f"answers by node: {', '.join(found)}; {need} per node are needed for a 99th percentile and for readiness"


@judges("ready_for_production", "yes or no")
def ready(case: Case, claim: Claim) -> Finding:
    """Whether the run shows readiness for production, by the limits of thresholds.toml."""
    found = case.readiness
    if found.verdict == "cannot tell":
        return cannot_tell("; ".join(found.unknown))
    is_ready = found.verdict != "not ready"
    why = "; ".join(found.passed if is_ready else found.against)
    return supported(why) if bool(claim.value) is is_ready else contradicted(why)


@looks_for("ready_despite_failures", "Readiness despite failures", order=90)
def ready_despite(case: Case) -> str | None:
    """Called ready while something is against it."""
    if case.readiness.verdict != "not ready":
        return None
    claimed = any(c.value is True for c in case.about("ready_for_production"))
    start = "it was called ready, but " if claimed else "it must not be called ready: "
    return start + "; ".join(case.readiness.against)
