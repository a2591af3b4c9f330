"""What did each owner's GPUs of one model do, as one row with the mix behind it?"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.advice.case import Case
from gpuledger.advice.statement import ClassPart, GroupBehaviour


def group_behaviours(cases: Sequence[Case]) -> tuple[GroupBehaviour, ...]:
    """Cases by owner and model, the longest observed first."""
    groups: dict[tuple[str | None, str | None, str | None], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.namespace, case.workload, case.gpu_model), []).append(case)
    rows = [_row(members) for members in groups.values()]
    return tuple(sorted(rows, key=lambda r: (-r.observed_h, str((r.namespace, r.workload, r.gpu_model)))))


def _row(members: Sequence[Case]) -> GroupBehaviour:
    ordered = sorted(members, key=lambda c: (-c.observed_h, c.klass))
    shares = _mix(ordered, "shares")
    main = max(sorted(shares), key=lambda k: shares[k]) if shares else ordered[0].klass
    # The case of the dominating class tells what shows it; a class that only mixes in has no case of its own.
    told = next((c for c in ordered if c.klass == main), ordered[0])
    return GroupBehaviour(
        namespace=told.namespace,
        workload=told.workload,
        gpu_model=told.gpu_model,
        purpose=told.purpose,
        gpus=len({d.partition("/")[0] for c in ordered for d in c.devices}),
        observed_h=sum(c.observed_h for c in ordered),
        klass=main,
        shares_pct=shares,
        phases_pct=_mix(ordered, "phases"),
        evidence=told.evidence,
        confidence=told.confidence,
        parts=tuple(ClassPart(c.klass, c.gpus, c.observed_h, c.evidence, c.confidence) for c in ordered),
    )


def _mix(members: Sequence[Case], name: str) -> dict[str, float]:
    """Shares over several cases in percent, weighted by their time."""
    sums: dict[str, float] = {}
    for case in members:
        for key, share in getattr(case, name).items():
            sums[key] = sums.get(key, 0.0) + share * case.observed_h
    total = sum(sums.values())
    return {key: 100 * value / total for key, value in sums.items()} if total else {}
