from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.ledger.read.scope import Scope
from gpuledger.plan.move.demand import read_loads
from gpuledger.units import Unknown

A100 = "NVIDIA A100-SXM4-40GB"


def test_a_load_is_its_mean_and_its_busy_hours(books, hour) -> None:
    # Nineteen quiet hours and one busy one: the mean is 0.145, the 95th percentile lies near the top.
    quiet = [hour(n, busy=0.1, used_bytes=6e9) for n in range(19)]
    (load,) = read_loads(books(*quiet, hour(19, busy=1.0, used_bytes=9e9)), Scope())
    assert load.hours == 20
    assert load.observed_h == 20
    assert load.busy_ratio == pytest.approx(0.145)
    assert load.busy_hours_ratio == pytest.approx(0.145)  # interpolated: 0.05 of the way from 0.1 to 1.0
    assert load.memory_max_bytes == 9e9
    assert load.phases_ms == {"idle": 0, "underutilized": 0, "productive": 20 * 3_600_000, "compute_bound": 0}


def test_work_by_counters_is_activity_times_clock_times_rate(books, hour) -> None:
    gpu = get_gpu("a10g")
    (load,) = read_loads(books(*(hour(n, busy=0.5, tensor=0.25) for n in range(4))), Scope())
    assert load.evidence == "counters"
    assert not isinstance(load.tflops, Unknown)
    low, middle, high = load.tflops
    flop = gpu.sm_count.value * gpu.tensor_flop_per_clk_sm["bf16"].value * 0.25 * 1000e6 / 1e12  # type: ignore[union-attr]
    # How fully an active pipe issues is a fact of the architecture, up to 1.
    assert 0.8 * flop <= middle <= flop
    assert low < middle <= high
    # Half of the time busy: while it works it goes twice as fast as on average. Nobody labelled the precision.
    (need,) = load.needs  # type: ignore[misc]
    assert (need.precision, need.known, need.pipe) == ("bf16", False, "tensor")
    assert 0.8 * 2 * flop <= need.tflops <= 2 * flop * (1 + 1e-9)


def test_each_pipe_needs_its_own_precision(books, hour) -> None:
    """Activity x 1 GHz x SMs x FLOP per clock per SM of each pipe, over half of the time busy, by pencil."""

    def mhz(ratio: float) -> int:
        return int(ratio * 1e6) * 1000 * 3_600_000

    pipes = {"fp32_ppm_mhz_ms": mhz(0.3), "fp64_ms": 3_600_000, "fp64_ppm_mhz_ms": mhz(0.1),
             "fp64_ppm_ms": 100_000 * 3_600_000, "tensor_precision": "bfloat16"}  # fmt: skip
    rows = [hour(n, model=A100, busy=0.5, tensor=0.2, **pipes) for n in range(4)]
    (load,) = read_loads(books(*rows), Scope())
    found = {n.precision: n for n in load.needs}  # type: ignore[union-attr]
    assert set(found) == {"bf16", "fp32", "fp64"}
    assert found["fp32"].tflops == pytest.approx(2 * 0.3 * 108 * 128 * 1e9 / 1e12, rel=0.05)
    assert found["fp64"].tflops == pytest.approx(2 * 0.1 * 108 * 64 * 1e9 / 1e12, rel=0.05)
    assert found["bf16"].tflops == pytest.approx(2 * 0.2 * 108 * 2048 * 1e9 / 1e12, rel=0.15)
    assert all(n.known for n in found.values())
    assert load.unrecorded == ("fp16",)


def test_a_tensor_pipe_alone_is_a_lower_bound_so_the_demand_is_unknown(books, hour) -> None:
    (load,) = read_loads(books(*(hour(n, fp32_ms=0, tensor=0.0, state="light-unseen") for n in range(4))), Scope())
    assert isinstance(load.needs, Unknown)
    assert "DCGM_FI_PROF_PIPE_FP32_ACTIVE" in load.needs.why
    assert load.evidence == "power"


def test_tensor_work_labelled_fp32_runs_as_tf32(books, hour) -> None:
    (load,) = read_loads(books(*(hour(n, model=A100, tensor_precision="float32") for n in range(4))), Scope())
    assert [n.precision for n in load.needs] == ["tf32"]  # type: ignore[union-attr]


def test_a_label_that_names_no_precision_is_not_used(books, hour) -> None:
    (load,) = read_loads(books(*(hour(n, tensor_precision="mixed") for n in range(4))), Scope())
    assert [(n.precision, n.known) for n in load.needs] == [("bf16", False)]  # type: ignore[union-attr]
    assert load.precision is None


def test_memory_traffic_is_a_share_of_the_bandwidth(books, hour) -> None:
    (load,) = read_loads(books(*(hour(n, busy=0.5, dram=0.3) for n in range(4))), Scope())
    wide = get_gpu("a10g").memory_bandwidth_bytes_per_s.value
    assert load.busy_hours_dram_bytes_per_s == pytest.approx(0.3 * wide)
    assert load.working_dram_bytes_per_s == pytest.approx(0.6 * wide)


def test_without_counters_power_is_a_ceiling_and_says_so(books, hour) -> None:
    (load,) = read_loads(books(*(hour(n, counters=False) for n in range(4))), Scope())
    assert load.evidence == "power"
    peak = get_gpu("a10g").peak("bf16")
    assert load.tflops == (0.0, pytest.approx(0.5 * peak), pytest.approx(0.5 * peak))  # type: ignore[operator]
    assert isinstance(load.busy_hours_dram_bytes_per_s, Unknown)


def test_the_ceiling_by_power_is_a_share_of_the_limit_in_force(books, hour) -> None:
    # 75 W where 100 W are allowed: 0.75 of the peak at most, whatever the board could draw.
    (load,) = read_loads(books(*(hour(n, counters=False, limit_mw=100_000) for n in range(4))), Scope())
    assert load.busy_hours_tflops == pytest.approx(0.75 * get_gpu("a10g").peak("bf16"))  # type: ignore[operator]


def test_a_gpu_nobody_knows_has_no_work_but_a_reason(books, hour) -> None:
    (load,) = read_loads(books(hour(gpu_model="Mystery 9000")), Scope())
    assert load.evidence == "none"
    assert isinstance(load.tflops, Unknown)
    assert "Mystery 9000" in load.tflops.why


def test_namespaces_and_devices_are_apart_and_scope_narrows(books, hour) -> None:
    lake = books(hour(gpu="GPU-a"), hour(gpu="GPU-b"), hour(gpu="GPU-b", namespace="other"), hour(1, namespace=None))
    found = read_loads(lake, Scope())
    assert [(x.namespace, x.device) for x in found] == [
        ("other", "GPU-b"),
        ("serving", "GPU-a"),
        ("serving", "GPU-b"),
        (None, "GPU-a"),
    ]
    assert {x.namespace for x in read_loads(lake, Scope(namespaces=("other",)))} == {"other"}
    assert read_loads(lake, Scope()) == found
