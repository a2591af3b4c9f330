"""Is a GPU outside the catalog planned with its own figures, as a range, and does each of them count?"""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.plan.guide.asking import Form, form_of, plan_configured
from gpuledger.plan.guide.config import load_config, reference
from gpuledger.plan.guide.own_gpus import bandwidth_of, gpu_of, link_kind
from gpuledger.plan.guide.schema import Instance

# The block that GPU Fleet Optimizer's guide gives for a GPU of one's own, as written there.
GUIDE = """
{
  "gpu_instances": {
    "NewGPU": {
      "name": "New Instance (Custom GPU)",
      "family": "N",
      "gpu_type": "NVIDIA CustomGPU",
      "vcpus": 128,
      "gpu_memory_gb": 96,
      "gpus_per_instance": 4,
      "compute_tflops": 1500.0,
      "interconnect_type": "Custom",
      "interconnect_bandwidth_gbps": 800,
      "on_demand_cost_per_hour": 45.0,
      "spot_cost_per_hour": 15.0,
      "memory_bandwidth_factor": 0.85,
      "interconnect_multiplier": 0.9,
      "description": "Custom GPU instance for specific workloads"
    }
  }
}
"""
NEW = json.loads(GUIDE)["gpu_instances"]["NewGPU"]


def new(**changed) -> Instance:
    return msgspec.convert(NEW | changed, Instance)


@pytest.fixture
def config(tmp_path):
    (tmp_path / "gpu_instances.json").write_text(GUIDE)
    return load_config(tmp_path)


def test_the_guides_block_is_planned_with_wherever_it_fits(config):
    for id_, one in config.workloads.items():
        plan = plan_configured(config, form_of(one), id_)
        refused = {r.kind for r in plan.refused if r.candidate.instance == "NewGPU"}
        assert "GPU" not in refused
        if one.scenario.precision == "int8":  # only a 16-bit peak is given
            assert "PRECISION" in refused
        elif one.scenario.model_size != "LARGE":
            assert any(o.candidate.instance == "NewGPU" for o in plan.options), id_
        assert any("NewGPU: NVIDIA CustomGPU is planned with the figures" in words for words in plan.assumptions)


def test_it_can_be_what_runs_now(config):
    plan = plan_configured(config, Form(instance="NewGPU", gpus=4, workload="training", size="small"))
    assert plan.current.monthly_usd == 45 * 720  # a price of an instance, as none says otherwise
    assert plan.chosen is not None
    assert plan.current.rate.low < 0.6 * plan.current.rate.middle  # a sparse peak would be half of it


@pytest.mark.parametrize(
    "changed",
    [
        {"compute_tflops": 900.0}, {"memory_bandwidth_factor": 0.5}, {"memory_bandwidth_gb_per_s": 4000},
        {"interconnect_bandwidth_gbps": 40}, {"interconnect_multiplier": 0.05}, {"interconnect_type": "PCIe Gen4"},
    ],
    ids=str,
)  # fmt: skip
def test_each_of_its_figures_changes_its_speed(changed, tmp_path):
    """35B served by four GPUs at a time: a step waits for compute, memory and link."""
    speeds = []
    for entry in (NEW, NEW | changed):
        (tmp_path / "gpu_instances.json").write_text(json.dumps({"NewGPU": entry}))
        form = Form(instance="NewGPU", gpus=4, workload="inference", size="medium")
        speeds.append(plan_configured(load_config(tmp_path), form).current.rate)
    assert speeds[0].middle != speeds[1].middle


def test_the_bandwidth_of_a_factor_by_pencil():
    """0.85 lies three quarters of the way from 0.7 (A100 80 GB, 2,039 GB/s) to 0.9 (H100, 3,350 GB/s)."""
    found = bandwidth_of(0.85)
    assert (found.low, found.high) == pytest.approx((2039, 3350), rel=0.01)
    assert found.middle == pytest.approx(found.low**0.25 * found.high**0.75)
    one = bandwidth_of(1.0)  # H200 and B200 have the same factor
    assert (one.low, one.high) == pytest.approx((4800, 7700), rel=0.02)
    assert one.middle == pytest.approx(math.sqrt(one.low * one.high))
    assert bandwidth_of(2.0).middle == pytest.approx(2 * one.middle)


@given(st.floats(0.01, 5), st.floats(0.01, 5))
def test_a_higher_factor_is_never_a_lower_bandwidth(one, other):
    less, more = (bandwidth_of(f) for f in sorted((one, other)))
    assert less.middle <= more.middle * (1 + 1e-9)
    for found in (less, more):
        assert found.low <= found.middle * (1 + 1e-9) <= found.high * (1 + 1e-8)


@pytest.mark.parametrize(
    ("words", "gb_per_s", "kind"),
    [
        ("Custom", 800, "NVLink4"), ("Custom", 64, "PCIe4 x16"), ("NVSwitch", 900, "NVLink4"),
        ("NVLink 5 + NVSwitch", 1800, "NVLink5"), ("NVLink3", 600, "NVLink3"), ("NVLink 4-way", 450, "NVLink4"),
        ("NVLink bridge", 600, "NVLink bridge"), ("PCIe Gen5", 128, "PCIe5 x16"), ("PCIe", 32, "PCIe4 x16"),
        ("xGMI", 800, "Infinity Fabric"),
    ],
)  # fmt: skip
def test_how_a_link_is_read(words, gb_per_s, kind):
    assert link_kind(new(interconnect_type=words, interconnect_bandwidth_gbps=gb_per_s)) == kind


def test_the_link_is_of_both_directions_and_scaled():
    made = gpu_of(new())
    assert made.gpu.link.bytes_per_s.value == pytest.approx(720e9)
    slow, fast = made.span
    assert slow.peak("bf16") == 750
    assert fast.peak("bf16") == made.gpu.peak("bf16") == 1500


def test_two_instances_of_one_name_and_different_figures_are_not_taken_for_each_other():
    assert gpu_of(new()).gpu.key != gpu_of(new(compute_tflops=900.0)).gpu.key


def test_a_gpu_of_the_catalog_keeps_its_figures_unless_asked():
    shipped = reference().instances["P5"]
    assert gpu_of(shipped).gpu.key == "h100-sxm5-80gb"
    assert gpu_of(shipped).span is None
    own = gpu_of(msgspec.structs.replace(shipped, figures_from="configuration"))
    assert own.gpu.peak("bf16") == 2000
    assert own.span is not None
