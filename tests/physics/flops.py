"""The work of one stretch of time, from what its pipes did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.physics.activity import COLUMNS, CONDITIONS, pipe_sums
from gpuledger.physics.evidence import ModelFacts, Worked, work
from gpuledger.physics.states import State
from gpuledger.units import PPM, Unknown

MS, CLOCK_MHZ = 1_000, 1_500


@dataclass(frozen=True)
class Flops:
    """TFLOP/s, low, middle and high; whether it is a lower bound, and what was assumed."""

    low: float
    middle: float
    high: float
    bound: bool
    notes: frozenset[str]


def sums_of(
    activity_mhz: dict[str, float],
    *,
    state: State = State.MATRIX,
    capped_ratio: float | None = None,
    saturation_ratio: float | None = None,
    slots_ratio: float | None = None,
    dram_ratio: float | None = None,
    fp32_ratio: float | None = None,
    integer_ratio: float | None = None,
    busy_ratio: float = 1.0,
    engine: bool = True,
    **given: float,
) -> dict[str, np.ndarray]:
    """One row of sums of a second at 1500 MHz, with every SM busy where any condition needs the SMs."""
    row = dict.fromkeys((*COLUMNS, *CONDITIONS), 0.0)
    for pipe, mhz in activity_mhz.items():
        row |= {f"{pipe}_ms": MS, f"{pipe}_ppm_mhz_ms": mhz * PPM * MS}
    tensor = 1.0 if saturation_ratio is None else saturation_ratio
    if saturation_ratio is not None or slots_ratio is not None:
        row |= {"sm_ms": MS, "sm_ppm_ms": PPM * MS}
    row |= {"tensor_ppm_ms": tensor * PPM * MS}
    row |= {"engine_ms": MS, "engine_ppm_ms": PPM * MS} if engine else {}
    if saturation_ratio is not None:
        row["tensor_ms"] = MS
    if capped_ratio is not None:
        row |= {"throttle_ms": MS, "tensor_capped_ppm_ms": capped_ratio * tensor * PPM * MS}
    known = {"occupancy": slots_ratio, "dram": dram_ratio, "fp32": fp32_ratio, "integer": integer_ratio}
    for name, ratio in known.items():
        if ratio is not None:
            row |= {f"{name}_ms": MS, f"{name}_ppm_ms": ratio * PPM * MS}
    row |= {"clock_ms": MS, "clock_mhz_ms": CLOCK_MHZ * MS, "busy_ppm_ms": busy_ratio * PPM * MS, **given}
    arrays = {name: np.array([value]) for name, value in row.items()}
    return arrays | pipe_sums(arrays) | {"state": np.array([state])}


def worked(gpu: Gpu, activity_mhz: dict[str, float], precision: str | None = None, **conditions: Any) -> Worked:
    facts = ModelFacts(None)
    facts.gpu = gpu
    return work(sums_of(activity_mhz, **conditions), np.zeros(1, np.int64), [("g", precision)], {"g": facts})


def flops(gpu: Gpu, activity_mhz: dict[str, float], precision: str | None = None, **conditions: Any) -> Flops:
    """TFLOP/s of pipes active as much as this (activity x MHz)."""
    done, peak = worked(gpu, activity_mhz, precision, **conditions), gpu.peak(gpu.reference_precision())
    assert not isinstance(peak, Unknown)
    low, middle, high = (float(part[0]) / MS * peak for part in (done.low, done.middle, done.high))
    return Flops(low, middle, high, bool(done.bound[0]), done.notes[0])
