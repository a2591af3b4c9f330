"""How is a capacity plan asked for: from the ledger, or from a table of demand?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.errors import InputError
from gpuledger.numerals import number_given, plain_number
from gpuledger.plan.planners import Options, PlanOption, planner

if TYPE_CHECKING:
    from gpuledger.plan.capacity.need import Asked
    from gpuledger.plan.capacity.statement import CapacityPlan

LAKE = Path("gpuledger-data")
BY = ("cluster", "namespace")
# Options that only one of the two sources has.
OF_LAKE = ("lake", "since", "until", "last", "cluster", "namespace", "inventory", "achievable")
OF_TABLE = ("capacity", "per_gpu", "gpu", "column")


@planner(
    "capacity",
    "Forecast demand: how many GPUs, when, and at what cost.",
    PlanOption("lake", Path, None, f"Lake folder; default: {LAKE}.", metavar="DIR"),
    PlanOption("demand", Path, None, "Table of demand (CSV), not a lake: time and gpus, or jobs.", metavar="FILE"),
    PlanOption("weeks", int, 13, "Weeks ahead."),
    PlanOption("cover", float, 95.0, "Percent of the hours of a month to cover."),
    PlanOption("target", float, 90.0, "Percent of the GPUs that may be taken in those hours."),
    PlanOption("growth", float, None, "Growth of demand in percent per month, in place of its own trend."),
    PlanOption("by", str, "cluster", "Plan by cluster or by namespace.", choices=BY),
    PlanOption("achievable", float, None, "Percent of its time a working GPU can use; default: as the better GPUs."),
    PlanOption("since", str, None, "Start of the history, as 2026-01-20.", metavar="TIME"),
    PlanOption("until", str, None, "End of the history.", metavar="TIME"),
    PlanOption("last", str, None, "Length of the history, counted back from its end (28d).", metavar="LENGTH"),
    PlanOption("cluster", str, None, "Only this cluster; repeatable.", many=True, metavar="NAME"),
    PlanOption("namespace", str, None, "Only this namespace; repeatable.", many=True, metavar="NAME"),
    PlanOption("price", str, None, "Dollars per GPU-hour, for all GPUs or by GPU; repeatable.", many=True, numbers=True,
               metavar="[GPU=]USD"),
    PlanOption("inventory", Path, None, "What you pay for, as for audit; repeatable.", many=True, metavar="FILE"),
    PlanOption("budget", str, None, "Dollars per month, for all GPUs or by name; default: [budgets] of gpuledger.toml.",
               many=True, numbers=True, metavar="[NAME=]USD"),
    PlanOption("buy", float, None, "Purchase price of one GPU with its part of the server, in dollars.", metavar="USD"),
    PlanOption("capacity", str, None, "With --demand: GPUs there now, for all or by name; repeatable.", many=True,
               numbers=True, metavar="[NAME=]GPUS"),
    PlanOption("per_gpu", float, None, "With --demand: how much of a rate (requests per second) one GPU carries.",
               metavar="RATE"),
    PlanOption("gpu", str, None, "With --demand: price GPUs as this one on the market.", metavar="NAME"),
    PlanOption("column", str, None, "With --demand: the column that names the series.", metavar="NAME"),
    PlanOption("engine", str, None, "Where it runs: local, ray or ray://HOST:PORT.", metavar="NAME"),
)  # fmt: skip
def run(options: Options) -> CapacityPlan:
    """The plan of the lake or of the table."""
    from gpuledger.lake.engines.choosing import using

    with using(options["engine"]):
        return _run(options)


def _run(options: Options) -> CapacityPlan:
    from gpuledger.plan.capacity.build import asked_of

    for name in ("cover", "target", "growth", "achievable", "buy", "per_gpu"):
        if options[name] is not None and not math.isfinite(options[name]):
            raise InputError(f"{name}={options[name]} is not a number", hint="give a plain number")
    asked = asked_of(options["weeks"], options["cover"], options["target"], options["growth"])
    _positive(options, "buy", "per_gpu")
    if options["demand"] is not None:
        _without(options, OF_LAKE, "demand brings its own history")
        return _of_table(options, asked)
    _without(options, OF_TABLE, "a lake knows its GPUs")
    return _of_lake(options, asked)


def _of_lake(options: Options, asked: Asked) -> CapacityPlan:
    from gpuledger.advice.asking import asked as paying_terms
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.engine import post_lake
    from gpuledger.ledger.read.window import scope_of
    from gpuledger.plan.capacity.from_lake import plan_from_lake
    from gpuledger.times import instant_ms, today

    share = options["achievable"]
    if share is not None and not 0 < share <= 100:
        raise InputError(f"achievable={share:g} is not a share of time", hint="give above 0 up to 100 percent, as 40")
    root = options["lake"] or LAKE
    prices = named("price", options["price"])
    price = prices.pop("", None) if "" in prices else (prices or None)
    terms = paying_terms(root, price=price, inventory=options["inventory"] or None).terms
    lake = Lake(root)
    lake.require()
    tick = options.stage("posting", None)
    post_lake(lake, load_thresholds())
    tick(1)
    window = {n: options[n] or None for n in ("since", "until", "last", "cluster", "namespace")}
    return plan_from_lake(
        lake,
        scope_of(lake, **window),
        asked,
        terms,
        by=options["by"],
        achievable_ratio=None if share is None else share / 100,
        budgets=_budgets(options["budget"]),
        buy_usd=_buy(options),
        today_ms=instant_ms(today()),
        stage=options.stage,
    )


def _of_table(options: Options, asked: Asked) -> CapacityPlan:
    from gpuledger.plan.capacity.from_table import plan_from_table
    from gpuledger.plan.capacity.money import ALL
    from gpuledger.times import instant_ms, today

    prices = named("price", options["price"])
    if any(prices) or len(prices) > 1:
        raise InputError("price by GPU needs a lake", hint="give one price for all GPUs: price=2.50")
    there = {}
    for name, gpus in named("capacity", options["capacity"], zero=True, whole=True).items():
        if gpus != int(gpus):
            raise InputError(f"capacity={gpus} is not a number of GPUs", hint="give a whole number, as 64")
        there[name or ALL] = int(gpus)
    return plan_from_table(
        options["demand"],
        asked,
        by=options["column"],
        per_gpu=options["per_gpu"],
        capacity=there,
        price=prices.get(""),
        gpu=options["gpu"],
        budgets=_budgets(options["budget"]),
        buy_usd=_buy(options),
        today_ms=instant_ms(today()),
        stage=options.stage,
    )


def named(option: str, given: Sequence[str], *, zero: bool = False, whole: bool = False) -> dict[str, Decimal]:
    """[NAME=]NUMBER, each; without a name it is for all, under the empty name. `whole`: 1,900 can have no decimals."""
    found: dict[str, Decimal] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        hint = f"write {option}=100 or {option}=NAME=100"
        plain = plain_number(number, whole=True) if whole else number
        amount = number_given(plain, f"{option}={name.strip()}".rstrip("="), "number", hint, points=option != "budget")
        if amount < 0 or (not amount and not zero):
            raise InputError(f"{option}={text!r} is not a number above 0", hint=hint)
        if name.strip() in found:
            raise InputError(f"{option} is given twice for {name.strip() or 'all'}", hint="give one")
        found[name.strip()] = amount
    return found


def _budgets(given: Sequence[str]) -> dict[str, Decimal]:
    from gpuledger.cost.user_settings import set_budgets
    from gpuledger.plan.capacity.money import ALL

    return {name or ALL: amount for name, amount in named("budget", given).items()} if given else set_budgets()


def _buy(options: Options) -> Decimal | None:
    return None if options["buy"] is None else Decimal(str(options["buy"]))


def _positive(options: Options, *names: str) -> None:
    for name in names:
        if options[name] is not None and options[name] <= 0:
            raise InputError(f"{name}={options[name]:g} is not above 0", hint="give a number above 0, or leave it out")


def _without(options: Options, names: Sequence[str], why: str) -> None:
    for name in names:
        if options[name]:
            given = options[name][0] if isinstance(options[name], tuple) else options[name]
            raise InputError(f"{name}={given} cannot be used here: {why}", hint="leave it out")
