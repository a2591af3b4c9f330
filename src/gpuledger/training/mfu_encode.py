"""How does the utilization of a training run read as plain data?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.training.mfu import AboveAll, TrainingUtilization
from gpuledger.units import Unknown


def as_data(
    found: TrainingUtilization, model: Model, gpu: Gpu, per_s: float, sequence: int | None, assumed: Sequence[str]
) -> dict[str, Any]:
    """The answer as JSON holds it; a figure that is not known is null, and `not_known` says why."""
    work, unit = found.work, found.unit
    figures: dict[str, Any] = {
        "mfu_pct": work.mfu_pct,
        "mfu_in_use_pct": work.mfu_in_use_pct,
        "mfu_achievable_pct": work.mfu_achievable_pct,
        "hfu_pct": found.hfu_pct,
        "mfu_causal_pct": found.mfu_causal_pct,
        "peak_tflops": work.peak.tflops,
        "in_use_peak_tflops": work.in_use.tflops,
        "achievable_tflops": work.achievable.tflops,
        "achieved_tflops": work.achieved_tflops,
    }
    return {
        **{name: None if isinstance(value, Unknown) else value for name, value in figures.items()},
        "denominator": work.peak.words,
        "in_use_denominator": work.in_use.words,
        "achievable_denominator": work.achievable.words,
        f"flop_per_{unit}": found.flop_per_unit,
        f"flop_per_{unit}_causal": found.flop_per_unit_causal,
        f"flop_per_{unit}_by_part": found.flop_by_part,
        "part_pct": {name: 100 * flop / found.flop_per_unit for name, flop in found.flop_by_part.items()},
        f"hfu_flop_per_{unit}": found.hfu_flop_per_unit,
        f"{unit}s_per_s": per_s,
        "unit": unit,
        "model": model.name,
        "params_total": model.params_total,
        "params_active": model.params_active,
        "gpu": gpu.key,
        "gpu_name": gpu.name,
        "count": work.count,
        "precision": work.precision,
        "sequence": sequence,
        "hfu_counts": found.passes,
        "assumptions": [*assumed, *_conventions(model, unit)],
        "not_known": {name: value.why for name, value in figures.items() if isinstance(value, Unknown)},
        "warnings": _warnings(found),
    }


def _conventions(model: Model, unit: str) -> list[str]:
    said = ["training is three forward passes' worth of FLOP; a multiply-add is two; embedding lookups are none"]
    if unit == "token":
        said.append("attention counts the whole square of the sequence; mfu_causal_pct only the half that is needed")
    if model.extra or model.differs:
        said.append(f"{model.name}: only the decoder is counted, not what stands beside it")
    return said


def _warnings(found: TrainingUtilization) -> list[str]:
    share = found.work.mfu_in_use_pct
    return [share.why] if isinstance(share, AboveAll) else []
