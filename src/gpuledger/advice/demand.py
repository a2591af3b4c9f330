"""What does a case need of its GPUs?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.advice.case import Demand
from gpuledger.catalog.gpus import Gpu
from gpuledger.physics.signals import Signals
from gpuledger.units import MIB, MS_PER_S, PPM, Unknown

# The exporter fields that show work outside the tensor cores.
VECTOR_FIELDS = ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_PIPE_FP64_ACTIVE")
# Up to this share of the working time may have pipes that are not recorded.
SEEN_WITHIN_RATIO = 0.02


def demand_of(total: Mapping[str, Any], at_work: Mapping[str, Any], signals: Signals, gpu: Gpu | None) -> Demand:
    """Memory over all of the time, everything else while at work."""
    most, card = total["fb_max_bytes"], total["card_bytes"] or (gpu.memory_bytes.value if gpu else None)

    def rate(name: str) -> float | Unknown:
        ms = at_work[f"{name}_ms"]
        return at_work[f"{name}_bytes"] * MS_PER_S / ms if ms else Unknown(f"{name} traffic is not recorded")

    dram = Unknown("memory activity is not recorded")
    return Demand(
        memory_max_ratio=most / card if most is not None and card else Unknown("memory use is not recorded"),
        memory_mean_ratio=_mean_memory(total, card),
        memory_max_bytes=float(most) if most is not None else Unknown("memory use is not recorded"),
        tflops=_tflops(at_work, gpu),
        dram_bytes_per_s=signals.dram_ratio * gpu.memory_bandwidth_bytes_per_s.value
        if gpu and signals.dram_ratio is not None
        else dram,
        pcie_rx_bytes_per_s=rate("pcie_rx"),
        nvlink_bytes_per_s=rate("nvlink"),
        capped_ratio=at_work["capped_ms"] / (at_work["observed_ms"] or 1),
        capped_w=at_work["capped_mw_ms"] / at_work["capped_ms"] / 1e3
        if at_work["capped_ms"]
        else Unknown("no time at a lowered power limit"),
    )


def _tflops(at_work: Mapping[str, Any], gpu: Gpu | None) -> float | Unknown:
    """Work by pipe counters while working, at the high end of what they can mean."""
    peak = gpu.peak(gpu.reference_precision()) if gpu else Unknown("the GPU model is not in the catalog")
    if isinstance(peak, Unknown):
        return peak
    if not at_work["work_ms"]:
        return Unknown("no pipe activity in the samples")
    if at_work["unseen_ms"] > SEEN_WITHIN_RATIO * at_work["observed_ms"]:
        return Unknown(f"not all compute pipes are recorded: enable {', '.join(VECTOR_FIELDS)}")
    return float(peak * at_work["done_high"] / PPM / at_work["work_ms"])


def _mean_memory(total: Mapping[str, Any], card: float | None) -> float | Unknown:
    if not total["fb_ms"] or not card:
        return Unknown("memory use is not recorded")
    return float(min(1.0, total["fb_mib_ms"] * MIB / total["fb_ms"] / card))
