"""Were all planned requests counted, or only those that came back?"""

from __future__ import annotations

from gpuledger.scaling.claims.rule import (
    Case,
    Claim,
    Finding,
    cannot_tell,
    compare,
    contradicted,
    fact,
    judges,
    looks_for,
    number,
)  # fmt: skip
from gpuledger.scaling.figures import Counts
from gpuledger.units import Unknown


def words(counts: Counts) -> str:
    """What became of the requests."""
    gone = [f"{n} {word}" for n, word in ((counts.failed, "failed"), (counts.lost, "lost")) if n]
    return f"{counts.ok} of {counts.planned} planned requests were answered" + (
        f", {' and '.join(gone)}" if gone else ""
    )


@judges("success_pct", "number", "requests answered, in percent of those planned")
def judge(case: Case, claim: Claim) -> Finding:
    """Of the planned ones, lost ones included."""
    counts = case.facts.counts
    if claim.node is not None:
        node = case.node(claim)
        if isinstance(node, Unknown):
            return cannot_tell(node.why)
        counts = node.counts
    if not counts.planned_known:
        return cannot_tell(
            f"the header does not say what was planned: {counts.ok} of {counts.ok + counts.failed} lines are answers, "
            "and a request that left no line cannot be counted"
        )
    if claim.number >= 100 and counts.ok < counts.planned:
        share = 100 * counts.ok / counts.planned
        return contradicted(f"measured: {number(share)} %; {words(counts)}")  # 99.6 % is not all, however it is rounded
    return compare(claim, fact(counts.success_pct), "%", case, words(counts))


@looks_for("survivors_only", "A success rate of survivors only", order=30)
def look(case: Case) -> str | None:
    """Whether counting those that came back would have looked better."""
    counts, share = case.facts.counts, case.facts.counts.success_pct
    if isinstance(share, Unknown) or isinstance(counts.survivors_pct, Unknown):
        return None
    if counts.survivors_pct <= share.value + 1e-9:
        return None
    return (
        f"{words(counts)}: success is {share.value:.1f} %; counting only those that came back it would read "
        f"{counts.survivors_pct:.1f} %"
    )
