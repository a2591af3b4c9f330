"""What is asked of a comparison of owning and renting? Options become figures; prices and the lake are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.prices import market_price
from gpuledger.errors import InputError
from gpuledger.plan.market import Market
from gpuledger.plan.tco.build import Question
from gpuledger.plan.tco.inputs import Basis, Input, checked, given, inputs_of, measured, purchase_of
from gpuledger.plan.tco.model import PERCENT, Fleet
from gpuledger.plan.tco.usage import busy_pct, usage_of
from gpuledger.units import Unknown

MOST_GPUS, MOST_YEARS = 1_000_000, 10
PER_GPU_H = "$ per GPU-hour"
# Draw of an idle GPU where the catalog has no figure: assumed, in percent of board power.
IDLE_PCT = Decimal(10)


def asked(options: Mapping[str, Any], day: dt.date) -> Question:
    """The question, everything in it checked."""
    gpu = get_gpu(options["gpu"])
    _check(options)
    fleet = _fleet(gpu, options)
    inputs, notes = _inputs(gpu, fleet, options)
    rent, dated, words = _rent(gpu, options, day)
    inputs["rent_usd"] = rent
    missing = _more_prices(gpu, rent, options, inputs)
    return Question(gpu, fleet, inputs, missing, checked("vary_pct", options["vary_pct"]), dated, words, notes)


def _check(options: Mapping[str, Any]) -> None:
    for name, most in (("gpus", MOST_GPUS), ("years", MOST_YEARS)):
        if not 1 <= options[name] <= most:
            raise InputError(f"{name}={options[name]} is not possible", hint=f"give {name}=1 to {most:,}")
    for usd, pct in (("one_year_usd", "one_year_discount_pct"), ("three_year_usd", "three_year_discount_pct")):
        if options[usd] is not None and options[pct] is not None:
            both = f"{usd}={options[usd]:g} and {pct}={options[pct]:g}"
            raise InputError(f"{both} price the same commitment twice", hint="give one of the two")
    if options["lake"] is None and options["last"] is not None:
        raise InputError(f"last={options['last']} is given without a lake", hint="give lake=DIR too")
    if options["lake"] is not None and options["utilization_pct"] is not None:
        both = f"lake={options['lake']} and utilization_pct={options['utilization_pct']:g}"
        raise InputError(f"{both} both say how much the GPUs are used", hint="give one of the two")


def _fleet(gpu: Gpu, options: Mapping[str, Any]) -> Fleet:
    board = Decimal(str(gpu.power_w))
    idle = Decimal(str(gpu.idle_power_w.value)) / gpu.dies if gpu.idle_power_w else board * IDLE_PCT / PERCENT
    residual = options["residual_pct"]
    return Fleet(
        options["gpus"], options["years"], board, idle, options["depreciation"],
        None if residual is None else checked("residual_pct", residual),
    )  # fmt: skip


def _inputs(gpu: Gpu, fleet: Fleet, options: Mapping[str, Any]) -> tuple[dict[str, Input], tuple[str, ...]]:
    """Every figure but the rents, and what has to be said about them."""
    inputs, notes = inputs_of(options), []
    purchase = purchase_of(gpu, options["purchase_usd"])
    if isinstance(purchase, Unknown):
        raise InputError(
            purchase.why, hint="give purchase_usd=DOLLARS, the price of one GPU with its share of the server"
        )
    if gpu.idle_power_w is None:
        notes.append(f"Assumed: an idle {gpu.name} draws {IDLE_PCT} % of its board power.")
    if options["lake"] is not None:
        usage = usage_of(Path(options["lake"]), gpu, options["last"])
        inputs["utilization_pct"] = measured(inputs["utilization_pct"], usage.used_pct, usage.words)
        draw = busy_pct(usage, fleet.board_w, fleet.idle_w)
        if isinstance(draw, Unknown):
            notes.append(f"Power is not taken from the ledger: {draw.why}.")
        elif options["busy_pct"] is None:
            inputs["busy_pct"] = measured(inputs["busy_pct"], draw, usage.words)
    return {"purchase_usd": purchase, **inputs}, tuple(notes)


def _rent(gpu: Gpu, options: Mapping[str, Any], day: dt.date) -> tuple[Input, str, str]:
    """The on-demand price, its date and what it rests on."""
    words = "on-demand price"
    if options["rent_usd"] is not None:
        return given("rent_usd", words, PER_GPU_H, options["rent_usd"]), "given", "your on-demand price"
    found = Market(day, clouds=options["cloud"]).price(gpu)
    if isinstance(found, Unknown):
        raise InputError(found.why, hint="give rent_usd=DOLLARS, the price per GPU-hour, or other clouds")
    dated = str(found.newest) if found.oldest == found.newest else f"{found.oldest} to {found.newest}"
    source = Input("rent_usd", words, PER_GPU_H, found.low_usd, found.usd_per_gpu_h, found.high_usd, Basis.SOURCE,
                   found.words, dated)  # fmt: skip
    return source, dated, found.words


def _more_prices(gpu: Gpu, rent: Input, options: Mapping[str, Any], inputs: dict[str, Input]) -> dict[str, Unknown]:
    """Put the prices of commitments and of spot among the inputs; what is unknown comes back."""
    missing: dict[str, Unknown] = {}
    for years, name in ((1, "one_year"), (3, "three_year")):
        usd, pct = options[f"{name}_usd"], options[f"{name}_discount_pct"]
        words = f"{years}-year commitment price"
        if usd is not None:
            inputs[f"{name}_usd"] = given(f"{name}_usd", words, PER_GPU_H, usd)
        elif pct is not None:
            share = 1 - checked(f"{name}_discount_pct", pct) / PERCENT
            if share <= 0:
                raise InputError(f"{name}_discount_pct={pct:g} is not possible", hint="give less than 100")
            inputs[f"{name}_usd"] = Input(
                f"{name}_usd", words, PER_GPU_H, rent.low * share, rent.middle * share, rent.high * share,
                Basis.GIVEN, f"{pct:g} % below on demand, given",
            )  # fmt: skip
        else:
            missing[f"{name}_usd"] = Unknown("price lists have no commitments: their price depends on your contract")
    if options["spot"]:
        found = market_price(gpu.key, "spot")
        if isinstance(found, Unknown):
            missing["spot_usd"] = found
        else:
            inputs["spot_usd"] = Input("spot_usd", "spot price", PER_GPU_H, found.low_usd, found.usd_per_gpu_h,
                                       found.high_usd, Basis.SOURCE, found.words, found.newest)  # fmt: skip
    return missing
