"""What does a case need of its GPUs?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.advice.case import Demand
from gpuledger.catalog.gpus import Gpu
from gpuledger.efficiency.activity import PIPES
from gpuledger.efficiency.evidence import ModelFacts
from gpuledger.efficiency.signals import Signals
from gpuledger.units import MIB, MS_PER_S, Unknown


def demand_of(
    total: Mapping[str, Any],
    at_work: Mapping[str, Any],
    signals: Signals,
    gpu: Gpu | None,
    model: str | None,
    precision: str | None,
) -> Demand:
    """Memory over all of the time, everything else while at work."""
    most, card = total["fb_max_bytes"], total["card_bytes"] or (gpu.memory_bytes.value if gpu else None)
    resting = at_work["idle_ms"] + at_work["idle_held_ms"]
    working = max(1.0 - resting / at_work["observed_ms"], 1e-6) if at_work["observed_ms"] else 1.0

    def rate(name: str) -> float | Unknown:
        ms = at_work[f"{name}_ms"]
        return at_work[f"{name}_bytes"] * MS_PER_S / ms / working if ms else Unknown(f"{name} traffic is not recorded")

    dram = Unknown("memory activity is not recorded")
    return Demand(
        memory_max_ratio=most / card if most is not None and card else Unknown("memory use is not recorded"),
        memory_mean_ratio=_mean_memory(total, card),
        memory_max_bytes=float(most) if most is not None else Unknown("memory use is not recorded"),
        tflops=_tflops(at_work, working, model, precision),
        dram_bytes_per_s=signals.dram_ratio * gpu.memory_bandwidth_bytes_per_s.value
        if gpu and signals.dram_ratio is not None
        else dram,
        pcie_rx_bytes_per_s=rate("pcie_rx"),
        nvlink_bytes_per_s=rate("nvlink"),
        power_capped_ratio=at_work["power_capped_ms"] / (at_work["observed_ms"] or 1),
        thermal_ratio=at_work["thermal_ms"] / (at_work["observed_ms"] or 1),
    )


def _tflops(at_work: Mapping[str, Any], working: float, model: str | None, precision: str | None) -> float | Unknown:
    """Work by pipe counters while working, at the high end of what they can mean."""
    facts = ModelFacts(model)
    rates, peak = facts.rates(precision), facts.peak_tflops
    if isinstance(rates, Unknown) or isinstance(peak, Unknown):
        return rates if isinstance(rates, Unknown) else peak
    if not at_work["work_ms"]:
        return Unknown("no pipe activity with SM clock in the samples")
    worth = rates.per_activity
    done = sum(at_work[f"work_{pipe}"] * worth[pipe][2] for pipe in PIPES if pipe in worth)
    return float(peak * done / at_work["work_ms"] / working)


def _mean_memory(total: Mapping[str, Any], card: float | None) -> float | Unknown:
    if not total["fb_ms"] or not card:
        return Unknown("memory use is not recorded")
    return float(min(1.0, total["fb_mib_ms"] * MIB / total["fb_ms"] / card))
