"""Cases and lines written by hand: each the plainest of its kind."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gpuledger.advice.case import Case, Demand
from gpuledger.catalog.gpus import get_gpu
from gpuledger.cost.statement import BUCKETS, Dollars, Times
from gpuledger.ledger import lines
from gpuledger.physics.signals import Signals
from gpuledger.units import MS_PER_HOUR, PPM, day_start_ms

START = day_start_ms("2026-01-20")
HOUR = MS_PER_HOUR
A100, H100, A10G, V100, MI300X = "a100-sxm4-40gb", "h100-sxm5-80gb", "a10g", "v100-sxm2-16gb", "mi300x"


def money(**shares: float) -> dict[str, Any]:
    """Dollars of a bill of $1000 by bucket, and the same shares of 250 hours."""
    parts = {b: shares.get(b, 0.0) for b in BUCKETS}
    assert abs(sum(parts.values()) - 1) < 1e-9, parts
    return {
        "dollars": Dollars.of({b: Decimal(str(1000 * s)) for b, s in parts.items()}),
        "times": Times.of({b: round(250 * s * HOUR) for b, s in parts.items()}),
    }


def case(klass: str, gpu: str = A100, **given: Any) -> Case:
    """A training job on four GPUs for a week, half of its bill stalled, unless told otherwise."""
    signals = given.pop("signals", {})
    demand = {"memory_max_ratio": 0.8, "memory_mean_ratio": 0.7} | given.pop("demand", {})
    memory = demand["memory_max_ratio"] * get_gpu(gpu).memory_bytes.value
    shares = given.pop("money", {"productive": 0.4, "stalled": 0.5, "underused": 0.1})
    plain: dict[str, Any] = {
        "namespace": "ml-training", "workload": None, "gpu_model": get_gpu(gpu).name, "gpu": get_gpu(gpu),
        "klass": klass, "evidence": ("as counted", "90 % of it"), "confidence": "counters", "shares": {klass: 1.0},
        "phases": {}, "devices": ("a", "b", "c", "d"), "gpus": 4, "observed_h": 672.0, "days": 7.0,
        "purpose": "training", "purpose_by": "name", "purpose_how": "by its name: training",
        "purchase": "on_demand", "busy_ratio": 0.9, "own_pods": True,
    }  # fmt: skip
    plain |= {"signals": Signals(**signals), "demand": Demand(**({"memory_max_bytes": memory} | demand))}
    return Case(**(plain | money(**shares) | given))


def line(hour: int = 0, gpu: str = "GPU-a", **given: Any) -> dict[str, Any]:
    """One hour of one H100, at work and fully observed, unless told otherwise. A misspelled column is a mistake."""
    start = START + hour * HOUR
    row: dict[str, Any] = {name: 0 if column.merge == "sum" else None for name, column in lines.columns().items()}
    row |= {
        "hour_ms": start, "grain_ms": HOUR, "gpu_uuid": gpu, "gpu_model": "NVIDIA H100 80GB HBM3", "first_ms": start,
        "last_ms": start + HOUR, "samples": 60, "observed_ms": HOUR, "cluster": "c1", "namespace": "ml-training",
        "state": "matrix", "limit_mw": 700_000, "card_bytes": 85_000_000_000,
    }  # fmt: skip
    row |= given
    unknown = sorted(set(row) - set(lines.columns()))
    assert not unknown, f"no such column of a line: {unknown}"
    return row


def activity(ms: int = HOUR, **ratios: float) -> dict[str, int]:
    """The sums of a time with these activities at 1500 MHz; the engine's is its busy part, and utilization with it."""
    out: dict[str, int] = {"clock_ms": ms, "clock_mhz_ms": 1500 * ms}
    for name, ratio in ratios.items():
        out |= {f"{name}_ms": ms, f"{name}_ppm_ms": round(ratio * PPM) * ms}
        if f"{name}_ppm_mhz_ms" in lines.columns():
            out[f"{name}_ppm_mhz_ms"] = round(ratio * PPM) * 1500 * ms
    if engine := ratios.get("engine", 0.0):
        out |= {"busy_ppm_ms": round(engine * PPM) * ms, "active_ms": ms, "active_util_ppm_ms": PPM * ms}
    return out


def memory(ratio: float, card_bytes: int = 85_000_000_000) -> dict[str, int]:
    """The sums of an hour with this share of the card used."""
    return {
        "fb_ms": HOUR,
        "fb_mib_ms": round(ratio * card_bytes / (1 << 20)) * HOUR,
        "fb_max_bytes": round(ratio * card_bytes),
    }
