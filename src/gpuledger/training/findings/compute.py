"""Are the kernels of a step as fast as they could be: precision, sizes, number, and MFU as a whole?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings import COMPUTE, NO_TIME, TOPICS, by_speedup, facts, finding, share_of, speedups
from gpuledger.training.meter.observed import Observed
from gpuledger.training.mfu import reference_peak
from gpuledger.units import Unknown

NARROW = ("bf16", "fp16", "fp8", "fp4")
BF16 = """
with torch.autocast("cuda", dtype=torch.bfloat16):      # forward pass and loss only; weights stay in float32
    loss = criterion(model(inputs), targets)
loss.backward()
"""
FP16 = """
# {gpu} has no bf16: fp16 needs its loss scaled, or small gradients become zero.
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", dtype=torch.float16):
    loss = criterion(model(inputs), targets)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
"""
PART = """
# Mixed precision is on: {narrow:.0f} % of the FLOPs run in 16 bits or fewer. The others stay in {now} because of
# autocast(enabled=False), of .float(), or because they are called outside autocast. To see which layers these are:
for name, module in model.named_modules():
    if isinstance(module, torch.nn.Linear):
        module.register_forward_hook(lambda _module, _inputs, out, name=name: print(name, out.dtype))
"""
TF32 = """
torch.set_float32_matmul_precision("high")              # fp32 products on the tensor cores
"""
SIZES = """
# Use sizes in multiples of 8 (64 is better): {sizes}
vocabulary = (vocabulary + 63) // 64 * 64       # rows beyond the tokenizer's are never looked up
loader = DataLoader(dataset, batch_size=batch_size // 8 * 8 or 8, drop_last=True)
"""
COMPILE = """
model = torch.compile(model)        # fuses what lies between the products; the first steps are slow
"""
FUSED = """
optimizer = torch.optim.{optimizer}(model.parameters(), lr=lr, fused=True)
"""
PROFILE = """
# Where the time goes within the longest phase, kernel by kernel:
with torch.profiler.profile(record_shapes=True) as profiler:
    train_step(next(iter(loader)))
print(profiler.key_averages().table(sort_by="self_device_time_total", row_limit=20))
"""


@TOPICS.register("precision")
def wide(seen: Observed) -> MeasuredFinding | None:
    """fp32 or TF32 products on a GPU with 16-bit tensor cores; as observed, not by the type of the weights."""
    gpu, now = seen.place.gpu, seen.precision
    if not isinstance(gpu, Gpu) or isinstance(now, Unknown) or now not in {"fp32", "tf32"}:
        return None
    ratio, compute = seen.flop_ratio(now), seen.share(*COMPUTE)
    known, share = facts("precision"), ratio * compute
    to, rule, change = _target(gpu)
    change_to = f"{now}_to_{'bf16' if to == 'fp16' else to}"
    if to == now or not share or f"{change_to}_low" not in known:
        return None
    if seen.flop_ratio(*NARROW) >= known["mixed_from_ratio"]:
        change = PART.format(narrow=100 * seen.flop_ratio(*NARROW), now=now)
    gains = speedups(known, change_to)
    peaks = {p: gpu.peak_tflops[p].value for p in (now, to) if p in gpu.peak_tflops}
    if len(peaks) == 2:
        # No precision gains more than its peak allows.
        gains = tuple(min(x, max(1.0, peaks[to] / peaks[now])) for x in gains)
    reach = ", ".join(f"{p} {tflops:.0f} TFLOPS" for p, tflops in peaks.items())
    why = (
        f"{100 * ratio:.0f} % of the FLOPs were observed in {now}, and forward and backward take {100 * compute:.0f} % "
        f"of the step; {gpu.name} reaches {reach}"
    )
    return finding(
        "precision", rule, f"Products run in {now}", why, change, by_speedup(share, gains), known["source"],
        compute_ratio=compute, flop_ratio=ratio, **{f"{p}_peak_tflops": tflops for p, tflops in peaks.items()},
    )  # fmt: skip


def _target(gpu: Gpu) -> tuple[str, str, str]:
    """The precision to use instead, the rule that advises it, and the change."""
    if "bf16" in gpu.peak_tflops:
        return "bf16", "bf16", BF16
    if "fp16" in gpu.peak_tflops:
        return "fp16", "amp", FP16.format(gpu=gpu.name)
    return "tf32", "tensor-cores", TF32


@TOPICS.register("tensor_cores")
def odd_sizes(seen: Observed) -> MeasuredFinding | None:
    """The share of the product FLOPs whose sizes are not multiples of 8, where products run on tensor cores."""
    known, work = facts("tensor_cores"), seen.work
    if isinstance(seen.precision, Unknown) or seen.precision in VECTOR_PRECISIONS:
        return None
    if seen.place.kind != "cuda" or isinstance(work, Unknown) or work.odd_ratio < known["odd_from_ratio"]:
        return None
    sizes = ", ".join(" x ".join(map(str, size)) for size in work.odd_sizes)
    compute = seen.share(*COMPUTE)
    return finding(
        "tensor_cores", "tensor-cores", "Products have sizes that are not multiples of 8",
        f"{100 * work.odd_ratio:.0f} % of the product FLOPs have a size that is not a multiple of 8, such as {sizes}",
        SIZES.format(sizes=sizes), by_speedup(compute * work.odd_ratio, speedups(known)), known["source"],
        odd_ratio=work.odd_ratio, compute_ratio=compute,
    )  # fmt: skip


@TOPICS.register("fusion")
def small_kernels(seen: Observed) -> MeasuredFinding | None:
    """Kernels that take a few microseconds each, in a model that is not compiled."""
    known, work, compute = facts("fusion"), seen.work, seen.share(*COMPUTE)
    if isinstance(work, Unknown) or seen.compiled or seen.place.kind != "cuda" or work.kernels < known["kernels_from"]:
        return None
    mean_us = 1e6 * seen.share(*COMPUTE, "optimizer") * sum(seen.phases_s.values()) / work.kernels
    if mean_us >= known["kernel_below_us"]:
        return None
    return finding(
        "fusion", "torch-compile", "The step is made of many small kernels",
        f"{work.kernels:,} operations per step of {mean_us:.0f} us each on the device, and the model is not compiled",
        COMPILE, by_speedup(compute, speedups(known)), known["source"],
        kernels=work.kernels, kernel_us=mean_us, compute_ratio=compute,
    )  # fmt: skip


@TOPICS.register("optimizer")
def plain_update(seen: Observed) -> MeasuredFinding | None:
    """An optimizer that could be fused and is not."""
    known, share = facts("optimizer"), seen.share("optimizer")
    if seen.fused_optimizer is not False or share < known["share_from_ratio"]:
        return None
    ms = 1000 * seen.phases_s["optimizer"]
    return finding(
        "optimizer", "fused-kernels", "The update is not fused",
        f"{seen.optimizer} takes {ms:.2f} ms of each step ({100 * share:.0f} %) without fused=True",
        FUSED.format(optimizer=seen.optimizer), share_of(share, known), known["source"],
        optimizer_ms=ms, optimizer_ratio=share,
    )  # fmt: skip


@TOPICS.register("mfu")
def below_target(seen: Observed) -> MeasuredFinding | None:
    """MFU below what is usual; utilization alone would not show it."""
    known, gpu, work, step = facts("mfu"), seen.place.gpu, seen.work, seen.step
    if not isinstance(gpu, Gpu) or isinstance(work, Unknown) or isinstance(step, Unknown) or not step.mean:
        return None
    peak = reference_peak(gpu)
    mfu = peak.share_pct(work.model_flop / step.mean, 1)
    if isinstance(mfu, Unknown) or mfu >= known["transformer_low_pct"]:
        return None
    longest = max(seen.phases_s, key=lambda p: seen.phases_s[p])
    why = (
        f"MFU {mfu:.1f} % of the {peak.words} ({known['source']}); the longest phase is {longest}, "
        f"{100 * seen.share(longest):.0f} % of the step"
    )
    return finding(
        "mfu", "profile", "MFU is below what such loops reach", why, PROFILE, NO_TIME,
        "a profile saves nothing by itself", mfu_pct=mfu,
    )  # fmt: skip
