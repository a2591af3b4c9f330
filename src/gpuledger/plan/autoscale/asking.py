"""What is asked? A demand, one replica, the goal and the limits, from the options of the planner."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuledger.errors import InputError
from gpuledger.plan.autoscale.build import Asked, split_of
from gpuledger.plan.autoscale.demand.ledger_hours import ledger_trace
from gpuledger.plan.autoscale.demand.reading import read_trace
from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.policies import PolicyKind, kinds
from gpuledger.plan.autoscale.policies.scheduled import WEEKLY_S
from gpuledger.plan.autoscale.policies.static_peak import peak_replicas
from gpuledger.plan.autoscale.prices import prices_of
from gpuledger.plan.autoscale.replays.replay import interval_for
from gpuledger.plan.autoscale.service import Service, service_of
from gpuledger.plan.autoscale.setting import Setting, Slo, Spot, check_limits

LEDGER_SERVICE_S = 10.0
ROOM = 2
MOST_SEEDS = 50


def asked(options: Mapping[str, Any]) -> Asked:
    """The plan to make for these options; what cannot be is refused."""
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
    seeds = tuple(range(options["seeds"]))
    return Asked(trace, setting, prices, _kinds(options["policy"]), split_s, seeds, options["deployment"])


def _check(options: Mapping[str, Any]) -> None:
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


def _demand(options: Mapping[str, Any]) -> tuple[Service, Trace]:
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
