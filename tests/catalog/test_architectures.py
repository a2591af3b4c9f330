"""Is the issue ratio what the recording says, and not known where nothing was recorded?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.gpus.facts import IssueRatio, check, issue_ratio
from gpuledger.errors import FactError
from gpuledger.units import Unknown


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
