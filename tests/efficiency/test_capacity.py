"""How many TFLOPS are installed, achievable and realized?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.capacity import roi
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.physics.calibration import Calibration, MeasuredGpu
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, PPM, Range, Unknown

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
H100, A10G = "NVIDIA H100 80GB HBM3", "NVIDIA A10G"


def fleet(line: Line) -> list[Any]:
    return [
        line(0, "GPU-a", util=0.9, pif=0.5),
        line(1, "GPU-a", util=0.9, pif=0.7),
        line(0, "GPU-b", util=0.9, pif=0.4, model=A10G, cluster="c2"),
    ]


def test_sums_over_gpus_of_each_gpus_mean(state: State, line: Line) -> None:
    found = state(*fleet(line)).capacity
    assert found.fleet.gpus == 2
    assert found.fleet.peak_tflops == pytest.approx(989.5 + 70)
    assert found.fleet.achievable_tflops == 646 + 35
    assert found.fleet.realized_power_tflops == pytest.approx(646 * 0.6 + 35 * 0.4)
    assert [(c.name, c.gpus, c.achievable_tflops) for c in found.by_model] == [(A10G, 1, 35), (H100, 1, 646)]
    assert [(c.name, c.realized_power_tflops) for c in found.by_cluster] == [
        ("c1", pytest.approx(646 * 0.6)),
        ("c2", pytest.approx(35 * 0.4)),
    ]


def test_other_sources(state: State, line: Line) -> None:
    peak = state(*fleet(line), achievable="peak").capacity.fleet
    assert (peak.achievable_source, peak.achievable_tflops) == ("peak", peak.peak_tflops)
    found = state(*fleet(line), achievable="measured")
    assert found.capacity.fleet.achievable_tflops == 68.56
    assert (found.capacity.fleet.achievable_gpus, found.capacity.fleet.gpus) == (1, 2)
    assert "achievable over 1 of 2 GPUs" in found.capacity.fleet.note
    h100 = next(c for c in found.capacity.by_model if c.name == H100)
    assert isinstance(h100.achievable_tflops, Unknown)
    assert any(H100 in n.figure and "measured" in n.why for n in found.not_known)


def test_a_calibration_measures_this_very_gpu(state: State, line: Line) -> None:
    measured = MeasuredGpu(
        "GPU-a", "2026-11-01", achievable_tflops=700.0, bandwidth_bytes_per_s=3.0e12, idle_power_w=100
    )
    rows = [line(0, "GPU-a", util=0.9, pif=0.5, dram_ms=MS_PER_HOUR, dram_ppm_ms=PPM // 2 * MS_PER_HOUR)]
    found = state(*rows, achievable="measured", calibration=Calibration({"GPU-a": measured}))
    assert found.capacity.fleet.achievable_tflops == 700
    assert found.fleet.memory_pct == pytest.approx(50 * 3.35 / 3.0)
    assert found.fleet.rfu_power_idle_corrected_pct == pytest.approx(100 * (350 - 100) / 600)
    assert any("measured on each board" in text for text in found.assumptions)


def test_realized_by_counters_is_a_range(state: State, line: Line) -> None:
    used = {"tensor_ms": MS_PER_HOUR, "tensor_ppm_mhz_ms": PPM // 2 * 1830 * MS_PER_HOUR, "tensor_precision": "bf16"}
    found = state(line(0, "GPU-a", **used), line(0, "GPU-b", **used)).capacity.fleet.realized_counters_tflops
    assert isinstance(found, Range)
    # SM activity is not recorded: the products may have a single row each.
    assert (found.low, found.middle, found.high) == pytest.approx((0.08 * 989.4, 940, 989.4), rel=1e-3)
    assert isinstance(found.point, Unknown)


def test_a_slice_of_unknown_size(state: State, line: Line) -> None:
    found = state(line(0, util=0.5, pif=0.5, gpu_instance_id="1")).capacity.fleet
    assert isinstance(found.peak_tflops, Unknown)
    assert "MIG" in found.peak_tflops.why


TARGETS = (0.5, 0.6, 0.7, 0.8)


def test_the_published_case() -> None:
    """50 GPUs from 65.5 to 70 %: 50 x (70 / 65.5 - 1) = 3.4 GPUs."""
    seventy, eighty = roi(50, 65.5, TARGETS, MS_PER_DAY)
    assert (seventy.target_rfu_pct, eighty.target_rfu_pct) == (70, 80)
    assert seventy.equivalent_gpus == pytest.approx(3.435, abs=5e-4)
    assert seventy.gpu_hours_per_day == pytest.approx(3.435 * 24, abs=0.01)
    assert seventy.gpu_hours_per_month == pytest.approx(3.435 * 24 * 30, abs=0.4)


def test_targets_at_or_below_the_current_are_left_out() -> None:
    assert [r.target_rfu_pct for r in roi(50, 60.0, TARGETS, MS_PER_DAY)] == [70, 80]
    assert roi(50, 95.0, TARGETS, MS_PER_DAY) == ()


def test_less_than_a_day_says_nothing_of_a_month() -> None:
    whole, short = (roi(50, 65.5, TARGETS, ms)[0] for ms in (MS_PER_DAY, MS_PER_DAY - 1))
    assert whole.gpu_hours_per_month == pytest.approx(30 * whole.gpu_hours_per_day)
    assert short.gpu_hours_per_day == whole.gpu_hours_per_day
    assert isinstance(short.gpu_hours_per_month, Unknown)


def test_nothing_scales_from_nothing() -> None:
    assert roi(50, Unknown("no power"), TARGETS, MS_PER_DAY) == ()
    assert roi(50, 0.0, TARGETS, MS_PER_DAY) == ()


@given(st.integers(1, 10_000), st.floats(0.1, 100), st.lists(st.floats(0.01, 1), min_size=1, max_size=6))
def test_worth_rises_with_the_target_from_zero_at_the_current(gpus: int, rfu: float, targets: list[float]) -> None:
    rows = roi(gpus, rfu, targets, MS_PER_DAY)
    worths = [r.equivalent_gpus for r in rows]
    assert worths == sorted(worths)
    assert all(r.target_rfu_pct > rfu and r.equivalent_gpus > 0 for r in rows)
    for row in rows:
        assert (row.equivalent_gpus + gpus) * rfu == pytest.approx(gpus * row.target_rfu_pct)


def test_work_of_which_only_bounds_are_known_is_no_zero(state: State, line: Line) -> None:
    """fp32 products where only the tensor pipe is recorded: between nothing and the fp32 peak."""
    idle = {"tensor_ms": MS_PER_HOUR, "tensor_ppm_ms": 0, "tensor_ppm_mhz_ms": 0}
    found = state(line(0, "GPU-a", util=1.0, **idle)).capacity.fleet.realized_counters_tflops
    assert isinstance(found, Range)
    assert (found.low, found.middle) == (0, 0)
    assert found.high == pytest.approx(66.9, rel=1e-2)
    assert isinstance(found.point, Unknown)
