"""How much of what the GPUs could do did the model's own work take, and over which denominator?

MFU (model FLOPs utilization) is the model's FLOP per second over the dense bf16 peak: one denominator before and after
a change, so that a faster loop never scores lower. Two more shares are given: of the peak of the precision in use, and
of what was measured as achievable. A GPU that is not in the catalog has no peak and therefore no MFU. A share above
100 % means that an input is wrong: it is refused, with the reason. HFU (hardware FLOPs utilization) counts what the
hardware did, recomputed activations included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.models import Model, TransformerShape
from gpuledger.efficiency.calibration_files import BoardCalibration
from gpuledger.encode import encode
from gpuledger.errors import InputError
from gpuledger.training.bands import band_of
from gpuledger.training.flops import RECOMPUTED_PASSES, TRAINING_PASSES, forward_flop_by_part, training_flop, unit_of
from gpuledger.units import Unknown, known

TERA = 1e12
REFERENCE = "bf16"
MEASURED = "measured"
ALL_PCT = 100.0
MOST = 10**12  # tokens per second, tokens per sequence, GPUs: more than there are
CHECK = "more than the GPU can do; check the rate (all GPUs together), the GPU count, the precision and the model"


@dataclass(frozen=True, slots=True)
class AboveAll(Unknown):
    """A share that is unknown because its inputs give more than 100 %."""


@dataclass(frozen=True)
class Denominator:
    """What work is divided by: TFLOPS of one GPU, and which TFLOPS these are. `above`: what a larger share means."""

    tflops: float | Unknown
    words: str
    above: str = CHECK

    def share_pct(self, flop_per_s: float, count: int) -> float | Unknown:
        """Work per second of `count` GPUs over this, in percent; refused above 100."""
        if isinstance(self.tflops, Unknown):
            return self.tflops
        share = 100 * flop_per_s / (count * self.tflops * TERA)
        return share if share <= ALL_PCT else AboveAll(f"{share:,.1f} % of the {self.words}: {self.above}")


@dataclass(frozen=True)
class Utilization:
    """Work per second over three denominators; each share has its figure or the reason why there is none."""

    achieved_tflops: float  # of one GPU
    count: int
    precision: str
    mfu_pct: float | Unknown
    peak: Denominator
    mfu_in_use_pct: float | Unknown
    in_use: Denominator
    mfu_achievable_pct: float | Unknown
    achievable: Denominator


def utilization(
    flop_per_s: float,
    gpu: Gpu | Unknown,
    precision: str = REFERENCE,
    count: int = 1,
    boards: Sequence[BoardCalibration] = (),
) -> Utilization | Unknown:
    """Shares of `count` GPUs that together do `flop_per_s` of the model's work; refused for an unknown GPU."""
    if isinstance(gpu, Unknown):
        return Unknown(f"no MFU without a peak: {gpu.why}")
    if count < 1:
        raise InputError(f"count is {count}", hint="give how many GPUs share the work, at least 1")
    if not flop_per_s > 0:
        raise InputError(f"flop_per_s is {flop_per_s:g}", hint="give a rate above 0")
    peak, in_use = reference_peak(gpu, [precision]), peak_in_use(gpu, precision)
    achievable = measured_achievable(gpu, precision, boards)
    return Utilization(
        achieved_tflops=flop_per_s / count / TERA, count=count, precision=precision,
        mfu_pct=peak.share_pct(flop_per_s, count), peak=peak, mfu_in_use_pct=in_use.share_pct(flop_per_s, count),
        in_use=in_use, mfu_achievable_pct=achievable.share_pct(flop_per_s, count), achievable=achievable,
    )  # fmt: skip


def mfu_pct(flop_per_s: float, gpu: Gpu | Unknown, precision: str = REFERENCE, count: int = 1) -> float | Unknown:
    """MFU alone, over the dense bf16 peak."""
    found = utilization(flop_per_s, gpu, precision, count)
    return found if isinstance(found, Unknown) else found.mfu_pct


def reference_peak(gpu: Gpu, precisions: Iterable[str] = (), above: str = CHECK) -> Denominator:
    """The dense bf16 peak; `precisions` are those in use, where they are known."""
    words = f"dense {REFERENCE} peak of the {gpu.name}"
    tflops = gpu.peak(REFERENCE)
    if isinstance(tflops, Unknown):
        other = gpu.reference_precision()
        why = f"the {gpu.name} has no {REFERENCE}, so MFU has no denominator; see the share of its {other} peak instead"
        return Denominator(Unknown(why), words)
    faster = [p for p in precisions if not isinstance(peak := gpu.peak(p), Unknown) and peak > tflops]
    if faster:
        above = f"{' and '.join(faster)} products run above it; see the share of the peak in use"
    return Denominator(tflops, f"{words}, {tflops:g} TFLOPS per GPU", above)


def peak_in_use(gpu: Gpu, precision: str) -> Denominator:
    """The dense peak of the precision the job computes in; an error where the GPU does not have it."""
    tflops = gpu.peak(precision)
    if isinstance(tflops, Unknown):
        others = ", ".join(gpu.peak_tflops)
        hint = f"use one of {others}" if others else "add its file with a peak, or name a GPU that has one"
        raise InputError(f"unknown: {tflops.why}", hint=hint)
    return Denominator(tflops, f"dense {precision} peak of the {gpu.name}, {tflops:g} TFLOPS per GPU")


