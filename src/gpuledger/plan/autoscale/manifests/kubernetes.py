"""What is there to paste? The tuned values as a HorizontalPodAutoscaler, a ScaledObject of KEDA, and NodePools.

Queries are for the metrics of vLLM; another server has the same two gauges under other names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.manifests.timetables import cron_triggers
from gpuledger.plan.autoscale.manifests.yaml_text import yaml_text
from gpuledger.plan.autoscale.policies.predictive import DAY_S, MEAN_S, TREND_S, daily
from gpuledger.plan.autoscale.policies.scheduled import timetable
from gpuledger.plan.autoscale.setting import Setting
from gpuledger.plan.market import market_options

RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
# A Prometheus adapter shows it under this name: colons cannot be in the name of a metric of pods.
POD_METRIC = "vllm_num_requests_running"
# What arrives at the gateway in front of the pods: it is there while no pod is.
ARRIVING = "nginx_ingress_controller_requests"
SERVER = "http://prometheus-operated.monitoring.svc:9090"
_ROOM_RATIO = 1.5
# A label of nodes; pods spread over its values take on-demand and spot nodes by the number of values each has.
SPREAD_KEY = "capacity-spread"
MOST_DOMAINS = 10


@dataclass(frozen=True)
class Target:
    """What is scaled: a Deployment, by the settings of the plan; `most_replicas` is the most any replay used."""

    deployment: str
    setting: Setting
    most_replicas: int

    @property
    def limit(self) -> int:
        """The most replicas to allow."""
        return self.setting.max_replicas or max(1, math.ceil(_ROOM_RATIO * self.most_replicas))

    @property
    def scale_ref(self) -> dict[str, Any]:
        """The Deployment."""
        return {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.deployment}

    @property
    def behavior(self) -> dict[str, Any]:
        """As it was replayed: up at once, down after the delay."""
        rules = facts().kubernetes
        period = rules.sync_s
        return {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [
                    {"type": "Percent", "value": rules.scale_up_percent, "periodSeconds": period},
                    {"type": "Pods", "value": rules.scale_up_pods, "periodSeconds": period},
                ],
            },
            "scaleDown": {
                "stabilizationWindowSeconds": min(3600, round(self.setting.scale_down_delay_s)),
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": period}],
            },
        }


def hpa(target: Target, target_ratio: float, comments: Sequence[str]) -> str:
    """A HorizontalPodAutoscaler (autoscaling/v2) that keeps running requests per pod near the target."""
    busy = target_ratio * target.setting.service.slots
    metric = {
        "type": "Pods",
        "pods": {
            "metric": {"name": POD_METRIC},
            "target": {"type": "AverageValue", "averageValue": f"{round(1000 * busy)}m"},
        },
    }
    spec = {
        "scaleTargetRef": target.scale_ref,
        "minReplicas": max(1, target.setting.min_replicas),
        "maxReplicas": target.limit,
        "metrics": [metric],
        "behavior": target.behavior,
    }
    return yaml_text(_object("autoscaling/v2", "HorizontalPodAutoscaler", target.deployment, spec), comments)


def keda(target: Target, policy: str, value: float, comments: Sequence[str]) -> str:
    """A ScaledObject (keda.sh/v1alpha1) of the policy with the tuned value."""
    setting = target.setting
    triggers = {"queue-length": _queue, "predictive": _predictive, "scheduled": _scheduled}[policy](target, value)
    if not setting.min_replicas or not triggers:
        triggers.append(_wake(target))
        comments = [*comments, *_wake_comments(target)]
    spec = {
        "scaleTargetRef": target.scale_ref,
        "pollingInterval": facts().kubernetes.sync_s,
        "cooldownPeriod": round(setting.cooldown_s),
        "minReplicaCount": setting.min_replicas,
        "maxReplicaCount": target.limit,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": target.behavior}},
        "triggers": triggers,
    }
    return yaml_text(_object("keda.sh/v1alpha1", "ScaledObject", target.deployment, spec), comments)


def _load(target: Target, window: str = "", offset: str = "") -> str:
    """Running and waiting requests of the Deployment, as a mean of a window where one is given."""
    pods = f'{{pod=~"{target.deployment}-.*"}}'
    back = f" offset {offset}" if offset else ""
    each = [f"avg_over_time({m}{pods}[{window}]{back})" if window else f"{m}{pods}{back}" for m in (RUNNING, WAITING)]
    return " + ".join(f"sum({one})" for one in each)


def _prometheus(name: str, query: str, threshold: float) -> dict[str, Any]:
    metadata = {"serverAddress": SERVER, "query": query, "threshold": f"{threshold:.4g}", "activationThreshold": "0"}
    return {"type": "prometheus", "name": name, "metricType": "AverageValue", "metadata": metadata}


def _wake(target: Target) -> dict[str, Any]:
    """One replica as long as requests arrive at the gateway; metrics of the pods are gone when the last pod is."""
    query = f'sum(rate({ARRIVING}{{ingress="{target.deployment}"}}[2m])) > bool 0'
    return _prometheus("wake-up", query, 1)


def _wake_comments(target: Target) -> list[str]:
    return [
        "wake-up: without a replica, pods report no metrics, so this trigger counts requests at the gateway.",
        f"Its query is for ingress-nginx and an Ingress called {target.deployment}: put in your gateway's own counter.",
        f"The gateway must hold or retry requests for the cold start ({target.setting.cold_start_s:g} s), or they",
        "fail; the KEDA HTTP add-on holds them, and scales by them itself.",
    ]


def _queue(target: Target, value: float) -> list[dict[str, Any]]:
    return [_prometheus("requests", _load(target), value)]


def _predictive(target: Target, value: float) -> list[dict[str, Any]]:
    """The load now and the load to come; KEDA takes the larger."""
    setting = target.setting
    per_replica = value * setting.service.slots
    ahead, mean = setting.cold_start_s + setting.interval_s, f"{MEAN_S:.0f}s"
    now = _load(target, mean)
    if daily(setting):
        day, later = f"{DAY_S:.0f}s", f"{max(0.0, DAY_S - ahead):.0f}s"
        change = f"({_load(target, mean, later)}) / ({_load(target, mean, day)} > 0)"
        coming = f"({now}) * clamp({change}, 0.5, 2)"
    else:
        coming = f"clamp_min(predict_linear(({_load(target)})[{TREND_S:.0f}s:15s], {ahead:.0f}), 0)"
    return [_prometheus("requests-now", now, per_replica), _prometheus("requests-expected", coming, per_replica)]


def _scheduled(target: Target, value: float) -> list[dict[str, Any]]:
    setting = target.setting
    return cron_triggers(timetable(setting, value), setting.cold_start_s, setting.min_replicas)


def karpenter(target: Target, gpu: Gpu | None, comments: Sequence[str]) -> str:
    """NodePools (karpenter.sh/v1) for the replicas: one on demand, one on spot, or both by the share of each."""
    setting = target.setting
    share, gpus = setting.spot.share_ratio, setting.service.gpus
    limits = {"on-demand": target.limit - math.floor(share * target.limit), "spot": math.ceil(share * target.limit)}
    domains = spread(share)
    used = [capacity for capacity in limits if domains[capacity]]
    made = [
        yaml_text(
            _pool(target, gpu, capacity, limits[capacity] * gpus, domains[capacity] if len(used) > 1 else ()),
            comments if capacity == used[0] else (),
        )
        for capacity in used
    ]
    return "---\n".join(made)


def spread(share: float) -> dict[str, tuple[str, ...]]:
    """Domains that replicas are spread over evenly, as many of them on spot as its share asks for (2 of 5)."""
    ratio = Fraction(share).limit_denominator(MOST_DOMAINS)
    if 0 < share < 1:
        ratio = min(max(ratio, Fraction(1, MOST_DOMAINS)), Fraction(MOST_DOMAINS - 1, MOST_DOMAINS))
    names = tuple(str(n) for n in range(1, ratio.denominator + 1))
    first_spot = ratio.denominator - ratio.numerator
    return {"on-demand": names[:first_spot], "spot": names[first_spot:]}


def spot_patch(target: Target) -> str:
    """A patch of the Deployment that spreads its pods over the domains of both NodePools."""
    domains = {capacity: len(found) for capacity, found in spread(target.setting.spot.share_ratio).items()}
    rule = {
        "maxSkew": 1,
        "topologyKey": SPREAD_KEY,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": target.deployment}},
    }
    comments = [
        f"kubectl patch deployment {target.deployment} --patch-file spot_share.yaml",
        f"Spreads pods over {SPREAD_KEY}: {domains['on-demand']} on demand to {domains['spot']} on spot, as replayed.",
        "Without it, all pods may land on spot. matchLabels: the label of your own pods.",
        f"Not guaranteed: the share below {sum(domains.values())} replicas, or after scaling down (Kubernetes removes",
        "pods without regard to it). Without spot capacity pods stay pending; ScheduleAnyway runs them on demand.",
    ]
    return yaml_text({"spec": {"template": {"spec": {"topologySpreadConstraints": [rule]}}}}, comments)


def _pool(target: Target, gpu: Gpu | None, capacity: str, most_gpus: int, domains: Sequence[str]) -> Mapping[str, Any]:
    setting = target.setting
    requirements: list[dict[str, Any]] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
        *([{"key": SPREAD_KEY, "operator": "In", "values": list(domains)}] if domains else []),
    ]
    types = aws_instances(gpu, setting.service.gpus)
    if types:
        requirements.append({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types})
    else:
        least = str(setting.service.gpus - 1)
        requirements.append({"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": [least]})
    spec = {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": requirements,
                "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
                "expireAfter": "720h",
            }
        },
        "limits": {"nvidia.com/gpu": most_gpus},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{max(30, round(setting.scale_down_delay_s))}s",
            "budgets": [{"nodes": "10%"}],
        },
    }
    return _object("karpenter.sh/v1", "NodePool", f"{target.deployment}-{capacity}", spec)


def aws_instances(gpu: Gpu | None, at_least: int) -> list[str]:
    """Instance types of AWS with this GPU that hold a replica, the smallest first."""
    if gpu is None:
        return []
    found = {
        (o.gpus, o.instance) for o in market_options(clouds=("aws",)) if o.gpu.key == gpu.key and o.gpus >= at_least
    }
    return [name for _, name in sorted(found)]


def _object(version: str, kind: str, name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
