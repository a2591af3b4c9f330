"""How is a migration plan written as JSON?

Dollars are strings of unrounded decimals; a figure that is not known is null, and `not_known` beside it says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from gpuledger.cost.money import as_text
from gpuledger.plan.guide.schema import WorkloadType
from gpuledger.plan.guide.sets import Consolidation, MigrationSet
from gpuledger.plan.guide.statement import (
    Candidate,
    Current,
    Job,
    Judged,
    MigrationPlan,
    Misfit,
    Option,
    Placement,
    Refused,
    RuleOfThumb,
    Sharing,
)
from gpuledger.units import Unknown

Json = dict[str, Any]


def plan_json(plan: MigrationPlan) -> Json:
    """The whole plan."""
    return {
        "verdict": plan.verdict,
        "recommendation": plan.recommendation,
        "job": _job(plan.job),
        "current": _current(plan.current),
        "chosen": None if plan.chosen is None else _option(plan.chosen),
        "cheapest": None if plan.cheapest is None else plan.cheapest.candidate.id,
        "fastest": None if plan.fastest is None else plan.fastest.candidate.id,
        "runners_up": [o.candidate.id for o in plan.runners_up],
        "options": [_option(o) for o in plan.options],
        "refused": [_refused(r) for r in plan.refused],
        "refused_groups": [_flat(g) for g in plan.refused_groups],
        "memory": _flat(plan.memory),
        "sharing": [_flat(s) for s in plan.sharing],
        "weights": dict(plan.weights),
        "prices": plan.prices,
        "price_dates": list(plan.price_dates),
        "illustrative": plan.illustrative,
        "assumptions": list(plan.assumptions),
        "warnings": list(plan.warnings),
    }


def set_json(found: MigrationSet) -> Json:
    """Several plans, their sum, and which of the jobs could share GPUs."""
    return {
        "name": found.name,
        "purpose": found.purpose,
        "use_case": found.use_case,
        "now_usd": _plain(found.now_usd),
        "then_usd": _plain(found.then_usd),
        "saving_usd": _plain(found.saving_usd),
        "saving_pct": _plain(found.saving_pct),
        "cannot_run_now": found.cannot_run_now,
        "cannot_run_then_usd": _plain(found.cannot_run_then_usd),
        "consolidation": [_flat(c) for c in found.consolidation],
        "plans": [plan_json(p) for p in found.plans],
    }


def _job(job: Job) -> Json:
    own = (
        "workload_id",
        "name",
        "description",
        "expected_outcome",
        "size",
        "precision",
        "use_case",
        "priority",
    )
    return {
        **{name: getattr(job, name) or None for name in own},
        "method": job.method if job.workload is WorkloadType.FINE_TUNING else None,
        "tags": list(job.tags),
        "workload_type": job.workload.value,
        "model": job.model.name,
        "params_total": job.model.params_total,
        "monthly_h": as_text(job.monthly_h),
        "spot_asked": job.spot_asked,
        "spot_suitable": job.spot_suitable,
        "busy_ratio": job.busy_ratio,
    }


def _current(current: Current) -> Json:
    placed = current.placement
    fit = _flat(placed) if isinstance(placed, Misfit) else _placement(placed)
    return {
        **_candidate(current.candidate),
        "fits": not isinstance(placed, Misfit),
        "monthly_usd": _plain(current.monthly_usd),
        "whole_monthly_usd": _plain(current.whole_monthly_usd),
        "other_purchase_usd": _plain(current.other_purchase_usd),
        "placement": fit,
    } | _why(current)


def _candidate(c: Candidate) -> Json:
    own = {f.name: _plain(getattr(c, f.name)) for f in fields(c) if f.name != "gpu"}
    gpu = c.gpu
    return {**own, "gpu": None if isinstance(gpu, Unknown) else gpu.key, "nodes": c.nodes, "words": c.name}


def _placement(p: Placement) -> Json:
    return {**_flat(p), "headroom_ratio": p.headroom_ratio}


def _option(o: Option) -> Json:
    own = {f.name: getattr(o, f.name) for f in fields(o) if f.name not in {"candidate", "placement", "guidelines"}}
    return {
        **_candidate(o.candidate),
        **{name: _plain(value) for name, value in own.items()},
        "placement": _placement(o.placement),
        "guidelines": [_flat(v) for v in o.guidelines],
    } | _why(o)


def _refused(r: Refused) -> Json:
    return {**_candidate(r.candidate), "kind": r.kind, "why": r.why, "remedies": list(r.remedies)}


def _flat(thing: Judged | Misfit | Placement | RuleOfThumb | Sharing | Consolidation | Any) -> Json:
    return {f.name: _plain(getattr(thing, f.name)) for f in fields(thing)} | _why(thing)


def _why(thing: Any) -> Json:
    """The reasons of what is not known, by the name of the figure."""
    found = {f.name: v.why for f in fields(thing) if isinstance(v := getattr(thing, f.name), Unknown)}
    return {"not_known": found} if found else {}


def _plain(value: object) -> Any:
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Decimal):
        return as_text(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return _flat(value)
    return value
