"""`gpuledger plan regions`: dollars, carbon and zones of every region that may run a job, without a single score."""

from __future__ import annotations

from decimal import Decimal

from gpuledger.catalog.regions import get_place
from gpuledger.errors import InputError
from gpuledger.plan.planners import Options, PlanOption, planner
from gpuledger.plan.regions.asked import (
    MOST_GPUS,
    Asked,
    data_bytes,
    gpus_of,
    hours_of,
    load_of,
    number,
    residency_of,
)
from gpuledger.plan.regions.build import plan_regions
from gpuledger.plan.regions.statement import RegionsPlan
from gpuledger.times import today


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
    if not options["gpu"]:
        raise InputError("gpu is not given", hint="give a GPU such as gpu=h100-sxm")
    if not 1 <= options["gpus"] <= MOST_GPUS:
        raise InputError(f"gpus={options['gpus']} is not possible", hint=f"give gpus=1 or more, up to {MOST_GPUS:,}")
    for name in ("min_zones", "per_instance"):
        if options[name] < 1:
            raise InputError(f"{name}={options[name]} is below 1", hint=f"give {name}=1 or more")
    price = options["moving_usd_per_gb"]
    asked = Asked(
        gpus=gpus_of(options["gpu"]),
        count=options["gpus"],
        hours=hours_of(options["hours"], options["months"]),
        purchase=options["purchase"],
        billed_gb=Decimal(data_bytes(options["data"])) / 2**30,
        data_at=get_place(options["data_at"]) if options["data_at"] else None,
        moves=options["moves"],
        residency=residency_of(options["within"], options["country"], options["region"], options["cloud"]),
        min_zones=options["min_zones"],
        per_instance=options["per_instance"],
        load=load_of(options["load_pct"]),
        load_given=options["load_pct"] is not None,
        moving_usd_per_gb=None if price is None else number("moving_usd_per_gb", price),
        storage_usd_per_gb_month=number("storage_usd_per_gb_month", options["storage_usd_per_gb_month"]),
    )
    if asked.data_at is not None and not asked.billed_gb:
        raise InputError(f"data_at={options['data_at']} is given without data", hint='give data="2 TB" too')
    stage = options.stage("Comparing regions", None)
    made = plan_regions(asked, today=today())
    stage(1)
    return made
