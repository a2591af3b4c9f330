"""Would fewer, larger kernels move less data and leave fewer gaps?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import memory_limit, small_kernels, tensor_busy

CHANGE = python("""
import torch
import torch.nn.functional as F

# Fused kernels: attention without its score matrix in memory, one optimizer kernel for all parameters.
attention = F.scaled_dot_product_attention(query, key, value, is_causal=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
""")
SOURCE = "assumed: depends on how much of the step is attention, normalization and optimizer"
GAIN = Gain("speedup", "assumed", SOURCE, (1.0, 1.1, 1.3))


@advise(
    "fused-kernels", "Use fused kernels: attention, normalization, optimizer", "throughput", Effort("medium", 8),
    CHANGE, GAIN,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Memory-bound or launch-bound; or compute-bound with the tensor pipe not yet full."""
    tensor = case.signals.tensor_ratio
    sign = memory_limit(case) or small_kernels(case)
    if not sign and tensor is not None and tensor < limits.pipes.tensor_full_from_ratio:
        sign = tensor_busy(case, limits)
    return Reason(sign) if sign else None
