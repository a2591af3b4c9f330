"""Which rules apply to which cases, and what would each save there by itself?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.advice.case import Case
from gpuledger.advice.gains import Gain, Range, gain_of
from gpuledger.advice.limits import Limits
from gpuledger.advice.measured import measured_gain, measured_reason
from gpuledger.advice.rule import RULES, Reason, Rule, Snippet
from gpuledger.cost.savings import ACTS_ON, MAYBE, Lever

# Less than this of a case's bill is not worth a change.
LEAST = Decimal("0.001")
NOTHING = Range(Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True)
class Finding:
    """One rule that applies to one case. `alone` are fractions of the case's bill, never more than its buckets hold."""

    rule: Rule
    case: Case
    reason: Reason
    gain: Gain
    alone: Range
    lever: Lever | None

    @property
    def change(self) -> Snippet:
        """The change with the case's own values."""
        return (self.reason.change or self.rule.change).filled(self.reason.fills)


def find_all(cases: Iterable[Case], limits: Limits) -> tuple[Finding, ...]:
    """Every rule against every case."""
    rules = [rule for _, rule in RULES]
    return tuple(found for case in cases for rule in rules if (found := find(rule, case, limits)) is not None)


def find(rule: Rule, case: Case, limits: Limits) -> Finding | None:
    """One rule against one case; None where it does not apply, or has nothing there to save."""
    reason = measured_reason(rule, case) or rule.when(case, limits)
    if reason is None:
        return None
    gain = measured_gain(reason) if reason.source else gain_of(rule.id).variant(reason.variant)
    if rule.lever is None:
        return Finding(rule, case, reason, gain, NOTHING, None)
    claimed = reason.gain or gain.fraction(case.bucket_shares)
    if claimed is None:
        raise ValueError(f"rule {rule.id!r} computes its gain, but gave none")
    alone = capped(rule, claimed, case)
    if alone.high < LEAST:
        return None
    return Finding(rule, case, reason, gain, alone, _lever(rule, claimed, case))


def capped(rule: Rule, claimed: Range, case: Case) -> Range:
    """A claim cut to what the buckets it acts on hold; a lower price applies to all of the bill."""
    if rule.lever is None or rule.lever == "rate":
        return claimed
    reach = sum((case.bucket_shares[b] for b in ACTS_ON[rule.lever]), Decimal(0))
    most = reach + sum((case.bucket_shares[b] for b in MAYBE.get(rule.lever, ())), Decimal(0))
    return Range(min(claimed.low, reach), min(claimed.middle, reach), min(claimed.high, most))


def _lever(rule: Rule, claimed: Range, case: Case) -> Lever:
    assert rule.lever is not None
    paid = sum(case.weights.values(), Decimal(0))
    headroom = claimed.high * paid if rule.lever == "sku" else None
    return Lever(
        rule.id, rule.lever, claimed.low, claimed.middle, claimed.high, (), rule.exclusive, headroom
    )  # fmt: skip


def of_case(findings: Sequence[Finding], case: Case) -> list[Finding]:
    """The findings on one case."""
    return [f for f in findings if f.case is case]
