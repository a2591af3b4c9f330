"""How is the cost statement written as JSON?

Dollars are strings of unrounded decimals, so nothing is lost on the way. A figure that is not known is null, and
`not_known` says which and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from gpuledger.cost.money import as_text
from gpuledger.cost.savings import Savings
from gpuledger.cost.statement import CostRow, CostStatement, Dollars, GpuCost, Times
from gpuledger.units import MS_PER_HOUR, Unknown

Json = dict[str, Any]


def to_json(statement: CostStatement) -> Json:
    """The whole statement."""
    s = statement
    out: Json = {
        "start_ms": s.start_ms,
        "end_ms": s.end_ms,
        "wall_h": s.wall_h,
        "gpus": s.gpus,
        "samples": s.samples,
        **_money(s.dollars, s.times),
        "paid_low_usd": plain(s.paid_low_usd),
        "paid_high_usd": plain(s.paid_high_usd),
        "hourly_usd": None,
        "monthly_usd": None,
        "yearly_usd": None,
        "quarter": None,
        "projection_basis": None,
    }
    if not isinstance(s.projection, Unknown):
        out |= plain(s.projection)
    rest = ("phases_pct", "evidence_pct", "work", "energy_kwh", "energy_usd", "prices", "unpriced", "assumptions")
    out |= {name.removesuffix("_pct") if name == "phases_pct" else name: plain(getattr(s, name)) for name in rest}
    for name in ("by_model", "by_cluster", "by_namespace", "by_owner", "by_team"):
        out[name] = [_row(row) for row in getattr(s, name)]
    out["by_gpu"] = [_gpu(row) for row in s.by_gpu]
    out["previous"] = plain(s.previous)
    out["not_known"] = [{"figure": figure, "why": why} for figure, why in _unknowns(s)]
    return out


def savings_json(savings: Savings | Unknown) -> Json | None:
    """The combined levers; dollars are strings, percentages are numbers."""
    return None if isinstance(savings, Unknown) else plain(savings)


def plain(value: object) -> Any:
    """Any figure of a statement as JSON can hold it."""
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Decimal):
        return as_text(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _field(f.name, getattr(value, f.name)) for f in fields(value)}
    return value


def _field(name: str, value: object) -> Any:
    return float(value) if name.endswith("_pct") and isinstance(value, Decimal) else plain(value)


def _dollars(dollars: Dollars) -> Json:
    return {b: as_text(v) for b, v in dollars.each().items()}


def _hours(times: Times) -> Json:
    return {b: ms / MS_PER_HOUR for b, ms in times.each().items()}


def _money(dollars: Dollars | Unknown, times: Times) -> Json:
    """What was paid and what of it was waste, of all or of a group; None where there is no price."""
    names = ("paid_usd", "buckets", "bucket_pct", "waste_usd", "waste_pct")
    out: Json = dict.fromkeys(names)
    if not isinstance(dollars, Unknown):
        paid, waste = dollars.paid_usd, dollars.waste_usd
        shares = {b: float(100 * v / paid) if paid else 0.0 for b, v in dollars.each().items()}
        figures = (as_text(paid), _dollars(dollars), shares, as_text(waste), float(100 * waste / paid) if paid else 0.0)
        out = dict(zip(names, figures, strict=True))
    return out | {"paid_h": times.paid_h, "bucket_h": _hours(times)}


def _row(row: CostRow) -> Json:
    why = row.dollars.why if isinstance(row.dollars, Unknown) else None
    out = {"name": row.name, "gpus": row.gpus, **_money(row.dollars, row.times), "unpriced_h": row.unpriced_h}
    return out if why is None else out | {"not_known": why}


def _gpu(row: GpuCost) -> Json:
    own = ("gpu_uuid", "gpu_instance_id", "gpu_model", "cluster", "region", "board_share", "usd_per_h", "price_words")
    return {name: plain(getattr(row, name)) for name in own} | _money(row.dollars, row.times)


def _unknowns(statement: CostStatement) -> Iterator[tuple[str, str]]:
    for f in fields(statement):
        value = getattr(statement, f.name)
        if isinstance(value, Unknown):
            yield f.name, value.why
    for row in statement.unpriced:
        yield f"price of {row.gpu_model or 'devices without a model name'}", row.why
