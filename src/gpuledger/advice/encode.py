"""How is the audit written as JSON?

The cost statement's own figures stand at the top under their own names; dollars are strings of unrounded decimals,
percentages are numbers. A figure that is not known is null, and `not_known` says which and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.advice.statement import AuditSavings, AuditStatement, GroupBehaviour, Recommendation, RoiPriced, Target
from gpuledger.cost.encode import plain
from gpuledger.cost.encode import to_json as cost_json
from gpuledger.encode import plain as plain_json
from gpuledger.units import Unknown

Json = dict[str, Any]


def to_json(audit: AuditStatement) -> Json:
    """The whole audit."""
    out: Json = {"headline": list(audit.headline), "first": audit.first.id if audit.first else None}
    out["unrated_note"] = audit.unrated_note or None
    cost = cost_json(audit.cost)
    named = cost.pop("not_known")
    out |= cost
    out["recommendations"] = [_recommendation(r) for r in audit.recommendations]
    out["savings"] = None if isinstance(audit.savings, Unknown) else _savings(audit.savings)
    out["behaviours"] = [_behaviour(b) for b in audit.behaviours]
    out["roi_priced"] = [_roi(r) for r in audit.roi_priced]
    out["budgets"] = plain_json(audit.budgets)
    out["assumptions"] = list(audit.assumptions)
    found = [{"figure": n.figure, "why": n.why} for n in audit.not_known]
    out["not_known"] = list({(n["figure"], n["why"]): n for n in (*named, *found)}.values())
    return out


def _recommendation(r: Recommendation) -> Json:
    why_not = {"not_known": r.month.why} if isinstance(r.month, Unknown) else {}
    return {
        "id": r.id,
        "title": r.title,
        "why": r.why,
        "change": {"language": r.change.language, "text": r.change.text},
        "effort": {"size": r.effort.size, "hours": r.effort.hours, "words": r.effort.words},
        "lever": r.lever,
        "exclusive": r.exclusive or None,
        "namespaces": list(r.namespaces),
        "gpus": r.gpus,
        "monthly_usd": plain(r.month),
        "saving": plain(r.saving),
        "basis": r.basis,
        "source": r.source,
        "energy_monthly": None if r.energy is None else plain(r.energy),
        "targets": [_target(t) for t in r.targets],
    } | why_not


def _target(t: Target) -> Json:
    own = ("owner", "namespace", "workload", "gpu_model", "gpus", "devices", "why", "gain_words", "counted", "words")
    out: Json = {name: plain(getattr(t, name)) for name in own}
    out |= {"class": t.klass, "own": plain(t.own), "monthly_usd": plain(t.month)}
    return out


def _savings(s: AuditSavings) -> Json:
    out: Json = plain(s)
    return out


def _behaviour(b: GroupBehaviour) -> Json:
    out: Json = {("class" if k == "klass" else k): v for k, v in plain(b).items()}
    out["parts"] = [{("class" if k == "klass" else k): v for k, v in part.items()} for part in out["parts"]]
    return out


def _roi(r: RoiPriced) -> Json:
    row: Mapping[str, Any] = plain(r.row)
    return {**row, "usd_per_gpu_h": plain(r.usd_per_gpu_h), "usd_per_month": plain(r.usd_per_month)}
