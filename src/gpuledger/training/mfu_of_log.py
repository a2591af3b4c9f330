"""What is the MFU of a training run whose log shows a rate: tokens or images per second, all GPUs together?

HFU (hardware FLOPs utilization) counts what the hardware did, recomputed activations included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model, TransformerShape
from gpuledger.efficiency.calibration_files import BoardCalibration
from gpuledger.encode import encode
from gpuledger.errors import InputError
from gpuledger.training.flops import TRAINING_PASSES, forward_flop_by_part, training_flop, unit_of
from gpuledger.training.mfu import REFERENCE, AboveAll, Utilization, utilization
from gpuledger.units import Unknown

MOST = 10**12  # tokens per second, tokens per sequence, GPUs: more than there are


@dataclass(frozen=True)
class TrainingUtilization:
    """What a training run at a known rate makes of its GPUs."""

    unit: str
    flop_per_unit: float
    flop_per_unit_causal: float | None  # for causal attention: only the half a causal model needs
    flop_by_part: dict[str, float]
    work: Utilization
    mfu_causal_pct: float | Unknown | None
    hfu_pct: float | Unknown
    hfu_flop_per_unit: float
    passes: str


def training_utilization(
    model: Model,
    gpu: Gpu,
    units_per_s: float,
    *,
    count: int = 1,
    precision: str = REFERENCE,
    sequence: int | None = None,
    recompute: bool = False,
    boards: Sequence[BoardCalibration] = (),
) -> TrainingUtilization | Unknown:
    """MFU and HFU of a run that trains on `units_per_s` tokens (or images), all GPUs together."""
    if not units_per_s > 0:
        raise InputError(f"units_per_s is {units_per_s:g}", hint="give a rate above 0, all GPUs together")
    parts = forward_flop_by_part(model.shape, 1, sequence)
    if isinstance(parts, Unknown):
        return parts
    unit = unit_of(model.shape)
    units = sequence if sequence and unit == "token" else 1

    def per_unit(*, causal: bool = False, recompute: bool = False) -> float:
        whole = training_flop(model.shape, 1, sequence, causal=causal, recompute=recompute)
        assert not isinstance(whole, Unknown)  # every shape with a formula by part has one for training
        return whole / units

    each, done = per_unit(), per_unit(recompute=recompute)
    causal = per_unit(causal=True) if unit == "token" else None
    work = utilization(units_per_s * each, gpu, precision, count, boards)
    if isinstance(work, Unknown):
        return work
    return TrainingUtilization(
        unit=unit, flop_per_unit=each, flop_per_unit_causal=causal,
        flop_by_part={name: TRAINING_PASSES * flop / units for name, flop in parts.items()}, work=work,
        mfu_causal_pct=None if causal is None else work.peak.share_pct(units_per_s * causal, count),
        hfu_pct=work.peak.share_pct(units_per_s * done, count), hfu_flop_per_unit=done,
        passes=f"{'4' if recompute else '3'} forward passes' worth{' (activations computed again)' * recompute}",
    )  # fmt: skip


def rate_for(model: Model, tokens_per_s: float | None, images_per_s: float | None) -> float:
    """The rate in what the model reads; an error where the log counts something else."""
    unit = unit_of(model.shape)
    rate, other = (tokens_per_s, images_per_s) if unit == "token" else (images_per_s, tokens_per_s)
    name = f"{unit}s_per_s"
    if other is not None:
        raise InputError(f"{model.name} reads {unit}s", hint=f"give {name} instead")
    if rate is None:
        raise InputError(f"{name} is missing", hint=f"give the {unit}s per second that all GPUs together train on")
    if not 0 < rate <= MOST:
        hint = f"give a rate per second above 0 and up to {MOST:.0e}, all GPUs together, such as 60000"
        raise InputError(f"{name} is {rate:g}", hint=hint)
    return rate


def count_for(count: int) -> int:
    """How many GPUs share the work."""
    if not 1 <= count <= MOST:
        raise InputError(f"count is {_short(count)}", hint="give how many GPUs share the work, at least 1")
    return count


def sequence_for(model: Model, sequence: int | None, usual: int) -> tuple[int | None, list[str]]:
    """Tokens per sequence, and what was assumed or is unusual about them."""
    if not isinstance(model.shape, TransformerShape):
        if sequence is not None:
            raise InputError(f"{model.name} reads images and has no sequence", hint="omit sequence")
        return None, []
    longest = model.shape.max_context
    if sequence is None:
        return min(usual, longest), [f"sequences of {min(usual, longest):,} tokens, as none was given"]
    if not 1 <= sequence <= MOST:
        raise InputError(f"sequence is {_short(sequence)}", hint="give how many tokens a sequence has, such as 4096")
    odd = f"{model.name} is published for at most {longest:,} tokens, the sequences have {sequence:,}"
    return sequence, [odd] if sequence > longest else []


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**30 else "a number of more than 30 digits"


def as_data(
    found: TrainingUtilization, model: Model, gpu: Gpu, per_s: float, sequence: int | None, assumed: Sequence[str]
) -> dict[str, Any]:
    """The statement as JSON."""
    work, unit = found.work, found.unit
    return encode(
        "train_mfu",
        {
            **{name: getattr(work, name) for name in ("mfu_pct", "mfu_in_use_pct", "mfu_achievable_pct")},
            "hfu_pct": found.hfu_pct,
            "mfu_causal_pct": found.mfu_causal_pct,
            "peak_tflops": work.peak.tflops,
            "in_use_peak_tflops": work.in_use.tflops,
            "achievable_tflops": work.achievable.tflops,
            "achieved_tflops": work.achieved_tflops,
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
            "warnings": [work.mfu_in_use_pct.why] if isinstance(work.mfu_in_use_pct, AboveAll) else [],
        },
    )


def _conventions(model: Model, unit: str) -> list[str]:
    out = ["training is three forward passes' worth of FLOP; a multiply-add is two; embedding lookups are none"]
    if unit == "token":
        out.append("attention counts the whole square of the sequence; mfu_causal_pct only the half that is needed")
    if model.extra or model.differs:
        out.append(f"{model.name}: only the decoder is counted, not its other parts")
    return out
