"""`gpuledger plan tco`: own GPUs, rent them, or commit to them for 1 or 3 years."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.planners import Options, PlanOption, planner
from gpuledger.plan.tco.inputs import Input, defaults

if TYPE_CHECKING:
    from gpuledger.plan.tco.statement import TcoPlan


def _shown(one: Input) -> str:
    text = f"{one.words[:1].upper()}{one.words[1:]}, {one.unit}".rstrip(", ")
    return f"{text}.  [default: {one.middle.normalize():f}]"


@planner(
    "tco",
    "Compare owning GPUs with renting and with commitments.",
    PlanOption("gpu", str, help="GPU of the catalog, such as h100-sxm.", required=True),
    PlanOption("gpus", int, 8, "Number of GPUs."),
    PlanOption("years", int, 3, "Years compared."),
    PlanOption("purchase_usd", float, help="Price of one GPU with its share of the server."),
    PlanOption("rent_usd", float, help="On-demand price per GPU-hour.  [default: market median]"),
    PlanOption("cloud", str, help="Take the market median of these clouds only.", many=True),
    PlanOption("one_year_usd", float, help="1-year commitment price per GPU-hour."),
    PlanOption("three_year_usd", float, help="3-year commitment price per GPU-hour."),
    PlanOption("one_year_discount_pct", float, help="1-year commitment, percent below on demand."),
    PlanOption("three_year_discount_pct", float, help="3-year commitment, percent below on demand."),
    PlanOption("spot", bool, False, "Compare with spot too."),
    PlanOption("lake", str, help="Take utilization and power from this lake.", metavar="DIR"),
    PlanOption("last", str, help="Window of the lake, counted back from its newest sample (7d, 12h)."),
    PlanOption("depreciation", str, "straight-line", "Depreciation.", choices=("straight-line", "declining")),
    PlanOption("residual_pct", float, help="Resale value at the end, in percent of hardware."),
    PlanOption("vary_pct", float, 10.0, "Tornado: how far inputs without a range are moved, in percent."),
    *(PlanOption(one.name, float, help=_shown(one)) for one in defaults()),
)
def run(options: Options) -> TcoPlan:
    """The comparison for the options."""
    from gpuledger.plan.tco.asking import asked  # only a plan needs prices and the ledger, a help text does not
    from gpuledger.plan.tco.build import compare
    from gpuledger.times import today

    stage = options.stage("Comparing owning and renting", None)
    made = compare(asked(options, today()), today())
    stage(1)
    return made
