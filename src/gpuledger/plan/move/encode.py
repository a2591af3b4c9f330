"""How is the plan from the ledger written as JSON?

Dollars are strings of decimals, percentages numbers. A figure that is not known is null; `not_known` says why.
"""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Any

from gpuledger.catalog.prices.encode import plain
from gpuledger.cost.savings import Spread
from gpuledger.plan.move.statement import HoldingPlan, LakePlan, Move, NamespacePlan
from gpuledger.plan.offers import MarketOption
from gpuledger.units import Unknown

Json = dict[str, Any]


def lake_plan_json(plan: LakePlan) -> Json:
    """The whole plan."""
    out = _record(plan, leave=("namespaces", "not_known"))
    out["namespaces"] = [_namespace(space) for space in plan.namespaces]
    out["not_known"] = [{"figure": figure, "why": why} for figure, why in plan.not_known]
    return out


def _record(value: Any, leave: tuple[str, ...] = ()) -> Json:
    found = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in leave}
    out = {name: _figure(name, v) for name, v in found.items()}
    why = {name: v.why for name, v in found.items() if isinstance(v, Unknown)}
    return out | ({"not_known": why} if why else {})


def _figure(name: str, value: Any) -> Any:
    return float(value) if name.endswith("_pct") and isinstance(value, Decimal) else plain(value)


def _namespace(space: NamespacePlan) -> Json:
    return _record(space, leave=("holdings",)) | {"holdings": [_holding(h) for h in space.holdings]}


def _holding(plan: HoldingPlan) -> Json:
    out = _record(plan, leave=("measured", "move", "runners_up", "refused", "spot_pct", "cheaper_host"))
    spot = plan.spot_pct
    out["spot_pct"] = None if isinstance(spot, Unknown) else _spread(spot)
    out["cheaper_host"] = None if plan.cheaper_host is None else option_json(plan.cheaper_host)
    out["measured"] = _record(plan.measured)
    out["move"] = None if plan.move is None else _move(plan.move)
    out["runners_up"] = [_move(m) for m in plan.runners_up]
    out["refused"] = [_record(r) for r in plan.refused]
    return out


def _spread(spread: Spread) -> Json:
    return {f.name: float(getattr(spread, f.name)) for f in fields(spread)}


def _move(move: Move) -> Json:
    out = _record(move, leave=("saving", "example"))
    out["saving"] = _spread(move.saving)
    out["example"] = None if move.example is None else option_json(move.example)
    return out


def option_json(option: MarketOption) -> Json:
    """A market option; its GPU by the catalog's key."""
    out = _record(option, leave=("gpu", "availability"))
    return out | {"gpu": option.gpu.key, "availability": option.availability and _record(option.availability)}
