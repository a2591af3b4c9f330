"""Own or rent: which way to have the GPUs costs least over the years, from when on, and what decides it?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import lowest_first
from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.plan.tco import breakeven
from gpuledger.plan.tco.inputs import Input
from gpuledger.plan.tco.model import Fleet, Own, Values, committed_usd, on_demand_usd, own, used
from gpuledger.plan.tco.ranges import middles, span, swings, turning
from gpuledger.plan.tco.statement import OWN, Path, TcoPlan
from gpuledger.plan.tco.words import NEXT_TO_AUDIT, assumptions, headline, lines, purchase_words, refusals
from gpuledger.units import Unknown

RENTED = ("rent_usd", "spot_usd", "one_year_usd", "three_year_usd")
Cost = Callable[[Values], Decimal]


@dataclass(frozen=True)
class Question:
    """What is compared. `inputs`: every figure that is known; `missing`: prices that are not, and why."""

    gpu: Gpu
    fleet: Fleet
    inputs: Mapping[str, Input]
    missing: Mapping[str, Unknown]
    vary_pct: Decimal
    prices_dated: str
    price_words: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Way:
    name: str
    words: str
    price: str
    cost: Cost


def compare(q: Question, today: dt.date) -> TcoPlan:
    """The comparison of every path whose price is known."""
    fleet, values = q.fleet, middles(q.inputs)
    owning = own(fleet, values)

    def owned(v: Values) -> Decimal:
        return own(fleet, v).total_usd

    mine = _own_path(q, owning, owned, values)
    paths, refused = [mine], list(refusals(q.missing))
    for way in _ways(fleet):
        if way.price not in q.inputs:
            continue
        if way.name in TERMS and TERMS[way.name] > fleet.years:
            refused.append(_too_long(way, fleet))
            continue
        paths.append(_rent_path(q, way, owning, owned, values))
    order = sorted(paths, key=lambda p: lowest_first(p.usd if isinstance(p.usd, Unknown) else p.usd.middle_usd))
    moved = [one for name, one in q.inputs.items() if name not in RENTED[1:]]

    def difference(v: Values) -> Decimal:
        return owned(v) - on_demand_usd(fleet, v, v["rent_usd"])

    found = swings({one.name: one for one in moved}, difference, q.vary_pct)
    turned = turning(found, difference(values))
    return TcoPlan(
        headline=headline(q.gpu, fleet, order, owning, (len(turned), len(found))),
        gpu=q.gpu.key,
        gpu_name=q.gpu.name,
        gpus=fleet.gpus,
        years=fleet.years,
        months=fleet.months,
        used_pct=values["utilization_pct"],
        chosen=order[0],
        runners_up=order[1:],
        own=owning,
        lines=lines(fleet, values, owning),
        inputs=list(q.inputs.values()),
        swings=found,
        turning=turned,
        refused=refused,
        assumptions=[*q.notes, *assumptions(fleet, q.inputs, q.vary_pct, today)],
        prices_dated=q.prices_dated,
        price_words=q.price_words,
        purchase_words=purchase_words(q.inputs["purchase_usd"], today),
        next_to_audit=NEXT_TO_AUDIT,
    )


TERMS = {"1-year": 1, "3-year": 3}


def _ways(fleet: Fleet) -> tuple[_Way, ...]:
    """The ways to rent; each has the input that prices it."""
    return (
        _Way("on-demand", "rented by the hour", "rent_usd", lambda v: on_demand_usd(fleet, v, v["rent_usd"])),
        _Way("1-year", "committed for 1 year at a time", "one_year_usd",
             lambda v: committed_usd(fleet, v, v["one_year_usd"], 1)),
        _Way("3-year", "committed for 3 years at a time", "three_year_usd",
             lambda v: committed_usd(fleet, v, v["three_year_usd"], 3)),
        _Way("spot", "rented by the hour as spot (lost work is not counted)", "spot_usd",
             lambda v: on_demand_usd(fleet, v, v["spot_usd"])),
    )  # fmt: skip


def _own_path(q: Question, owning: Own, owned: Cost, values: Values) -> Path:
    names = [name for name in q.inputs if name not in RENTED and name != "utilization_pct"]
    total, fleet = span(q.inputs, owned, names), q.fleet
    return Path(
        name=OWN,
        words=f"bought, {fleet.method.replace('-', ' ')} depreciation",
        usd=total,
        upfront_usd=owning.set_usd,
        month_usd=owning.running_usd / fleet.months,
        usd_per_gpu_h=total.middle_usd / fleet.gpu_hours,
        usd_per_used_gpu_h=total.middle_usd / (fleet.gpu_hours * used(values)),
        paid_again=owning.bought_again,
    )


def _rent_path(q: Question, way: _Way, owning: Own, owned: Cost, values: Values) -> Path:
    fleet = q.fleet
    names = {way.price, "rent_usd"} if way.price in {"one_year_usd", "three_year_usd"} else {way.price}
    total: UsdRange = span(q.inputs, way.cost, [n for n in names if n in q.inputs])

    def difference(v: Values) -> Decimal:
        return owned(v) - way.cost(v)

    return Path(
        name=way.name,
        words=way.words,
        usd=total,
        upfront_usd=Decimal(0),
        month_usd=total.middle_usd / fleet.months,
        usd_per_gpu_h=total.middle_usd / fleet.gpu_hours,
        usd_per_used_gpu_h=total.middle_usd / (fleet.gpu_hours * used(values)),
        break_even_month=breakeven.month(fleet, owning, total.middle_usd),
        break_even_utilization_pct=breakeven.utilization_pct(difference, values),
        break_even_purchase_usd=breakeven.purchase_usd(difference, values),
    )


def _too_long(way: _Way, fleet: Fleet) -> Refused:
    return Refused(
        f"{way.name} commitment",
        f"its term is longer than the {fleet.years} years compared",
        f"give years={TERMS[way.name]} or more",
    )
