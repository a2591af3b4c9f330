"""How does a table of demand become a capacity plan?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

from gpuledger.catalog.gpus import get_gpu
from gpuledger.cost.pricing import Price, PriceChoice, price_for
from gpuledger.errors import UnknownName
from gpuledger.plan.capacity.build import Context, PoolDemand, plan
from gpuledger.plan.capacity.demand_file import read_demand
from gpuledger.plan.capacity.money import ALL, NO_PRICE, Rates, rate_of_price
from gpuledger.plan.capacity.need import Asked
from gpuledger.plan.capacity.statement import CapacityPlan
from gpuledger.units import Unknown

Tick = Callable[[int], None]


def plan_from_table(
    path: Path,
    asked: Asked,
    *,
    by: str | None = None,
    per_gpu: float | None = None,
    capacity: Mapping[str, int],
    price: Decimal | None = None,
    gpu: str | None = None,
    budgets: Mapping[str, Decimal],
    buy_usd: Decimal | None = None,
    today_ms: int,
    stage: Callable[[str, int | None], Tick] = lambda _name, _total: lambda _n: None,
) -> CapacityPlan:
    """The plan of a CSV table. `gpu`: price all GPUs as this one on the market, where no price is given."""
    found = read_demand(path, by=by, per_gpu=per_gpu, today_ms=today_ms)
    names = [s.name for s in found.series]
    there = {**found.capacity, **{n: g for n, g in capacity.items() if n != ALL}}
    if unknown := next((n for n in there if n not in names), None):
        raise UnknownName("series of the table", unknown, names)
    if ALL in capacity and len(names) == 1:
        there = {names[0]: capacity[ALL]}
    rate, dated = rate_of_price(_price(price, gpu))
    words = "" if isinstance(rate, Unknown) else f"${rate.middle_usd:,.2f} per GPU-hour, {dated}"
    rates = Rates(dict.fromkeys(names, rate), (words,) if words else (), dated)
    demands = [PoolDemand(s.name, "demand", {"demand": s}, there.get(s.name)) for s in found.series]
    context = Context(
        source=path.name, rates=rates, budgets=budgets, buy_usd=buy_usd, today_ms=today_ms,
        notes=found.notes,
        assumptions=("the table's demand is taken as it is: whether GPUs worked well is not in it",),
    )  # fmt: skip
    return plan(demands, asked, context, stage("forecasting", len(demands)))


def _price(price: Decimal | None, gpu: str | None) -> Price | Unknown:
    if gpu is not None:
        return price_for(get_gpu(gpu).name, PriceChoice(price))
    return Price(price, "given", f"as given: ${price} per GPU-hour", price, price) if price is not None else NO_PRICE
