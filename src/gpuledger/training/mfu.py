"""How much of what the GPUs could do did the model's own work take, and over which denominator?

MFU (model FLOPs utilization) is the model's FLOP per second over the dense bf16 peak: one denominator before and after
a change, so that a faster loop never scores lower. Two more shares are given: of the peak of the precision in use, and
of what was measured as achievable. A GPU that is not in the catalog has no peak and therefore no MFU. A share above
100 % means that an input is wrong: it is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.efficiency.calibration_files import BoardCalibration
from gpuledger.errors import InputError
from gpuledger.units import Unknown

TERA = 1e12
REFERENCE = "bf16"
MEASURED = "measured"
ALL_PCT = 100.0
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
        known = ", ".join(gpu.peak_tflops)
        raise InputError(f"the catalog has no {precision} peak for {gpu.name}", hint=f"use one of {known}")
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