def measured_achievable(gpu: Gpu, precision: str, boards: Sequence[BoardCalibration]) -> Denominator:
    """What matrix products reached: on the user's own boards of this model, else in the catalog."""
    above = f"more than {precision} matrix products were measured to reach; gpuledger calibrate measures this board"
    own = [b for b in boards if _model_key(b) == gpu.key and precision in b.tflops]
    if own:
        reached = median(b.tflops[precision].tflops.median for b in own)
        when = max(b.as_of for b in own)
        which = "this board" if len(own) == 1 else f"the median of {len(own)} boards"
        words = f"{precision} matrix products measured on {which} ({when}), {reached:.0f} TFLOPS"
        return Denominator(reached, words, above)
    for figure in gpu.achievable:
        if figure.name == MEASURED and figure.precision == precision:
            words = f"{precision} matrix products measured on one {gpu.name} ({figure.as_of}), {figure.tflops:g} TFLOPS"
            return Denominator(figure.tflops, words, above)
    why = f"no {precision} matrix product was measured on the {gpu.name}; gpuledger calibrate measures it"
    return Denominator(Unknown(why), f"measured {precision} matrix products")


def mixed(parts: Mapping[str, Denominator], ratios: Mapping[str, float]) -> Denominator:
    """One denominator for work in several precisions: each part of the FLOPs takes its time at its own rate."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    seconds = 0.0
    for name, part in parts.items():
        if isinstance(part.tflops, Unknown):
            return part
        seconds += ratios[name] / part.tflops
    mix = " and ".join(f"{100 * ratios[name]:.1f} % of the FLOPs at the {part.words}" for name, part in parts.items())
    return Denominator(1 / seconds, f"{1 / seconds:,.0f} TFLOPS: {mix}")


def _model_key(board: BoardCalibration) -> str | None:
    found = find_gpu(board.gpu_model)
    return None if isinstance(found, Unknown) else found.key


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
    assumed: Sequence[str] = (),
) -> dict[str, Any] | Unknown:
    """MFU and HFU of a run that trains on `units_per_s` tokens (or images), all GPUs together, as JSON."""
    if not units_per_s > 0:
        raise InputError(f"units_per_s is {units_per_s:g}", hint="give a rate above 0, all GPUs together")
    parts = forward_flop_by_part(model.shape, 1, sequence)
    if isinstance(parts, Unknown):
        return parts
    unit, passes = unit_of(model.shape), RECOMPUTED_PASSES if recompute else TRAINING_PASSES
    units = sequence if sequence and unit == "token" else 1
    by_part = {name: TRAINING_PASSES * flop / units for name, flop in parts.items()}
    each, done = (n * sum(parts.values()) / units for n in (TRAINING_PASSES, passes))
    half = known(training_flop(model.shape, 1, sequence, causal=True)) if unit == "token" else None
    causal = None if half is None else half / units
    work = utilization(units_per_s * each, gpu, precision, count, boards)
    if isinstance(work, Unknown):
        return work
    return encode(
        "train_mfu",
        {
            **{name: getattr(work, name) for name in ("mfu_pct", "mfu_in_use_pct", "mfu_achievable_pct")},
            "hfu_pct": work.peak.share_pct(units_per_s * done, count),
            "mfu_causal_pct": None if causal is None else work.peak.share_pct(units_per_s * causal, count),
            "usual": band_of(model),
            "peak_tflops": work.peak.tflops,
            "in_use_peak_tflops": work.in_use.tflops,
            "achievable_tflops": work.achievable.tflops,
            "achieved_tflops": work.achieved_tflops,
            "denominator": work.peak.words,
            "in_use_denominator": work.in_use.words,
            "achievable_denominator": work.achievable.words,
            f"flop_per_{unit}": each,
            f"flop_per_{unit}_causal": causal,
            f"flop_per_{unit}_by_part": by_part,
            "part_pct": {name: 100 * flop / each for name, flop in by_part.items()},
            f"hfu_flop_per_{unit}": done,
            f"{unit}s_per_s": units_per_s,
            "unit": unit,
            "model": model.name,
            **{name: getattr(model, name) for name in ("params_total", "params_active")},
            "gpu": gpu.key,
            "gpu_name": gpu.name,
            "count": work.count,
            "precision": work.precision,
            "sequence": sequence,
            "hfu_counts": f"{passes} forward passes' worth{' (activations computed again)' * recompute}",
            "assumptions": [*assumed, *_conventions(model, unit)],
            "warnings": [work.mfu_in_use_pct.why] if isinstance(work.mfu_in_use_pct, AboveAll) else [],
        },
    )


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


def _conventions(model: Model, unit: str) -> list[str]:
    out = ["training is three forward passes' worth of FLOP; a multiply-add is two; embedding lookups are none"]
    if unit == "token":
        out.append("attention counts the whole square of the sequence; mfu_causal_pct only the half that is needed")
    if model.extra or model.differs:
        out.append(f"{model.name}: only the decoder is counted, not its other parts")
    return out
