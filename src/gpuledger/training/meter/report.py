"""What does the meter say of a loop: where the step's time goes, MFU and HFU, tokens, dollars, joules?

MFU is what the model needs over the device's dense bf16 peak, so that a faster loop never scores lower; HFU is the same
with all the device did. Beside them: over the peak of the precision in use, and over what matrix products were measured
to reach (mfu.py holds the denominators). An unknown device has no MFU, and one without bf16 says so. Where the
precision was not observed, the shares that rest on it are not known; a share above 100 % is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from typing import Any

import msgspec

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import market_price
from gpuledger.efficiency.calibration_files import BoardCalibration
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.meter.observed import Figure, Observed, Spread, Work
from gpuledger.training.mfu import Denominator, measured_achievable, mixed, peak_in_use, reference_peak
from gpuledger.units import Unknown

TERA, MEGA = 1e12, 1e6
SECONDS_PER_HOUR = 3600
CHECK = "more than the GPU can do; check the counted FLOPs of a step and the batches"


@dataclass(frozen=True)
class Price:
    """Dollars of one GPU-hour and what that rests on."""

    usd_per_gpu_h: float | Unknown
    words: str


@dataclass(frozen=True)
class MeterReport:
    """One rank's figures. Rates and phases stand on the timed steps; percentages are 0 to 100."""

    seen: Observed
    step_ms: Figure
    phases_ms: dict[str, float]
    phases_pct: dict[str, float]
    tokens_per_s: Figure
    samples_per_s: Figure
    model_tflops: Figure
    hardware_tflops: Figure
    mfu_pct: Figure
    hfu_pct: Figure
    mfu_of_precision_pct: Figure
    mfu_of_measured_pct: Figure
    denominator: str
    denominator_of_precision: str
    denominator_of_measured: str
    usd_per_million_tokens: Figure
    usd_per_million_samples: Figure
    price: Price
    joules_per_step: Figure
    joules_per_token: Figure
    findings: tuple[MeasuredFinding, ...] = ()


def price_of(gpu: Gpu | Unknown, usd_per_gpu_h: float | Decimal | None) -> Price:
    """The given price, else the dated market median of this GPU; never a guess."""
    if usd_per_gpu_h is not None:
        return Price(float(usd_per_gpu_h), "as given")
    if isinstance(gpu, Unknown):
        return Price(gpu, f"not known: {gpu.why}")
    found = market_price(gpu.key)
    if isinstance(found, Unknown):
        return Price(found, f"not known: {found.why}")
    return Price(float(found.usd_per_gpu_h), found.words)


def make_report(
    seen: Observed, price: Price, boards: Sequence[BoardCalibration] = (), findings: tuple[MeasuredFinding, ...] = ()
) -> MeterReport:
    """All figures of one rank."""
    step_s = _mean(seen.step)
    tokens, samples = _rate(seen.tokens_per_step, step_s), _rate(seen.samples_per_step, step_s)
    model, hardware = _tflops(seen, step_s)
    peak, in_use, measured = _denominators(seen, boards)
    total_s = sum(seen.phases_s.values())
    return MeterReport(
        seen=seen,
        step_ms=step_s if isinstance(step_s, Unknown) else 1000 * step_s,
        phases_ms={p: 1000 * s for p, s in seen.phases_s.items()},
        phases_pct={p: 100 * s / total_s if total_s else 0.0 for p, s in seen.phases_s.items()},
        tokens_per_s=tokens,
        samples_per_s=samples,
        model_tflops=model,
        hardware_tflops=hardware,
        mfu_pct=_pct(model, peak),
        hfu_pct=_pct(hardware, peak),
        mfu_of_precision_pct=_pct(model, in_use),
        mfu_of_measured_pct=_pct(model, measured),
        denominator=peak.words,
        denominator_of_precision=in_use.words,
        denominator_of_measured=measured.words,
        usd_per_million_tokens=_usd_per_million(price.usd_per_gpu_h, tokens),
        usd_per_million_samples=_usd_per_million(price.usd_per_gpu_h, samples),
        price=price,
        joules_per_step=seen.energy_j_per_step,
        joules_per_token=_over(seen.energy_j_per_step, seen.tokens_per_step),
        findings=findings,
    )


