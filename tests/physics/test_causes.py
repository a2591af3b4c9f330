"""Are the likely causes the ones the counters show, and unknown where they do not?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.physics.causes import Condition, Rule, likely_cause
from gpuledger.units import MS_PER_HOUR, PPM

STARVED = {
    "engine_of_util_ratio": 0.43,
    "tensor_of_engine_ratio": 0.38,
    "dram_while_active_ratio": 0.11,
    "pcie_while_active_bytes_per_s": 0.3e9,
    "nvlink_of_link_ratio": 0.03,
}
WAITING = STARVED | {
    "engine_of_util_ratio": 0.9,
    "tensor_of_engine_ratio": 0.15,
    "pcie_while_active_bytes_per_s": 16e9,
    "nvlink_of_link_ratio": 0.45,
}


def test_each_cause() -> None:
    assert likely_cause(STARVED)[0] == "storage"
    assert likely_cause(WAITING)[0] == "network"
    assert likely_cause(WAITING | {"dram_while_active_ratio": 0.8})[0] == "memory"


def test_evidence_names_its_figures() -> None:
    _, words = likely_cause(STARVED)
    assert "43 %" in words
    assert "0.3 GB/s" in words
    assert "NVLink at 3 %" in words


def test_one_link_is_enough() -> None:
    for link in ("pcie_while_active_bytes_per_s", "nvlink_of_link_ratio"):
        assert likely_cause({k: v for k, v in WAITING.items() if k != link})[0] == "network"
        assert likely_cause({k: v for k, v in STARVED.items() if k != link})[0] == "storage"


def test_without_counters_the_cause_is_not_known() -> None:
    cause, words = likely_cause({})
    assert cause.startswith("not known: ")
    assert "engine activity" in cause
    assert words == "no counters"
    quiet = {k: v for k, v in STARVED.items() if "link" not in k and "pcie" not in k}
    assert likely_cause(quiet)[0].startswith("not known: no rule fits without PCIe traffic")


def test_counters_that_fit_nothing() -> None:
    cause, words = likely_cause(WAITING | {"tensor_of_engine_ratio": 0.6})
    assert cause == "not known: no rule fits these counters"
    assert "60 %" in words


def test_a_condition_is_from_and_below() -> None:
    assert Condition("a", at_least=1.0).holds({"a": 1.0}) is True
    assert Condition("a", below=1.0).holds({"a": 1.0}) is False
    assert Condition("a", below=1.0).holds({}) is None
    assert not Rule("x", "y", never=(Condition("a", at_least=1.0),)).fits({})


def counted(engine: float, tensor: float, pcie_mb_per_s: int) -> dict[str, int]:
    out = {"pcie_rx_ms": MS_PER_HOUR, "pcie_tx_ms": MS_PER_HOUR}
    out |= {f"pcie_{d}_bytes": pcie_mb_per_s * 1000 * MS_PER_HOUR for d in ("rx", "tx")}
    for name, ratio in (("engine", engine), ("tensor", tensor), ("dram", 0.1)):
        out |= {f"{name}_ms": MS_PER_HOUR, f"{name}_ppm_ms": round(ratio * PPM) * MS_PER_HOUR}
    return out


def test_from_lines(state: Callable[..., EfficiencyStatement], line: Callable[..., Any]) -> None:
    slow: dict[str, Any] = {"util": 0.9, "pif": 0.4, "bottleneck_ms": MS_PER_HOUR}
    rows = [
        line(0, "GPU-a", **slow, **counted(0.4, 0.1, 150)),
        line(0, "GPU-b", **slow, **counted(0.85, 0.1, 8000)),
        line(0, "GPU-c", **slow),
        line(0, "GPU-d", util=0.9, pif=0.9),
    ]
    found = {g.gpu_uuid: g for g in state(*rows).per_gpu}
    assert found["GPU-a"].likely_cause == "storage"
    assert "PCIe 0.3 GB/s" in found["GPU-a"].cause_evidence
    assert found["GPU-b"].likely_cause == "network"
    assert found["GPU-c"].likely_cause.startswith("not known: ")
    assert (found["GPU-d"].likely_cause, found["GPU-d"].cause_evidence) == ("", "")


def test_traffic_is_set_against_active_time(
    state: Callable[..., EfficiencyStatement], line: Callable[..., Any]
) -> None:
    """Half of the hours idle: the link was twice as busy while it mattered."""
    rows = [
        line(0, util=0.9, pif=0.4, bottleneck_ms=MS_PER_HOUR, **counted(0.85, 0.1, 3000)),
        line(1, util=0.0, pif=0.1, **counted(0.0, 0.0, 0)),
    ]
    (gpu,) = state(*rows).per_gpu
    assert gpu.likely_cause == "network"
    assert "PCIe 6.0 GB/s" in gpu.cause_evidence


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_a_gpu_that_is_never_active_has_no_figures(
    state: Callable[..., EfficiencyStatement], line: Callable[..., Any], ratio: float
) -> None:
    (gpu,) = state(line(0, util=0.0, pif=ratio)).per_gpu
    assert (gpu.consistently_bottlenecked, gpu.likely_cause) == (False, "")
