"""Would mixed precision put the tensor pipe to work?"""

from gpuledger.advice.rule import PRECISION, Case, Effort, Limits, Reason, advise, python
from gpuledger.advice.signs import TO_16_BITS, runs_in_fp32, runs_in_tf32
from gpuledger.catalog.gpus import Gpu

CHANGE = python("""
import torch

# Automatic mixed precision (AMP): products in 16 bits on the tensor cores, sums and weights in 32.
scaler = torch.amp.GradScaler("cuda")
for inputs, targets in loader:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""")


@advise(
    "amp", "Train in mixed precision: AMP (autocast)", "throughput", Effort("small", 4), CHANGE, TO_16_BITS,
    exclusive=PRECISION,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Work in 32 bits, on a GPU with 16-bit tensor cores."""
    if not isinstance(case.gpu, Gpu) or "fp16" not in case.gpu.peak_tflops:
        return None
    if sign := runs_in_tf32(case):
        return Reason(f"{sign}; 16 bits do twice the work", variant="tf32")
    sign = runs_in_fp32(case, limits)
    if not sign:
        return None
    full, half = case.gpu.peak_tflops.get("fp32"), case.gpu.peak_tflops["fp16"]
    times = f"{half.value / full.value:.0f} times" if full else "more than"
    return Reason(f"{sign}; {case.gpu.name} does {times} the fp32 work in fp16")
