"""`plan autoscale`: which policy should replicas follow, and what does it cost?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuledger.errors import InputError
from gpuledger.plan.autoscaling.build import Asked, autoscale, split_of
from gpuledger.plan.autoscaling.demand.ledger_hours import ledger_trace
from gpuledger.plan.autoscaling.demand.reading import read_trace
from gpuledger.plan.autoscaling.demand.trace import Trace
from gpuledger.plan.autoscaling.policies import PolicyKind, kinds
from gpuledger.plan.autoscaling.policies.scheduled import WEEKLY_S
from gpuledger.plan.autoscaling.policies.static_peak import peak_replicas
from gpuledger.plan.autoscaling.prices import prices_of
from gpuledger.plan.autoscaling.replays.replay import interval_for
from gpuledger.plan.autoscaling.service import Service, service_of
from gpuledger.plan.autoscaling.setting import Setting, Slo, Spot, check_limits
from gpuledger.plan.autoscaling.statement import AutoscalePlan
from gpuledger.plan.planners import Options, PlanOption, planner

POLICIES = ("static-peak", "target-utilization", "queue-length", "scheduled", "predictive")
LEDGER_SERVICE_S = 10.0
ROOM = 2
MOST_SEEDS = 50


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
    _check(options)
    service, trace = _demand(options)
    split_s = split_of(trace, options["learned_pct"])
    setting = Setting(
        service=service,
        slo=Slo(options["slo_wait_s"], options["slo_pct"]),
        learned=trace.first(split_s),
        interval_s=interval_for(trace.length_s),
        cold_start_s=options["cold_start_s"],
        min_replicas=options["min_replicas"],
        max_replicas=options["max_replicas"],
        scale_down_delay_s=options["scale_down_delay_s"],
        cooldown_s=options["cooldown_s"],
        spot=Spot(options["spot_share"], options["spot_reclaims_per_day"] or 0.0),
        weekly=split_s >= WEEKLY_S,
    )
    if setting.max_replicas is None:
        # Without a limit, a queue that grows during a cold start asks for many times the replicas it needs.
        most = max(setting.min_replicas, ROOM * peak_replicas(setting))
        setting = replace(setting, max_replicas=most)
    prices = prices_of(options["gpu"], options["price"], options["spot_price"])
    asked = Asked(
        trace, setting, prices, _kinds(options["policy"]), split_s, tuple(range(options["seeds"])),
        options["deployment"],
    )  # fmt: skip
    return autoscale(asked, options.stage)


def _check(options: Options) -> None:
    limits = (
        "slo_wait_s", "slo_pct", "cold_start_s", "min_replicas", "max_replicas", "scale_down_delay_s", "cooldown_s",
        "spot_share", "spot_reclaims_per_day",
    )  # fmt: skip
    check_limits(**{name: options[name] for name in limits})
    if not 1 <= options["seeds"] <= MOST_SEEDS:
        raise InputError(f"seeds={options['seeds']} is not between 1 and {MOST_SEEDS}", hint="give seeds=5")
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?", options["deployment"]):
        hint = "give the name of a Deployment: small letters, digits and dashes"
        raise InputError(f"deployment={options['deployment']} is not a name Kubernetes takes", hint=hint)


def _kinds(chosen: tuple[str, ...]) -> list[PolicyKind]:
    return [kind for name, kind in kinds().items() if not chosen or name in chosen]


def _demand(options: Options) -> tuple[Service, Trace]:
    """One replica and the demand: a file, or the hours of the ledger."""
    if (options["trace"] is None) == (options["lake"] is None):
        hint = "for example trace=requests.csv, or lake=gpuledger-data"
        raise InputError("give either a trace or a lake", hint=hint)
    given: dict[str, Any] = {
        name: options[name] for name in ("requests_per_s", "service_s", "tokens_per_s", "concurrency")
    }
    given["gpus"] = options["gpus_per_replica"]
    if options["lake"] is not None:
        if options["series"] is not None:
            raise InputError("series is for a trace", hint="choose with namespace instead")
        service = service_of(**given, mean_tokens=None, fallback_s=LEDGER_SERVICE_S)
        return service, ledger_trace(options["lake"], options["namespace"], service, options["gaps"])
    if options["namespace"]:
        raise InputError("namespace is for a lake", hint="choose with series instead")
    trace = read_trace(options["trace"], series=options["series"], gaps=options["gaps"])
    return service_of(**given, mean_tokens=trace.mean_tokens), trace
