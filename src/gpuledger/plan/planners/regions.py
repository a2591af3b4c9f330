"""`gpuledger plan regions`: dollars, carbon and zones of every region that may run a job, without a single score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.planners import Options, PlanOption, planner

if TYPE_CHECKING:
    from gpuledger.plan.regions.statement import RegionsPlan


@planner(
    "regions",
    "Compare regions for a job: dollars, carbon and zones.",
    PlanOption("gpu", str, help="GPU of the catalog, such as h100-sxm; may be repeated.", required=True, many=True),
    PlanOption("gpus", int, 8, "Number of GPUs."),
    PlanOption("hours", float, help="Hours the job runs.  [default: one month, 720 h]"),
    PlanOption("months", float, help="Months the job runs, of 720 h each."),
    PlanOption("purchase", str, "on-demand", "Purchase option.", choices=("on-demand", "spot")),
    PlanOption("data", str, "0", 'Data the job needs, such as "2 TB".', metavar="SIZE"),
    PlanOption("data_at", str, help="Where the data is now, such as aws:us-east-1.", metavar="CLOUD:REGION"),
    PlanOption("moves", str, "once", "How often the data is moved.", choices=("once", "monthly")),
    PlanOption("within", str, help="Allowed union or continent: eu, eea, europe; may be repeated.", many=True),
    PlanOption("country", str, help="Allowed country, such as de; may be repeated.", many=True),
    PlanOption("region", str, help="Only these regions.", many=True, metavar="CLOUD:REGION"),
    PlanOption("cloud", str, help="Only these clouds.", many=True),
    PlanOption("per_instance", int, 1, "GPUs that must be in one instance."),
    PlanOption("min_zones", int, 1, "Zones that must list the instance type."),
    PlanOption("load_pct", float, help="Average draw, in percent of board power.  [default: 80, range 50-100]"),
    PlanOption("moving_usd_per_gb", float, help="Your price per GB of moving the data."),
    PlanOption("storage_usd_per_gb_month", float, 0.0, "Price of storing the data there, per GB and month."),
)
def run(options: Options) -> RegionsPlan:
    """The plan for the options."""
    from gpuledger.plan.regions.asked import asked_of  # only a plan needs prices, a help text does not
    from gpuledger.plan.regions.build import plan_regions
    from gpuledger.times import today

    stage = options.stage("Comparing regions", None)
    made = plan_regions(asked_of(options), today=today())
    stage(1)
    return made
