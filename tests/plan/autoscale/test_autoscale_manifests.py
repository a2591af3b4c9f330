"""Is what is to be pasted valid YAML with fields that the published schemas have, and with the tuned values?"""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from gpuledger.catalog.gpus import get_gpu
from gpuledger.plan.autoscale.manifests.kubernetes import Target, aws_instances, hpa, karpenter, keda
from gpuledger.plan.autoscale.manifests.yaml_text import yaml_text
from gpuledger.plan.autoscale.setting import Spot

# Fields by path, from the Kubernetes API reference (autoscaling/v2), the CRDs of KEDA 2.15 (keda.sh/v1alpha1) and of
# Karpenter 1.7 (karpenter.sh/v1); "*": a field with names of its own below it. "!": required.
RULES = {
    "stabilizationWindowSeconds": None, "selectPolicy": None,
    "policies": [{"type!": None, "value!": None, "periodSeconds!": None}],
}  # fmt: skip
BEHAVIOR = {"scaleUp": RULES, "scaleDown": RULES}
REF = {"apiVersion": None, "kind": None, "name!": None}
METRIC = {"type!": None, "pods": {"metric!": {"name!": None}, "target!": {"type!": None, "averageValue": None}}}
SCHEMAS = {
    "HorizontalPodAutoscaler": {
        "scaleTargetRef!": REF, "minReplicas": None, "maxReplicas!": None, "metrics": [METRIC], "behavior": BEHAVIOR,
    },
    "ScaledObject": {
        "scaleTargetRef!": REF | {"envSourceContainerName": None}, "pollingInterval": None, "cooldownPeriod": None,
        "initialCooldownPeriod": None, "idleReplicaCount": None, "minReplicaCount": None, "maxReplicaCount": None,
        "fallback": None, "advanced": {"horizontalPodAutoscalerConfig": {"name": None, "behavior": BEHAVIOR}},
        "triggers!": [{"type!": None, "name": None, "metricType": None, "useCachedMetrics": None, "metadata!": "*"}],
    },
    "NodePool": {
        "template!": {
            "metadata": None,
            "spec!": {
                "nodeClassRef!": {"group!": None, "kind!": None, "name!": None},
                "requirements!": [{"key!": None, "operator!": None, "values": None, "minValues": None}],
                "taints": [{"key!": None, "value": None, "effect!": None}], "startupTaints": None,
                "expireAfter": None, "terminationGracePeriod": None,
            },
        },
        "limits": "*", "weight": None,
        "disruption": {
            "consolidationPolicy": None, "consolidateAfter!": None,
            "budgets": [{"nodes!": None, "reasons": None, "schedule": None, "duration": None}],
        },
    },
}  # fmt: skip
VERSIONS = {
    "HorizontalPodAutoscaler": "autoscaling/v2", "ScaledObject": "keda.sh/v1alpha1", "NodePool": "karpenter.sh/v1",
}  # fmt: skip


def _check(value, schema, path):
    if schema is None or schema == "*":
        return
    if isinstance(schema, list):
        for item in value:
            _check(item, schema[0], f"{path}[]")
        return
    known = {name.removesuffix("!"): below for name, below in schema.items()}
    assert set(value) <= set(known), f"{path}: {set(value) - set(known)}"
    missing = {name[:-1] for name in schema if name.endswith("!")} - set(value)
    assert not missing, f"{path}: {missing} missing"
    for name, below in value.items():
        _check(below, known[name], f"{path}.{name}")


def _parsed(text):
    found = list(yaml.safe_load_all(text))
    for one in found:
        assert one["apiVersion"] == VERSIONS[one["kind"]]
        assert set(one) == {"apiVersion", "kind", "metadata", "spec"}
        _check(one["spec"], SCHEMAS[one["kind"]], one["kind"])
    return found


@pytest.fixture
def target(setting, rates):
    def make(**more):
        return Target("chat", setting(slots=16, gpus=2, learned=more.pop("learned", rates([1.0, 1.0])), **more), 10)

    return make


