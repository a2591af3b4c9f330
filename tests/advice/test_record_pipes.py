"""Does unrated time name the evidence that is missing, and the way to get it?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from casebook import A100, MI300X, case

from gpuledger.advice.findings import find
from gpuledger.advice.limits import load_limits
from gpuledger.advice.rule import RULES
from gpuledger.catalog.gpus import get_gpu, load_gpus
from gpuledger.telemetry.mapping import shipped
from gpuledger.units import Unknown

LIMITS = load_limits()
RULE = RULES.get("record-pipes")
FROM = LIMITS.unrated.sizable_from_ratio
VECTOR = {"fp32_ratio", "fp16_ratio", "fp64_ratio"}
POWERED = {"power_ratio": 0.6, "util_ratio": 0.9}
NO_IDLE = next(g.key for g in load_gpus().values() if g.idle_power_w is None and g.vendor == "NVIDIA")


def unrated(share: float = 0.5, gpu: str = A100, **signals: float):
    money = {"productive": 1 - share, "unrated": share}
    return case("compute-bound", gpu=gpu, signals=signals, money=money)


def asked(one):
    found = find(RULE, one, LIMITS)
    assert found is not None
    assert found.lever is None
    return found.reason.why, found.change.text


def test_tensor_alone_asks_for_the_vector_pipes():
    why, change = asked(unrated(tensor_ratio=0.3))
    assert "DCGM_FI_PROF_PIPE_FP32_ACTIVE, DCGM_FI_PROF_PIPE_FP16_ACTIVE, DCGM_FI_PROF_PIPE_FP64_ACTIVE" in why
    assert why.startswith("work on these pipes is not recorded: ")
    assert "50 % of the bill of ml-training on A100-SXM4-40GB is unrated" in why
    for field in ("SM_ACTIVE", "SM_OCCUPANCY", "PIPE_FP32_ACTIVE", "PIPE_FP16_ACTIVE", "PIPE_FP64_ACTIVE"):
        assert f"\nDCGM_FI_PROF_{field}, gauge, " in change
    for field in ("ENFORCED_POWER_LIMIT", "CLOCKS_EVENT_REASONS"):
        assert f"\nDCGM_FI_DEV_{field}, gauge, " in change
    assert "dcgm-exporter -f counters.csv" in change


def test_every_field_it_asks_for_is_one_the_import_reads():
    _, change = asked(unrated(tensor_ratio=0.3))
    fields = {line.split(",")[0] for line in change.splitlines() if line.startswith("DCGM_")}
    read = {source for value in shipped()["dcgm"].values for source in value.sources}
    assert len(fields) >= 7
    assert fields <= read


def test_without_counters_the_idle_power_decides():
    why, change = asked(unrated(gpu=NO_IDLE, **POWERED))
    assert f"the idle power of {get_gpu(NO_IDLE).name} is not known" in why
    assert "gpuledger calibrate" in change
    assert get_gpu(A100).idle_power_w is not None
    why, change = asked(unrated(**POWERED))
    assert why.startswith("no pipe counters are recorded (")
    assert "dcgm-exporter" in change
    assert asked(unrated(util_ratio=0.9))[0].startswith("no pipe counters are recorded, and no power (")


def test_a_gpu_that_is_not_in_the_catalog_is_to_be_added():
    one = replace(unrated(tensor_ratio=0.3), gpu=Unknown("'Banana 9000' is not in the catalog"))
    why, change = asked(one)
    assert "'Banana 9000' is not in the catalog" in why
    assert "gpuledger catalog gpu" in change


@pytest.mark.parametrize(("share", "said"), [(0.0, False), (FROM - 0.001, False), (FROM, True)])
def test_only_a_sizable_share_is_worth_a_change(share, said):
    assert (find(RULE, unrated(share, tensor_ratio=0.3), LIMITS) is not None) is said


def test_nothing_is_asked_for_that_is_recorded_or_cannot_be():
    everything = dict.fromkeys((*VECTOR, "tensor_ratio"), 0.1)
    assert find(RULE, unrated(**everything), LIMITS) is None
    assert find(RULE, unrated(gpu=MI300X, tensor_ratio=0.3), LIMITS) is None  # DCGM is for NVIDIA's
