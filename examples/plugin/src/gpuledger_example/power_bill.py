"""Planner: what the electricity of a fleet costs, `gpuledger plan power-bill`."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpuledger.catalog.gpus import get_gpu
from gpuledger.errors import InputError
from gpuledger.plan.planners import PlanOption, planner

HOURS_PER_MONTH = 720


@dataclass(frozen=True)
class PowerBill:
    """The answer; `monthly_usd` is at full load all month, and so the most it can be."""

    headline: str
    gpu: str
    gpus: int
    board_w: float
    monthly_kwh: float
    monthly_usd: Decimal


@planner(
    "power-bill",
    "Price the electricity of a fleet.",
    PlanOption("gpu", str, None, "GPU of the catalog, such as h100-sxm5-80gb.", required=True),
    PlanOption("gpus", int, 8, "Number of GPUs."),
    PlanOption("usd_per_kwh", float, 0.12, "Price of energy."),
)
def run(options: Mapping[str, Any]) -> PowerBill:
    """Board power x hours x price."""
    gpu = get_gpu(options["gpu"])
    if options["gpus"] < 1:
        raise InputError(f"gpus is {options['gpus']}", hint="give at least 1")
    watts = gpu.stated("board_power_w")
    kwh = watts * options["gpus"] * HOURS_PER_MONTH / 1000
    usd = round(Decimal(str(kwh)) * Decimal(str(options["usd_per_kwh"])), 2)
    words = f"{options['gpus']} x {gpu.name} at full load: at most ${usd:,} per month."
    return PowerBill(words, gpu.key, options["gpus"], watts, kwh, usd)
