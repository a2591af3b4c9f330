"""Do the products run in more bits than the device needs?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import COMPUTE, by_speedup, facts, finding, topic
from gpuledger.training.meter.observed import Observed
from gpuledger.units import Unknown

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
# Mixed precision is on: {narrow:.0f} % of the FLOPs run in 16 bits or fewer. The others stay in {now} by
# autocast(enabled=False), by .float(), or because they are called outside of autocast. Which layers these are:
for name, module in model.named_modules():
    if isinstance(module, torch.nn.Linear):
        module.register_forward_hook(lambda _module, _inputs, out, name=name: print(name, out.dtype))
"""
TF32 = """
torch.set_float32_matmul_precision("high")              # fp32 products on the tensor cores
"""


NARROW = ("bf16", "fp16", "fp8", "fp4")


@topic("precision")
def wide(seen: Observed) -> MeasuredFinding | None:
    """fp32 or TF32 products on a GPU with 16-bit tensor cores; as observed, never by what the weights are."""
    gpu, now = seen.place.gpu, seen.precision
    if not isinstance(gpu, Gpu) or isinstance(now, Unknown) or now not in {"fp32", "tf32"}:
        return None
    ratio = seen.flop_ratio(now)
    known, share = facts("precision"), ratio * seen.share(*COMPUTE)
    to, rule, change = _target(gpu)
    if seen.flop_ratio(*NARROW) >= known["mixed_from_ratio"]:
        change = PART.format(narrow=100 * seen.flop_ratio(*NARROW), now=now)
    if to == now or not share:
        return None
    step = f"{now}_to_{'bf16' if to == 'fp16' else to}"
    if f"{step}_low" not in known:
        return None
    speedup = [known[f"{step}_{end}"] for end in ("low", "middle", "high")]
    peaks = {p: gpu.peak_tflops[p].value for p in (now, to) if p in gpu.peak_tflops}
    if len(peaks) == 2:
        # No precision gains more than its peak allows.
        speedup = [min(x, max(1.0, peaks[to] / peaks[now])) for x in speedup]
    said = ", ".join(f"{p} {tflops:.0f} TFLOPS" for p, tflops in peaks.items())
    return finding(
        "precision",
        rule,
        f"Products run in {now}",
        f"{100 * ratio:.0f} % of the FLOPs were observed in {now}, and forward and backward take "
        f"{100 * seen.share(*COMPUTE):.0f} % of the step; {gpu.name} reaches {said}",
        change,
        by_speedup(share, *speedup),
        known["source"],
        compute_ratio=seen.share(*COMPUTE),
        flop_ratio=ratio,
        **{f"{p}_peak_tflops": tflops for p, tflops in peaks.items()},
    )


def _target(gpu: Gpu) -> tuple[str, str, str]:
    if "bf16" in gpu.peak_tflops:
        return "bf16", "bf16", BF16
    if "fp16" in gpu.peak_tflops:
        return "fp16", "amp", FP16.format(gpu=gpu.name)
    return "tf32", "tensor-cores", TF32
