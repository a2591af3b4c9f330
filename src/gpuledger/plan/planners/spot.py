"""How is a spot plan asked for?"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.errors import InputError
from gpuledger.plan.planners import Options, PlanOption, planner

if TYPE_CHECKING:
    from gpuledger.catalog.gpus import Gpu
    from gpuledger.catalog.prices.history import PriceHistory
    from gpuledger.plan.spot.statement import SpotPlan

S_PER_H = 3600
USUAL_SLACK = 2.0
MOST_HOURS = 8760.0
MOST_DRAWS = 5000


@planner(
    "spot",
    "Plan a job on spot: zones, checkpoints, on-demand fallback.",
    PlanOption("gpu", str, None, "GPU from the catalog; NAME:HOURS for hours of its own. Repeatable.", required=True,
               many=True, metavar="NAME"),
    PlanOption("gpus", int, 1, "Number of GPUs the job needs at the same time."),
    PlanOption("hours", float, None, "Hours of work without interruptions."),
    PlanOption("deadline", str, None,
               "Latest end: a length from the start (36h, 5d) or a time.  [default: twice the work]"),
    PlanOption("budget_usd", float, None, "Dollars it may cost at most."),
    PlanOption("checkpoints", bool, True, "Whether the job can save its state and go on from there."),
    PlanOption("checkpoint_seconds", float, 60.0, "Seconds one checkpoint takes."),
    PlanOption("restart_seconds", float, 300.0, "Seconds from a new instance to the first step."),
    PlanOption("region", str, None, "Allowed region. Repeatable.  [default: all]", many=True),
    PlanOption("zone", str, None, "Allowed zone. Repeatable.  [default: all]", many=True),
    PlanOption("confidence", float, 95.0, "Percent of simulated runs that must keep deadline and budget."),
    PlanOption("reclaims_per_day", float, None, "Your own reclaim rate per instance, instead of the published bands."),
    PlanOption("as_of", str, None, "Start then, with what was known then.  [default: now, with the last known prices]"),
    PlanOption("history", Path, None, "Your own spot price history: CSV, or the JSON of describe-spot-price-history.",
               metavar="FILE"),
    PlanOption("on_demand_usd", float, None,
               "On-demand dollars per instance-hour where your own history has no on-demand prices."),
    PlanOption("backtest", bool, False, "Also replay the job on the price history, against simple rules."),
    PlanOption("draws", int, 100, "Number of simulated runs."),
    PlanOption("seed", int, 0, "Seed of the simulation."),
    PlanOption("engine", str, None, "Where the back-test runs: local, ray or ray://HOST:PORT.", metavar="NAME"),
)  # fmt: skip
def plan(options: Options) -> SpotPlan:
    """The plan for these options."""
    from gpuledger.lake.engines.choosing import using
    from gpuledger.plan.spot.build import Asked, plan_spot
    from gpuledger.times import today

    _checked(options)
    history = _history(options)
    start_s, at_s = _start(options, history)
    hours = _gpu_hours(options)
    deadline_h = _deadline(options, start_s, history.as_of, min(h for _, h in hours))
    budget = options["budget_usd"]
    asked = Asked(
        gpu_hours=hours,
        gpus=options["gpus"],
        checkpoint_h=options["checkpoint_seconds"] / S_PER_H if options["checkpoints"] else None,
        restart_h=options["restart_seconds"] / S_PER_H,
        deadline_h=deadline_h,
        deadline_given=options["deadline"] is not None,
        budget_usd=None if budget is None else Decimal(str(budget)),
        confidence_pct=options["confidence"],
        regions=options["region"],
        zones=options["zone"],
        reclaims_per_day=options["reclaims_per_day"],
        at_s=at_s,
        start_s=start_s,
        one_length=len(hours) > 1 and all(":" not in given for given in options["gpu"]),
        draws=options["draws"],
        seed=options["seed"],
        backtest=options["backtest"],
    )
    with using(options["engine"]):
        return plan_spot(asked, history, today(), options.stage)


def _checked(options: Options) -> None:
    """Numbers that make sense."""
    ranges = {
        "hours": (0.0, MOST_HOURS), "budget_usd": (0.0, 1e9), "checkpoint_seconds": (0.0, 86_400.0),
        "confidence": (0.0, 100.0), "reclaims_per_day": (0.0, 1e4), "on_demand_usd": (0.0, 1e6),
    }  # fmt: skip
    for name, (low, high) in ranges.items():
        value = options[name]
        if value is not None and not (math.isfinite(value) and low < value <= high):
            raise InputError(
                f"{name}={value:g} is not above {low:g} and at most {high:g}",
                hint=f"give {name}={high:g} or less, above {low:g}",
            )
    restart = options["restart_seconds"]
    if not (math.isfinite(restart) and 0 <= restart <= 86_400):
        raise InputError(f"restart_seconds={restart:g} is not between 0 and 86400", hint="give restart_seconds=300")
    for name, high in (("gpus", 100_000), ("draws", MOST_DRAWS)):
        if not 1 <= options[name] <= high:
            hint = f"give {name}=1 or more" if options[name] < 1 else f"give {name}={high} or fewer"
            raise InputError(f"{name}={options[name]} is not between 1 and {high}", hint=hint)
    if options["seed"] < 0:
        raise InputError(f"seed={options['seed']} is below 0", hint="give seed=0 or more")


def _history(options: Options) -> PriceHistory:
    from gpuledger.catalog.prices.history import load_history
    from gpuledger.catalog.prices.history_files import read_history

    if options["history"] is None:
        if options["on_demand_usd"] is not None:
            raise InputError("on_demand_usd is for a history of your own", hint="leave it out, or give history=FILE")
        return load_history()
    return read_history(options["history"], options["on_demand_usd"])


def _start(options: Options, history: PriceHistory) -> tuple[int, int]:
    """When the job starts, and the instant whose prices it is planned with: the last known ones."""
    from gpuledger.times import instant_ms

    if options["as_of"] is not None:
        then = instant_ms(options["as_of"]) // 1000
        return then, then
    now = int(dt.datetime.now(tz=dt.UTC).timestamp()) // 60 * 60
    if now < history.first_s:
        first = dt.datetime.fromtimestamp(history.first_s, dt.UTC).date()
        raise InputError(
            f"all prices of {history.source} lie in the future: the first is of {first}",
            hint=f"correct the dates, or give as_of={history.as_of} to plan as if it were then",
        )
    return now, min(now, history.last_s)


def _gpu_hours(options: Options) -> tuple[tuple[Gpu, float], ...]:
    """Each GPU with its hours of work: its own, or those of all."""
    from gpuledger.catalog.gpus import get_gpu

    out = []
    for given in options["gpu"]:
        name, _, own = given.partition(":")
        try:
            hours = float(own) if own else options["hours"]
        except ValueError:
            raise InputError(f"gpu={given!r}: {own!r} is not a number of hours", hint="write NAME:24") from None
        if hours is None:
            raise InputError(f"hours of work on {name} are not given", hint="give hours=24, or gpu=NAME:24")
        if not (math.isfinite(hours) and 0 < hours <= MOST_HOURS):
            raise InputError(f"{hours:g} hours of work on {name}", hint=f"give hours above 0, at most {MOST_HOURS:g}")
        out.append((get_gpu(name), hours))
    return tuple(out)


def _deadline(options: Options, start_s: int, last: dt.date, hours: float) -> float:
    """Hours from the start to the deadline."""
    from gpuledger.times import instant_ms, length_ms

    given = options["deadline"]
    if given is None:
        return USUAL_SLACK * hours + options["restart_seconds"] / S_PER_H
    try:
        found = length_ms(given) / 1000 / S_PER_H
    except InputError:
        found = (instant_ms(given) / 1000 - start_s) / S_PER_H
    if found <= 0:
        from gpuledger.encode import iso

        start = iso(start_s * 1000)
        before = min(dt.datetime.fromtimestamp(start_s + int((found - 2 * hours) * S_PER_H), dt.UTC).date(), last)
        raise InputError(
            f"the deadline {given} is past: the plan starts at {start}",
            hint=f"give a later deadline, or as_of={before} to plan as if it were then",
        )
    if found > 2 * MOST_HOURS:
        raise InputError(f"the deadline is {found:,.0f} h away", hint=f"give at most {2 * MOST_HOURS:,.0f} h")
    return found
