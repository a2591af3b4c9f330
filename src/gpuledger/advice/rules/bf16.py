"""Would bfloat16 put the tensor pipe to work without a loss scaler?"""

from gpuledger.advice.rule import PRECISION, Case, Effort, Limits, Reason, advise, python
from gpuledger.advice.signs import TO_16_BITS, runs_in_fp32, runs_in_tf32
from gpuledger.catalog.gpus import Gpu

CHANGE = python("""
import torch

# bfloat16 (BF16) has the range of float32: no loss scaling, one line round the forward pass.
for inputs, targets in loader:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
""")


@advise(
    "bf16", "Train in BF16: autocast to bfloat16", "throughput", Effort("small", 2), CHANGE, TO_16_BITS,
    exclusive=PRECISION,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Work in 32 bits, on a GPU with bfloat16 tensor cores."""
    if not isinstance(case.gpu, Gpu) or "bf16" not in case.gpu.peak_tflops:
        return None
    if sign := runs_in_tf32(case):
        return Reason(f"{sign}; BF16 does twice the work", variant="tf32")
    sign = runs_in_fp32(case, limits)
    return Reason(f"{sign}; {case.gpu.name} has BF16 tensor cores") if sign else None
