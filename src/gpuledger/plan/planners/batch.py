"""`gpuledger plan batch`: when and on which pool should each job of a list run?"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from gpuledger.errors import InputError
from gpuledger.plan.batching.statement import BatchPlan
from gpuledger.plan.planners import Options, PlanOption, planner
from gpuledger.times import instant_ms, length_ms, today
from gpuledger.units import MS_PER_MIN, MS_PER_S


@planner(
    "batch",
    "Plan when and on which pool each job of a list runs.",
    PlanOption("jobs", Path, None, "Table of jobs: gpus and hours, and as far as known id, earliest, deadline, types, "
               "preemptible, weight.", required=True, metavar="FILE"),
    PlanOption("pools", Path, None, "Pools as TOML or a table: name, gpu, gpus, usd_per_gpu_h, kind, speed, price "
               "windows (hours, days, from, to).", metavar="FILE"),
    PlanOption("gpu", str, None, "Instead of --pools: a GPU at its market price; repeat for several.", many=True,
               metavar="NAME"),
    PlanOption("capacity", int, None, "With --gpu: GPUs of each that can be rented at a time."),
    PlanOption("spot", bool, False, "With --gpu: add as many spot GPUs, for preemptible jobs."),
    PlanOption("start", str, None, "Start of the plan.  [default: earliest submission, else now]", metavar="TIME"),
    PlanOption("step", str, None, "Length of a time step (15m, 1h).  [default: from the jobs]", metavar="LENGTH"),
    PlanOption("wait", str, "24h", "Longest wait of a job without a deadline.", metavar="LENGTH"),
    PlanOption("unit", str, None, "Unit of job lengths where the column does not name it.", choices=("s", "min", "h")),
    PlanOption("tz", str, "UTC", "Time zone of times without one.", metavar="ZONE"),
    PlanOption("restart", str, "5m", "Time a preemptible job loses each time it starts again.", metavar="LENGTH"),
    PlanOption("spot_overhead_pct", float, 10.0, "Additional time of jobs on spot, where the pool does not say."),
    PlanOption("allow_late", bool, False, "Where not all deadlines can be met, give the least late plan."),
    PlanOption("seconds", float, 20.0, "Solver work, in about seconds; more may find a cheaper plan."),
)  # fmt: skip
def run(options: Options) -> BatchPlan:
    """The plan for the files and options given."""
    from gpuledger.plan.batching.build import plan_batch
    from gpuledger.plan.batching.cells import positive
    from gpuledger.plan.batching.jobs import read_jobs
    from gpuledger.plan.batching.pools import market_pools, read_pools

    positive("seconds", options["seconds"], most=3600)
    overhead = options["spot_overhead_pct"]
    if not 0 <= overhead <= 1000:
        raise InputError(f"spot_overhead_pct is {overhead:g}", hint="give a percentage from 0 to 1000")
    if (options["pools"] is None) == (not options["gpu"]):
        raise InputError("give either pools or gpu", hint="pools=FILE, or gpu=h100-sxm with capacity=64")
    if options["gpu"] and (options["capacity"] is None or options["capacity"] < 1):
        raise InputError("capacity is not given or below 1", hint="give the GPUs that can be rented: capacity=64")
    step = length_ms(options["step"]) if options["step"] else None
    if step is not None and (step % MS_PER_MIN or step > 24 * 60 * MS_PER_MIN):
        raise InputError(f"step is {options['step']}", hint="give whole minutes up to a day, such as 15m or 1h")
    found = read_jobs(
        options["jobs"],
        start_ms=instant_ms(options["start"]) if options["start"] else None,
        now_ms=int(dt.datetime.now(tz=dt.UTC).timestamp()) * MS_PER_S,
        wait_ms=length_ms(options["wait"]),
        unit=options["unit"] or "",
        zone=options["tz"],
    )
    pools = (
        market_pools(options["gpu"], options["capacity"], today(), overhead, options["spot"])
        if options["gpu"]
        else read_pools(options["pools"], overhead)
    )
    return plan_batch(
        found.jobs,
        pools.pools,
        start_ms=found.start_ms,
        step_ms=step,
        restart_ms=length_ms(options["restart"]),
        allow_late=options["allow_late"],
        seconds=options["seconds"],
        notes=pools.notes,
        read_as=found.read_as,
        stage=options.stage,
    )
