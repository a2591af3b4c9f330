"""Are the kernels of a step as fast as they could be: precision, sizes, number, and MFU as a whole?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.bands import band_by_work
from gpuledger.training.findings import COMPUTE, NO_TIME, TOPICS, Facts, by_speedup, finding, share_of, speedups
from gpuledger.training.meter.observed import Observed
from gpuledger.training.mfu import reference_peak
from gpuledger.units import Unknown

NARROW = ("bf16", "fp16", "fp8", "fp4")


@TOPICS.register("precision")
def wide(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """fp32 or TF32 products on a GPU with 16-bit tensor cores; as observed, not by the type of the weights."""
    gpu, now = seen.place.gpu, seen.precision
    if not isinstance(gpu, Gpu) or isinstance(now, Unknown) or now not in {"fp32", "tf32"}:
        return None
    ratio, compute, narrow = seen.flop_ratio(now), seen.share(*COMPUTE), seen.flop_ratio(*NARROW)
    to = next((p for p in ("bf16", "fp16") if p in gpu.peak_tflops), "tf32")
    step = f"{now}_to_{'bf16' if to == 'fp16' else to}"
    if to == now or not ratio * compute or f"{step}_low" not in known:
        return None
    change = known["change"] if to == "bf16" else known[f"change_{to}"].format(gpu=gpu.name)
    if narrow >= known["mixed_from_ratio"]:
        change = known["change_mixed"].format(narrow=100 * narrow, now=now)
    gains = speedups(known, step)
    peaks = {p: gpu.peak_tflops[p].value for p in (now, to) if p in gpu.peak_tflops}
    if len(peaks) == 2:
        # No precision gains more than its peak allows.
        gains = tuple(min(x, max(1.0, peaks[to] / peaks[now])) for x in gains)
    reach = ", ".join(f"{p} {tflops:.0f} TFLOPS" for p, tflops in peaks.items())
    why = (
        f"{100 * ratio:.0f} % of the FLOPs were observed in {now}, and forward and backward take {100 * compute:.0f} % "
        f"of the step; {gpu.name} reaches {reach}"
    )
    figures = {"compute_ratio": compute, "flop_ratio": ratio} | {f"{p}_peak_tflops": t for p, t in peaks.items()}
    texts = {"title": known["title"].format(now=now), "rule": known.get(f"rule_{to}", known["rule"]), "change": change}
    return finding(known, why, by_speedup(ratio * compute, gains), figures, **texts)


@TOPICS.register("tensor_cores")
def odd_sizes(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """The share of the product FLOPs whose sizes are not multiples of 8, where products run on tensor cores."""
    work, compute = seen.work, seen.share(*COMPUTE)
    if isinstance(seen.precision, Unknown) or seen.precision in VECTOR_PRECISIONS:
        return None
    if seen.place.kind != "cuda" or isinstance(work, Unknown) or work.odd_ratio < known["odd_from_ratio"]:
        return None
    sizes = ", ".join(" x ".join(map(str, size)) for size in work.odd_sizes)
    why = f"{100 * work.odd_ratio:.0f} % of the product FLOPs have a size that is not a multiple of 8, such as {sizes}"
    saved, figures = by_speedup(compute * work.odd_ratio, speedups(known)), {"odd_ratio": work.odd_ratio}
    return finding(known, why, saved, figures | {"compute_ratio": compute}, change=known["change"].format(sizes=sizes))


@TOPICS.register("fusion")
def small_kernels(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """Kernels that take a few microseconds each, in a model that is not compiled."""
    work, compute = seen.work, seen.share(*COMPUTE)
    if isinstance(work, Unknown) or seen.compiled or seen.place.kind != "cuda" or work.kernels < known["kernels_from"]:
        return None
    mean_us = 1e6 * seen.share(*COMPUTE, "optimizer") * sum(seen.phases_s.values()) / work.kernels
    if mean_us >= known["kernel_below_us"]:
        return None
    why = f"{work.kernels:,} operations per step of {mean_us:.0f} us each on the device, and the model is not compiled"
    figures = {"kernels": work.kernels, "kernel_us": mean_us, "compute_ratio": compute}
    return finding(known, why, by_speedup(compute, speedups(known)), figures)


@TOPICS.register("optimizer")
def plain_update(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """An optimizer that could be fused and is not."""
    share = seen.share("optimizer")
    if seen.fused_optimizer is not False or share < known["share_from_ratio"]:
        return None
    ms = 1000 * seen.phases_s["optimizer"]
    why = f"{seen.optimizer} takes {ms:.2f} ms of each step ({100 * share:.0f} %) without fused=True"
    figures, change = {"optimizer_ms": ms, "optimizer_ratio": share}, known["change"].format(optimizer=seen.optimizer)
    return finding(known, why, share_of(share, known), figures, change=change)


@TOPICS.register("mfu")
def below_target(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """MFU below what is usual; utilization alone would not show it."""
    gpu, work, step = seen.place.gpu, seen.work, seen.step
    if not isinstance(gpu, Gpu) or isinstance(work, Unknown) or isinstance(step, Unknown) or not step.mean:
        return None
    peak = reference_peak(gpu)
    mfu = peak.share_pct(work.model_flop / step.mean, 1)
    usual = band_by_work(work.convolution_ratio)
    if isinstance(mfu, Unknown) or mfu >= usual.low_pct:
        return None
    longest = max(seen.phases_s, key=lambda p: seen.phases_s[p])
    why = (
        f"MFU {mfu:.1f} % of the {peak.words} ({usual.target}); the longest phase is {longest}, "
        f"{100 * seen.share(longest):.0f} % of the step"
    )
    return finding(known, why, NO_TIME, {"mfu_pct": mfu})
