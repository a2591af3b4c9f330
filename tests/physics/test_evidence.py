"""Is the work that counters prove the work that was done?"""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.physics.evidence import ModelFacts, PipeRates, pipe_rates
from gpuledger.units import PPM, Unknown

H100, A100, V100 = "h100-sxm5-80gb", "a100-sxm4-40gb", "v100-sxm2-16gb"


def rates_of(name: str, precision: str | None = None) -> PipeRates:
    rates = pipe_rates(get_gpu(name), precision)
    assert isinstance(rates, PipeRates)
    return rates


def without(gpu: Gpu, field: str) -> Gpu:
    return msgspec.structs.replace(gpu, **{field: {} if field == "tensor_flop_per_clk_sm" else None})


def test_a_full_tensor_pipe_at_the_rated_clock_is_the_peak() -> None:
    """132 SMs x 4096 FLOP x 1830 MHz = 989.4 TFLOPS, the dense bf16 peak (989.5); Hopper issues at 0.95.

    How full its SMs are is not recorded here, so its tiles may be half empty: 0.68 at the least.
    """
    low, middle, high = rates_of(H100, "bf16").per_activity["matrix"]
    full = PPM * 1830
    assert (high * full, middle * full, low * full) == pytest.approx((1.0, 0.95, 0.68), rel=1e-3)


def test_precision_not_told_is_a_range() -> None:
    low, middle, high = rates_of(H100).per_activity["matrix"]
    # tf32 runs at half of bf16 and fp8 at twice, each with its end of the issue ratio.
    assert low / high == pytest.approx(0.5 * 0.68 / (2 * 1.0))
    assert middle == pytest.approx(rates_of(H100, "bf16").per_activity["matrix"][1])
    assert any("tf32 to fp8" in note for note in rates_of(H100).notes)


def test_a_label_narrows_the_range() -> None:
    told = rates_of(H100, "fp8")
    low, middle, high = told.per_activity["matrix"]
    assert low / high == pytest.approx(0.68)
    assert middle == pytest.approx(2 * rates_of(H100, "bf16").per_activity["matrix"][1])
    assert not told.notes


def test_a_label_the_gpu_cannot_do_is_said_and_not_used() -> None:
    odd = rates_of(A100, "fp8")
    assert odd.per_activity["matrix"] == rates_of(A100).per_activity["matrix"]
    assert any("'fp8'" in note for note in odd.notes)


def test_an_architecture_nobody_measured_is_taken_as_one_and_said() -> None:
    low, middle, high = rates_of(A100, "bf16").per_activity["matrix"]
    assert low == middle == high
    assert any("Ampere" in note for note in rates_of(A100, "bf16").notes)


def test_one_precision_only_has_no_range() -> None:
    volta = rates_of(V100)
    assert len(set(volta.per_activity["matrix"])) == 1
    assert not any("unknown" in note for note in volta.notes)


def test_vector_pipes() -> None:
    """Over bf16's 4096 FLOP per clock per SM: fp32 256, fp16 twice that, fp64 half; an add counts as two: a range."""
    rates = rates_of(H100, "bf16").per_activity
    unit = rates["matrix"][2] / 4096
    assert rates["fp32"] == pytest.approx((0.45 * 256 * unit, 256 * unit, 1.03 * 256 * unit))
    assert rates["fp16"][1:] == pytest.approx((512 * unit, 1.03 * 512 * unit))
    assert rates["fp64"][1] == pytest.approx(128 * unit)
    assert rates["imma"][2] == pytest.approx(0.97 * 8192 * unit)
    assert rates["dfma"][1] == pytest.approx(256 * unit)


@pytest.mark.parametrize("field", ["sm_count", "tensor_flop_per_clk_sm"])
def test_missing_facts_are_not_known(field: str) -> None:
    rates = pipe_rates(without(get_gpu(H100), field))
    assert isinstance(rates, Unknown)
    assert "H100" in rates.why


def test_facts_of_no_model_and_of_an_unknown_one() -> None:
    for name in (None, "Frobnicator 9000"):
        facts = ModelFacts(name)
        for figure in (facts.peak_tflops, facts.idle_mw, facts.link_bytes_per_s, facts.achievable_tflops("published")):
            assert isinstance(figure, Unknown)
        assert isinstance(facts.rates(None), Unknown)


def test_named_sources_of_achievable_tflops() -> None:
    a10g = ModelFacts("NVIDIA A10G")
    assert (a10g.achievable_tflops("published"), a10g.achievable_tflops("peak")) == (35, 70)
    assert a10g.achievable_tflops("measured") == 68.56
    assert isinstance(ModelFacts("NVIDIA H100 80GB HBM3").achievable_tflops("measured"), Unknown)
    # PCIe is the A10G's fastest way out: it has no link of its own.
    assert isinstance(a10g.link_bytes_per_s, Unknown)


def test_counters_come_near_the_flops_that_really_ran() -> None:
    """Means of our own H200 recording beside the FLOPs its workloads counted: within 14 %."""
    gpu = get_gpu("h200-sxm-141gb")
    peak = gpu.peak("bf16")
    assert not isinstance(peak, Unknown)
    with (Path(__file__).parent / "data" / "h200_means.csv").open(encoding="utf-8") as file:
        recorded = list(csv.DictReader(file))
    assert len(recorded) == 8
    for row in recorded:
        rates = pipe_rates(gpu, row["precision"] or None)
        assert isinstance(rates, PipeRates)
        clock = float(row["sm_clock_mhz"]) * PPM / 100
        tensor, vector = float(row["tensor_pct"]) * clock, float(row["fp32_pct"]) * clock
        middle = peak * (tensor * rates.per_activity["matrix"][1] + vector * rates.per_activity["fp32"][1])
        assert middle == pytest.approx(float(row["true_tflops"]), rel=0.14, abs=1e-9), row["workload"]
