"""What planners read: model configurations, planner files, demand tables, traces, job lists, pools."""

from __future__ import annotations

from pathlib import Path

from gpuledger.catalog.models.configs import model_from_config
from gpuledger.plan.autoscale.demand.reading import read_trace
from gpuledger.plan.batching.jobs import read_jobs
from gpuledger.plan.batching.pools import read_pools
from gpuledger.plan.capacity.demand_file import read_demand
from gpuledger.plan.guide.config import examine
from targets import Target, files_of

NOW_MS = 1_768_867_200_000
DAY_MS = 86_400_000


def guide(path: Path) -> object:
    """A planner file as `config check` reads it: faults are collected, none may escape."""
    config, faults = examine(path.parent)
    if config is None:
        raise faults[0]
    return config


TARGETS = [
    Target("model config", model_from_config, files_of("fuzz/seeds/models"), 4.0),
    Target(
        "planner file",
        guide,
        files_of(*(f"src/gpuledger/plan/reference/{n}" for n in ("gpu_instances.json", "workloads.json"))),
        0.15,
    ),
    Target("demand table", read_demand, files_of("fuzz/seeds/demand"), 3.0),
    Target("autoscale trace", read_trace, files_of("fuzz/seeds/demand", "fuzz/seeds/traces"), 3.0),
    Target(
        "batch jobs",
        lambda p: read_jobs(p, start_ms=None, now_ms=NOW_MS, wait_ms=DAY_MS, unit="h"),
        files_of("fuzz/seeds/batch"),
        3.0,
    ),
    Target("batch pools", lambda p: read_pools(p, 10.0), files_of("fuzz/seeds/pools"), 3.0),
]
