"""Does a GPU answer with its own dense figures, and say so where it has none?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import get_gpu, load_gpus
from gpuledger.catalog.gpus.facts import IssueRatio, check, issue_ratio
from gpuledger.errors import FactError
from gpuledger.units import Unknown


@pytest.mark.parametrize(
    ("name", "precision", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.5),
        ("NVIDIA H100 80GB HBM3", "fp8", 1979),
        ("NVIDIA A10G", "fp16", 70),
        ("NVIDIA A100-SXM4-40GB", "tf32", 156),
        ("mi300x", "bf16", 1307.4),
        ("Tesla T4", "fp16", 65),
    ],
)
def test_peaks_are_the_dense_ones(name: str, precision: str, tflops: float) -> None:
    assert get_gpu(name).peak(precision) == tflops


@pytest.mark.parametrize("name", ["t4", "v100-sxm2-16gb", "v100-pcie-32gb"])
def test_old_gpus_have_no_bf16(name: str) -> None:
    gpu = get_gpu(name)
    assert gpu.reference_precision() == "fp16"
    peak = gpu.peak("bf16")
    assert isinstance(peak, Unknown)
    assert "bf16" in peak.why
    assert gpu.name in peak.why


def test_reference_precision_is_bf16_where_there_is_one() -> None:
    assert get_gpu("h200").reference_precision() == "bf16"


def test_flop_per_clock_is_stored_or_follows_from_the_peaks() -> None:
    h200, a10g, b200 = get_gpu("h200"), get_gpu("a10g"), get_gpu("b200")
    assert [h200.tensor_flop_per_clk_per_sm(p) for p in ("fp64_tensor", "tf32", "bf16", "fp16", "fp8", "int8")] == [
        256,
        2048,
        4096,
        4096,
        8192,
        8192,
    ]
    assert a10g.tensor_flop_per_clk_per_sm("int8") == 1024  # 512 x 140 / 70
    assert b200.tensor_flop_per_clk_per_sm("tf32") == 4096  # 8192 x 1100 / 2250 is printed 2 % low


def test_flop_per_clock_is_not_known_without_a_peak_or_an_sm_figure() -> None:
    for gpu, precision in (("a10g", "fp8"), ("h200", "fp32"), ("mi300x", "bf16"), ("t4", "bf16")):
        assert isinstance(get_gpu(gpu).tensor_flop_per_clk_per_sm(precision), Unknown)


def test_tensor_precisions_leave_the_vector_pipes_out_and_rise() -> None:
    assert get_gpu("h100-sxm").tensor_precisions() == ["fp64_tensor", "tf32", "bf16", "fp16", "fp8", "int8"]
    assert get_gpu("v100-sxm2-16gb").tensor_precisions() == ["fp16"]


@pytest.mark.parametrize(
    ("name", "figure", "tflops"),
    [
        ("NVIDIA A100-SXM4-40GB", "published", 102),
        ("NVIDIA H100 80GB HBM3", "published", 646),
        ("NVIDIA A10G", "published", 35),
        ("NVIDIA A10G", "measured", 68.56),
        ("NVIDIA H200", "measured", 669),
    ],
)
def test_achievable_figures_have_names(name: str, figure: str, tflops: float) -> None:
    assert get_gpu(name).achievable_tflops(figure) == tflops


def test_another_gpus_achievable_figure_is_not_used() -> None:
    missing = get_gpu("NVIDIA H200").achievable_tflops("published")
    assert isinstance(missing, Unknown)
    assert "H200" in missing.why


def test_hopper_range_holds_its_measurements() -> None:
    ratio = issue_ratio("Hopper")
    assert isinstance(ratio, IssueRatio)
    assert (ratio.low, ratio.middle, ratio.high) == (0.90, 0.95, 1.00)
    assert {m.precision for m in ratio.measured} == {"bf16", "tf32", "fp64_tensor"}
    for measured in ratio.measured:
        assert ratio.low <= measured.ratio <= ratio.high + 0.005


def test_bf16_gemm_by_pencil() -> None:
    # 668.8 TFLOP/s ran; 92.89 % active x 132 SMs x 4096 FLOP x 1476.6 MHz would be 741.6.
    made_tflops = 0.9289 * 132 * 4096 * 1476.6e6 / 1e12
    ratio = issue_ratio("Hopper")
    assert isinstance(ratio, IssueRatio)
    assert ratio.measured[0].workload == "bf16_gemm_8192"
    assert ratio.measured[0].ratio == pytest.approx(668.8 / made_tflops, abs=1e-3)


def test_every_other_architecture_is_not_known() -> None:
    for architecture in {gpu.architecture for gpu in load_gpus().values()} - {"Hopper"}:
        found = issue_ratio(architecture)
        assert isinstance(found, Unknown)
        assert architecture in found.why


@pytest.mark.parametrize("triple", [(0.0, 0.5, 1.0), (0.9, 0.8, 1.0), (0.9, 1.0, 1.1)])
def test_a_range_out_of_order_is_refused(triple: tuple[float, float, float]) -> None:
    with pytest.raises(FactError, match=r"a\.toml: X\.tensor_issue_ratio: low"):
        check(IssueRatio(*triple, source="s", as_of="2026-11"), "a.toml", "X")
