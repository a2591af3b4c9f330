"""How are prices written as JSON?

Dollars are strings of decimals, dates are YYYY-MM-DD. A figure that is not known is null, and `not_known` beside it
says why.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from gpuledger.catalog.prices.offers import facts
from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.catalog.prices.rows import PriceRow, Prices
from gpuledger.catalog.prices.spread import PriceComparison
from gpuledger.units import Unknown

Json = dict[str, Any]


def plain(value: object) -> Any:
    """Any figure as JSON can hold it."""
    if isinstance(value, Decimal | dt.date):
        return format(value.normalize(), "f") if isinstance(value, Decimal) else value.isoformat()
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return record(value)
    return value


def record(value: Any) -> Json:
    """A dataclass by its own names, with the reasons for what is not known; `purchase` as a command line has it."""
    found = {f.name: getattr(value, f.name) for f in fields(value)}
    why = {name: v.why for name, v in found.items() if isinstance(v, Unknown)}
    out = {name: plain(v) for name, v in found.items()} | ({"not_known": why} if why else {})
    return out | ({"purchase": str(found["purchase"]).replace("_", "-")} if "purchase" in found else {})


def prices_json(prices: Prices, limit: int | None = None) -> Json:
    """The rows, up to `limit` of them, and what was left out."""
    shown = prices.rows if limit is None else prices.rows[:limit]
    return {
        "matched": len(prices.rows),
        "offers": prices.offers,
        "stale_rows": prices.stale_rows,
        "stale_after_days": dict(prices.stale_after_days),
        "stale_basis": facts().stale_basis,
        "source": facts().source,
        "not_gpus": dict(prices.not_gpus),
        "replaced_by_yours": prices.replaced,
        "none_why": prices.none_why,
        "rows": [row_json(row) for row in shown],
    }


def row_json(row: PriceRow) -> Json:
    """One price; its number of GPUs as a number."""
    gpus = int(row.gpus) if row.gpus == int(row.gpus) else float(row.gpus)
    return record(row) | {"gpus": gpus}


def comparison_json(found: PriceComparison) -> Json:
    """GPU by GPU, and what spot saves over all."""
    return record(found) | {
        "source": facts().source,
        "stale_basis": facts().stale_basis,
        "left_out": dict(found.left_out),
    }


def rate_json(rate: Rate) -> Json:
    """A rate of the user's own, with both prices."""
    offer = rate.offer
    names = ("cloud", "instance", "gpu", "count", "region", "usd_per_h", "price_scope", "as_of", "note")
    return {name: getattr(rate, name) for name in names} | {
        "purchase": rate.purchase.replace("_", "-"),
        "usd_per_gpu_h": plain(offer.usd_per_gpu_h),
        "usd_per_instance_h": plain(offer.usd_per_h),
    }
