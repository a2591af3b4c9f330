"""What did the jobs' own meters measure, and which advice does that support?

A finding measured on the very loop outranks what its telemetry suggests: the advice it names applies, with the
meter's evidence and with a saving that is never more than the share of the step that was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuledger.advice.case import Case
from gpuledger.advice.gains import ACTIVE, Gain, Range
from gpuledger.advice.rule import Reason, Rule, Snippet
from gpuledger.efficiency.counted import in_scope
from gpuledger.lake.counted import CountedRun, MeasuredFinding
from gpuledger.ledger.read.scope import Scope


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
    # A recording beside the job may know less of its owner than the job does, or the other way round.
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
        source=_source(found),
    )


def measured_gain(reason: Reason) -> Gain:
    """What the gain of a measured reason rests on."""
    return Gain("computed", "measured", reason.source)


def _source(found: MeasuredFinding) -> str:
    return f"measured by the training meter on this job's own loop; {found.source}"
