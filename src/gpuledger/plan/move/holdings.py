"""Who holds which GPUs, what did they do and what is paid for them: what are plans from the ledger made of?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Unpack

from gpuledger.advice.case import Case
from gpuledger.advice.cases import make_cases
from gpuledger.advice.limits import Limits
from gpuledger.advice.stretches import read_stretches
from gpuledger.arguments import takes
from gpuledger.catalog.gpus import find_gpu
from gpuledger.catalog.prices.offers import load_offers
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Paying, statement_and_bill
from gpuledger.cost.charges import Charge
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.money import ZERO, usd
from gpuledger.cost.pricing import Price
from gpuledger.cost.projections import Months
from gpuledger.cost.statement import BUCKETS, Bucket, CostStatement
from gpuledger.lake.layout import AnyLake, posted_lake
from gpuledger.ledger.read.scope import Scope, namespace_name
from gpuledger.plan.move.demand import Holding, Load, read_loads
from gpuledger.units import MS_PER_HOUR, Unknown

Key = tuple[str, str | None]
NOTHING_PAID = Unknown("nothing was paid")


@dataclass(frozen=True)
class Fleet:
    """What a plan rests on: the bill of the window, what carries it to a month, its GPUs by namespace and model."""

    cost: CostStatement
    holdings: tuple[Holding, ...]
    months: Months


@takes(Paying)
def read_fleet(lake: AnyLake, scope: Scope, limits: Limits, **paying: Unpack[Paying]) -> Fleet:
    """The holdings of everyone in scope; the ledger must be posted. `paying`: what is paid now, as for the audit."""
    books = posted_lake(lake)
    paying["inventory"] = stock = inventory_of(books, paying.get("inventory"))
    cost, bill = statement_and_bill(books, scope, **paying)
    made = make_cases(read_stretches(books, scope, limits, load_thresholds()), bill, stock, limits, None)
    return Fleet(cost, tuple(_holdings(bill.charges, read_loads(books, scope), made.cases)), cost.months)


def _holdings(charges: Sequence[Charge], loads: Sequence[Load], cases: Sequence[Case]) -> list[Holding]:
    """Every charge in exactly one holding: by namespace and GPU model."""
    grouped: dict[Key, list[Charge]] = {}
    for charge in charges:
        grouped.setdefault((namespace_name(charge.namespace), charge.device.gpu_model), []).append(charge)
    seen: dict[Key, list[Load]] = {}
    for load in loads:
        seen.setdefault((namespace_name(load.namespace), load.gpu_model), []).append(load)
    return [_holding(key, grouped[key], seen.get(key, []), cases) for key in sorted(grouped, key=str)]


def _holding(key: Key, charges: Sequence[Charge], loads: Sequence[Load], cases: Sequence[Case]) -> Holding:
    namespace, model = key
    priced = [c for c in charges if c.dollars is not None]
    paid: dict[str, dict[Bucket, Decimal]] = {}
    hours: dict[str, float] = {}
    for charge in priced or charges:
        parts = charge.dollars.each() if charge.dollars is not None else charge.times.each()
        own = paid.setdefault(charge.device.name, dict.fromkeys(BUCKETS, ZERO))
        for bucket, amount in parts.items():
            own[bucket] += Decimal(amount)
        hours[charge.device.name] = hours.get(charge.device.name, 0.0) + charge.times.paid_ms / MS_PER_HOUR
    unpriced = {c.device.name for c in charges if isinstance(c.price, Unknown)}  # but for devices with a price at times
    mine = [c for c in cases if (namespace_name(c.namespace), c.gpu_model) == key]
    return Holding(
        namespace=namespace,
        gpu_model=model,
        gpu=find_gpu(model) if model else Unknown("the samples carry no model name"),
        loads=tuple(load for load in loads if load.device in paid),
        paid=paid,
        paid_h=hours,
        usd_per_gpu_h=_rate(priced, charges),
        by_market=all(isinstance(c.price, Price) and c.price.basis == "market" for c in priced),
        cases=tuple(mine),
        purposes=frozenset(c.purpose for c in mine),
        unpriced=len(unpriced - {c.device.name for c in priced}),
    )


def clouds_of(holding: Holding) -> frozenset[str]:
    """The clouds its instances are of, where the inventory names them."""
    instances = {c.instance for c in holding.cases if c.instance}
    return frozenset(o.cloud for o in load_offers() if o.instance in instances) if instances else frozenset()


def _rate(priced: Sequence[Charge], charges: Sequence[Charge]) -> Decimal | Unknown:
    """What one GPU-hour of the holding costs now."""
    if not priced:
        whys = (c.price.why for c in charges if isinstance(c.price, Unknown))
        return next((Unknown(why) for why in whys), NOTHING_PAID)
    ms = sum(c.times.paid_ms for c in priced)
    paid = sum((c.dollars.paid_usd for c in priced if c.dollars is not None), ZERO)
    return usd(Fraction(paid) * MS_PER_HOUR / ms) if ms else NOTHING_PAID
