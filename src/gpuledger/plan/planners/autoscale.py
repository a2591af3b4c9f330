"""`gpuledger plan autoscale`: which policy should replicas follow, and what does it cost?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.plan.planners import Options, PlanOption, planner

if TYPE_CHECKING:
    from gpuledger.plan.autoscale.statement import AutoscalePlan

POLICIES = ("static-peak", "target-utilization", "queue-length", "scheduled", "predictive")


@planner(
    "autoscale",
    "Plan how serving replicas follow the demand.",
    PlanOption("trace", Path, None, "Demand: CSV or Parquet with a row per request, or rates in even steps."),
    PlanOption("series", str, None, "Which series of the trace, where it has several (such as a model)."),
    PlanOption("lake", Path, None, "Use the ledger's own hours of busy GPUs as demand."),
    PlanOption("namespace", str, None, "Namespace of the ledger; may be given several times.", many=True),
    PlanOption("gaps", str, "refuse", "What to do where a trace has gaps.", choices=("refuse", "skip", "hold")),
    PlanOption("requests_per_s", float, None, "Requests per second one replica can serve."),
    PlanOption("service_s", float, None, "Seconds one request takes on a replica."),
    PlanOption("tokens_per_s", float, None, "Generated tokens per second of one replica with all slots busy."),
    PlanOption("concurrency", int, None, "Requests one replica works on at a time.  [default: 1]"),
    PlanOption("gpus_per_replica", int, 1, "GPUs of one replica."),
    PlanOption("gpu", str, None, "GPU of the catalog, for its market price.", metavar="NAME"),
    PlanOption("price", float, None, "Your own price, dollars per GPU-hour."),
    PlanOption("slo_wait_s", float, 2.0, "Longest time in the queue, seconds."),
    PlanOption("slo_pct", float, 95.0, "Percentage of requests that must wait no longer."),
    PlanOption("cold_start_s", float, 300.0, "Seconds from the start of a replica to its first request."),
    PlanOption("min_replicas", int, 1, "Fewest replicas; 0 allows scaling to zero."),
    PlanOption("max_replicas", int, None, "Most replicas.  [default: twice what the busiest learned step needs]"),
    PlanOption("scale_down_delay_s", float, 300.0, "Stabilization window before replicas are removed, seconds."),
    PlanOption("cooldown_s", float, 300.0, "Seconds without requests before the last replica goes."),
    PlanOption("spot_share", float, 0.0, "Share of replicas on spot, 0 to 1."),
    PlanOption("spot_price", float, None, "Your own spot price, dollars per GPU-hour."),
    PlanOption("spot_reclaims_per_day", float, None, "How often a spot replica is taken back, per day."),
    PlanOption("policy", str, None, "Policy to try; may be given several times.", choices=POLICIES, many=True),
    PlanOption("learned_pct", float, 50.0, "Percentage of the trace that policies are tuned on."),
    PlanOption("seeds", int, 5, "Replays with different chance, where there is chance."),
    PlanOption("deployment", str, "inference", "Name of the Deployment, for the manifests."),
)
def run(options: Options) -> AutoscalePlan:
    """The plan for these options."""
    from gpuledger.plan.autoscale.asking import asked
    from gpuledger.plan.autoscale.build import autoscale

    return autoscale(asked(options), options.stage)
