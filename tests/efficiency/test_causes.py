"""Which cause does the statement name for a bottlenecked GPU, from the lines of the ledger?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.units import MS_PER_HOUR, PPM

SLOW: dict[str, Any] = {"util": 0.9, "pif": 0.4, "bottleneck_ms": MS_PER_HOUR}


def counted(engine: float, tensor: float, pcie_mb_per_s: int) -> dict[str, int]:
    out = {"pcie_rx_ms": MS_PER_HOUR, "pcie_tx_ms": MS_PER_HOUR}
    out |= {f"pcie_{d}_bytes": pcie_mb_per_s * 1000 * MS_PER_HOUR for d in ("rx", "tx")}
    for name, ratio in (("engine", engine), ("tensor", tensor), ("dram", 0.1)):
        out |= {f"{name}_ms": MS_PER_HOUR, f"{name}_ppm_ms": round(ratio * PPM) * MS_PER_HOUR}
    return out


def test_from_lines(state: Callable[..., EfficiencyStatement], line: Callable[..., Any]) -> None:
    rows = [
        line(0, "GPU-a", **SLOW, **counted(0.4, 0.1, 150)),
        line(0, "GPU-b", **SLOW, **counted(0.85, 0.1, 8000)),
        line(0, "GPU-c", **SLOW),
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


def test_the_statement_holds_the_cause_and_the_edge_its_words(
    state: Callable[..., EfficiencyStatement], line: Callable[..., Any]
) -> None:
    rows = [line(0, "GPU-a", **SLOW, **counted(0.4, 0.1, 150)), line(0, "GPU-b", **SLOW), line(0, "GPU-c", util=0.9)]
    found = state(*rows)
    assert [g.cause and g.cause.cause for g in found.per_gpu] == ["storage", None, None]
    made = to_json(found)["per_gpu"]
    assert "cause" not in made[0]
    assert [g["likely_cause"].partition(":")[0] for g in made] == ["storage", "not known", ""]
    assert [bool(g["cause_evidence"]) for g in made] == [True, True, False]
    assert "1 of 2 bottlenecked GPUs, 1 not known: " in " ".join(found.findings)


def test_a_fleet_without_counters_is_told_what_is_missing(
    state: Callable[..., EfficiencyStatement], line: Callable[..., Any]
) -> None:
    text = " ".join(state(line(0, **SLOW)).findings)
    assert "What holds up the 1 bottlenecked GPU is not known: engine activity, " in text
