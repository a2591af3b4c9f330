"""Which rules apply to which cases, and what would each save there by itself?

A finding that a job's own meter measured outranks what its telemetry suggests: the advice it names applies, with the
meter's evidence and with a saving that is never more than the share of the step that was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import ACTIVE, RULES, Gain, Range, Reason, Rule, Snippet, with_rule_limits
from gpuledger.advice.signs import clocks_held, spins, trains
from gpuledger.cost.savings import ACTS_ON, MAYBE, Lever
from gpuledger.efficiency.counted import in_scope
from gpuledger.lake.counted import CountedRun
from gpuledger.ledger.read.scope import Scope

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
    rules, full = [rule for _, rule in RULES], with_rule_limits(limits)
    return tuple(found for case in cases for rule in rules if (found := find(rule, case, full)) is not None)


def find(rule: Rule, case: Case, limits: Limits) -> Finding | None:
    """One rule against one case; None where it does not apply, or has nothing there to save."""
    reason = measured_reason(rule, case)
    if reason is None:
        reason = rule.when(case, limits)
        # What stands still is looked at first: neither its kernels nor its price are to be read from that time.
        if reason is None or (rule.lever and spins(case, limits)) or not _fits_the_job(rule, reason, case, limits):
            return None
    gain = rule.gain.variants[reason.variant] if reason.variant else rule.gain
    if reason.source:
        gain = Gain("computed", "measured", reason.source)
    if rule.lever is None:
        return Finding(rule, case, reason, gain, NOTHING, None)
    claimed = reason.gain or gain.fraction(case.bucket_shares)
    if claimed is None:
        raise ValueError(f"rule {rule.id!r} computes its gain, but gave none")
    alone = capped(rule, claimed, case)
    if alone.high < LEAST:
        return None
    headroom = claimed.high * sum(case.weights.values(), Decimal(0)) if rule.lever == "sku" else None
    parts = claimed.low, claimed.middle, claimed.high
    lever = Lever(rule.id, rule.lever, *parts, exclusive=rule.exclusive, headroom_usd=headroom)
    return Finding(rule, case, reason, gain, alone, lever)


def _fits_the_job(rule: Rule, reason: Reason, case: Case, limits: Limits) -> bool:
    """Whether a change fits what is known of the job: changes of a training loop are for what is known to train.

    Nor are they for GPUs whose clocks are held down: that comes first, and distorts what the counters show.
    """
    if rule.lever != "throughput" or (reason.change or rule.change).language != "python":
        return True
    return trains(case, limits) and not clocks_held(case, limits)


def capped(rule: Rule, claimed: Range, case: Case) -> Range:
    """A claim cut to what the buckets it acts on hold; a lower price applies to all of the bill."""
    if rule.lever is None or rule.lever == "rate":
        return claimed
    reach = sum((case.bucket_shares[b] for b in ACTS_ON[rule.lever]), Decimal(0))
    most = reach + sum((case.bucket_shares[b] for b in MAYBE.get(rule.lever, ())), Decimal(0))
    return Range(min(claimed.low, reach), min(claimed.middle, reach), min(claimed.high, most))


def with_measured(cases: Sequence[Case], runs: Iterable[CountedRun], scope: Scope) -> tuple[Case, ...]:
    """The cases with what was measured on their devices for their owner; of a topic the latest."""
    counted = [run for run, _ in in_scope(runs, scope)]
    if not counted:
        return tuple(cases)
    out = []
    for case in cases:
        found = {f.topic: f for run in counted if _ran_in(run, case) for f in run.findings}
        out.append(replace(case, measured=tuple(found.values())) if found else case)
    return tuple(out)


def _ran_in(run: CountedRun, case: Case) -> bool:
    name = f"{run.gpu_uuid}/{run.gpu_instance_id}" if run.gpu_instance_id else run.gpu_uuid
    if name not in case.devices:
        return False
    owner = run.labels.get("namespace"), run.labels.get("workload")
    mine = case.namespace, case.workload
    # A recording next to the job may know less of its owner than the job does, or the other way round.
    return all(a is None or b is None or a == b for a, b in zip(owner, mine, strict=True))


def measured_reason(rule: Rule, case: Case) -> Reason | None:
    """Why the rule applies, by the meter; None where nothing was measured for it, or nothing that could be saved."""
    fitting = [f for f in case.measured if f.rule == rule.id and (f.high > 0 or rule.lever is None)]
    if not fitting:
        return None
    found = max(fitting, key=lambda f: (f.middle, f.high, f.topic))
    active = case.share(*ACTIVE)
    return Reason(
        f"measured in the job's own loop: {found.why}",
        gain=None if rule.lever is None else Range.of(*(x * active for x in (found.low, found.middle, found.high))),
        gain_words=found.gain_words,
        change=Snippet("python", found.change),
        source=f"measured by the training meter on this job's own loop; {found.source}",
    )