def _mean(step: Spread | Unknown) -> Figure:
    if isinstance(step, Unknown):
        return step
    return step.mean if step.mean > 0 else Unknown("the steps took no time")


def _tflops(seen: Observed, step_s: Figure) -> tuple[Figure, Figure]:
    work = seen.work
    if isinstance(work, Unknown):
        return work, work
    if isinstance(step_s, Unknown):
        return step_s, step_s
    like = _like(work, seen)
    return like * work.model_flop / step_s / TERA, like * work.hardware_flop / step_s / TERA


def _like(work: Work, seen: Observed) -> float:
    tokens, samples = (None if isinstance(x, Unknown) else x for x in (seen.tokens_per_step, seen.samples_per_step))
    return work.steps_like(1.0, tokens, samples)


def _denominators(seen: Observed, boards: Sequence[BoardCalibration]) -> tuple[Denominator, Denominator, Denominator]:
    """The bf16 peak, the peak of the precision in use, and what was measured as achievable in it."""
    gpu, precision = seen.place.gpu, seen.precision
    if isinstance(gpu, Unknown):
        none = Denominator(gpu, f"none: {gpu.why}")
        return none, none, none
    if isinstance(precision, Unknown):
        none = Denominator(precision, f"none: {precision.why}")
        return reference_peak(gpu, above=CHECK), none, none
    ratios = seen.precision_ratios or {precision: 1.0}
    in_use = mixed({p: _peak_in_use(gpu, p) for p in ratios}, ratios)
    above = f"the products cannot all run in {' and '.join(ratios)}, so their precision is not known"
    measured = mixed({p: measured_achievable(gpu, p, boards) for p in ratios}, ratios)
    return reference_peak(gpu, ratios, CHECK), replace(in_use, above=above), measured


def _peak_in_use(gpu: Gpu, precision: str) -> Denominator:
    """As of the catalog; fp64 products run on the tensor cores where these have fp64."""
    name = "fp64_tensor" if precision == "fp64" and "fp64_tensor" in gpu.peak_tflops else precision
    lacks = gpu.peak(name)
    return Denominator(lacks, f"none: {lacks.why}") if isinstance(lacks, Unknown) else peak_in_use(gpu, name)


def _pct(tflops: Figure, whole: Denominator) -> Figure:
    if isinstance(whole.tflops, Unknown):
        return whole.tflops
    return tflops if isinstance(tflops, Unknown) else whole.share_pct(tflops * TERA, 1)


def _rate(amount: Figure, seconds: Figure) -> Figure:
    if isinstance(amount, Unknown):
        return amount
    return seconds if isinstance(seconds, Unknown) else amount / seconds


def _over(part: Figure, whole: Figure) -> Figure:
    if isinstance(part, Unknown) or isinstance(whole, Unknown):
        return part if isinstance(part, Unknown) else whole
    return part / whole if whole else Unknown("the batches are empty")


def _usd_per_million(usd_per_h: float | Unknown, per_s: Figure) -> Figure:
    if isinstance(usd_per_h, Unknown) or isinstance(per_s, Unknown):
        return usd_per_h if isinstance(usd_per_h, Unknown) else per_s
    return usd_per_h / SECONDS_PER_HOUR / per_s * MEGA if per_s else Unknown("the batches are empty")


def to_json(report: MeterReport) -> dict[str, Any]:
    """Plain data: figures that are not known are null, and `not_known` says which and why."""
    missing: dict[str, str] = {}
    out: dict[str, Any] = _plain(report, "", missing)
    return out | {"not_known": [{"figure": name, "why": why} for name, why in missing.items()]}


def _plain(value: Any, path: str, missing: dict[str, str]) -> Any:
    if isinstance(value, Unknown):
        missing[path] = value.why
        return None
    if isinstance(value, Gpu | MeasuredFinding):
        return value.key if isinstance(value, Gpu) else msgspec.structs.asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value)]
        return {n: _plain(getattr(value, n), f"{path}.{n}" if path else n, missing) for n in names}
    if isinstance(value, dict):
        return {k: _plain(v, f"{path}.{k}", missing) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, f"{path}[]", missing) for v in value]
    return value
