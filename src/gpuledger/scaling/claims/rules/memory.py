"""Is the memory in use compared with the card that is really there?"""

from __future__ import annotations

from gpuledger.scaling.analysis.telemetry import stated_bytes
from gpuledger.scaling.claims.rule import Case, Claim, Finding, cannot_tell, contradicted, judges, looks_for
from gpuledger.scaling.statistics import number
from gpuledger.units import Unknown

OTHER_CARD_RATIO = 0.05


def _assumed(case: Case, claim: Claim) -> str:
    """The card that a claimed share implies, where it is not the real one."""
    node = next((n for n in case.facts.nodes if not isinstance(n.memory_pct, Unknown)), None)
    if node is None or isinstance(node.memory_used_bytes, Unknown) or isinstance(node.card_bytes, Unknown):
        return ""
    if claim.number <= 0:
        return ""
    implied = node.memory_used_bytes / (claim.number / 100)
    if abs(implied / node.card_bytes - 1) < OTHER_CARD_RATIO:
        return ""
    real = f"the driver names {node.card}, which has {node.card_bytes / 1e9:.0f} GB"
    return f"{node.memory_used_bytes / 1e9:.2f} GB are {claim.value:g} % of a card of {implied / 1e9:.0f} GB; {real}"


@judges("memory_pct", "number")
def judge(case: Case, claim: Claim) -> Finding:
    """Memory in use, in percent of the card that the driver names."""
    node = case.node(claim)
    found = case.facts.memory_pct if node is None else node.memory_pct
    used = stated_bytes(claim.more)
    if isinstance(found, Unknown) and not isinstance(used, Unknown):
        return _by_its_own_bytes(case, claim, used)
    return case.compare(claim, found, "%", _assumed(case, claim))


def _by_its_own_bytes(case: Case, claim: Claim, used: int) -> Finding:
    """Where the run does not report memory in use and the claim does: its bytes of the real card."""
    cards = {(n.card, n.card_bytes) for n in case.facts.nodes if claim.node in (None, n.node)}
    card, size = cards.pop() if len(cards) == 1 else ("", Unknown("the nodes have different cards"))
    if isinstance(size, Unknown):
        return cannot_tell(size.why)
    share = 100 * used / size
    real = f"{used / 1e9:.2f} GB are {number(share)} % of {card}, which has {size / 1e9:.0f} GB"
    why = f"by its own figures: {real}; the run does not report memory in use"
    return contradicted(why) if case.compare(claim, share, "%").verdict == "contradicted" else cannot_tell(why)


@looks_for("memory_of_assumed_card", "Memory in use compared with an assumed card", order=50)
def look(case: Case) -> str | None:
    """A claimed share, or a card size in the results, that belongs to another card."""
    for claim in case.about("memory_pct"):
        if said := _assumed(case, claim):
            return said
    for name, node in case.run.nodes.items():
        total = node.more.get("memory_total_bytes")
        real = next((n.card_bytes for n in case.facts.nodes if n.node == name), Unknown(""))
        if isinstance(total, int | float) and not isinstance(real, Unknown) and total > real * (1 + OTHER_CARD_RATIO):
            return f"{name} reports a card of {total / 1e9:.0f} GB; the catalog has {real / 1e9:.0f} GB for {node.gpu}"
    return None