def test_hpa(target):
    (found,) = _parsed(hpa(target(scale_down_delay_s=600.0), 0.7, ["why"]))
    spec = found["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 15)
    assert spec["metrics"][0]["pods"]["target"]["averageValue"] == "11200m"  # 0.7 of 16 slots
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert [p["value"] for p in spec["behavior"]["scaleUp"]["policies"]] == [100, 4]


def test_hpa_cannot_go_to_zero_and_keda_can(target):
    zero = target(min_replicas=0, max_replicas=12)
    assert _parsed(hpa(zero, 0.7, []))[0]["spec"]["minReplicas"] == 1
    (found,) = _parsed(keda(zero, "queue-length", 12.8, []))
    assert (found["spec"]["minReplicaCount"], found["spec"]["maxReplicaCount"]) == (0, 12)
    assert found["spec"]["cooldownPeriod"] == 300


def test_keda_counts_running_and_waiting_requests(target):
    (found,) = _parsed(keda(target(), "queue-length", 12.8, []))
    (trigger,) = found["spec"]["triggers"]
    assert (trigger["type"], trigger["metricType"], trigger["metadata"]["threshold"]) == (
        "prometheus",
        "AverageValue",
        "12.8",
    )
    query = trigger["metadata"]["query"]
    assert "vllm:num_requests_running" in query
    assert "vllm:num_requests_waiting" in query
    assert query.count("(") == query.count(")")
    assert {"serverAddress", "query", "threshold"} <= set(trigger["metadata"])


@pytest.mark.parametrize(("days", "word"), [(3, "offset 86325s"), (0.1, "predict_linear")])
def test_keda_takes_the_larger_of_now_and_what_is_expected(target, rates, days, word):
    learned = rates(np.ones(round(days * 144)))
    (found,) = _parsed(keda(target(learned=learned), "predictive", 0.5, []))
    now, expected = found["spec"]["triggers"]
    assert word in expected["metadata"]["query"]
    assert word not in now["metadata"]["query"]
    assert now["metadata"]["threshold"] == expected["metadata"]["threshold"] == "8"


def test_keda_follows_a_timetable(target, rates):
    learned = rates(np.tile(np.r_[np.full(8, 1.0), np.full(16, 100.0)], 2), 3600.0)
    (found,) = _parsed(keda(target(learned=learned), "scheduled", 0.5, []))
    (trigger,) = found["spec"]["triggers"]
    assert trigger["type"] == "cron"
    assert set(trigger["metadata"]) == {"timezone", "start", "end", "desiredReplicas"}
    assert trigger["metadata"]["desiredReplicas"] == "13"  # 100 / (16 x 0.5)


def test_node_pools_by_the_share_on_spot(target):
    gpu = get_gpu("h100-sxm5-80gb")
    (alone,) = _parsed(karpenter(target(), gpu, ["why"]))
    assert alone["spec"]["limits"] == {"nvidia.com/gpu": 30}  # 15 replicas of 2 GPUs
    assert alone["spec"]["disruption"]["consolidationPolicy"] == "WhenEmpty"
    keys = {r["key"]: r["values"] for r in alone["spec"]["template"]["spec"]["requirements"]}
    assert keys["karpenter.sh/capacity-type"] == ["on-demand"]
    assert "p5.48xlarge" in keys["node.kubernetes.io/instance-type"]
    both = _parsed(karpenter(target(spot=Spot(0.4, 0.1)), gpu, []))
    assert [p["metadata"]["name"] for p in both] == ["chat-on-demand", "chat-spot"]
    assert [p["spec"]["limits"]["nvidia.com/gpu"] for p in both] == [18, 12]
    (spot,) = _parsed(karpenter(target(spot=Spot(1.0, 0.1)), None, []))
    assert spot["metadata"]["name"] == "chat-spot"


def test_instances_hold_a_whole_replica():
    gpu = get_gpu("l4")
    assert aws_instances(gpu, 1)[0].startswith("g6.")
    assert set(aws_instances(gpu, 4)) < set(aws_instances(gpu, 1))
    assert aws_instances(None, 1) == []


@pytest.mark.parametrize(
    "value",
    ["yes", "1", "1e3", "a: b", "# no", "", "720h", 'say "x"', "a\nb", "-", "null", "nvidia.com/gpu", "0 8 * * 1"],
)
def test_text_is_read_back_as_written(value):
    made = {"key": value, "list": [value, {"a": value, "b": [1, True]}], value: 1.5, "none": {}, "empty": []}
    if "\n" in value:
        made = {"key": value}
    assert yaml.safe_load(yaml_text(made, ["a comment"])) == made
