"""Would compiling the model fuse its small operations?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import memory_limit, small_kernels, steady_partial, tensor_busy

CHANGE = python("""
import torch

# Fuses element-wise operations into few kernels. The first steps are slow; shapes that change compile again.
model = torch.compile(model)
""")
SOURCE = (
    "inference of 11 vision models on A100 at batch 16, median 1.16, best 1.71: "
    "huggingface.co/datasets/docs-benchmarks/compile-benchmarks; in training some models gain nothing or lose (0.82 "
    "to 1.23): MMAction2, notes on PyTorch 2.0"
)
GAIN = Gain("speedup", "published", SOURCE, (1.0, 1.16, 1.71))


@advise("torch-compile", "Compile the model: torch.compile", "throughput", Effort("small", 4), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """Small kernels, memory traffic between them, or a tensor pipe that is not yet full."""
    tensor = case.signals.tensor_ratio
    sign = small_kernels(case) or memory_limit(case)
    if not sign and case.by_counters and tensor is not None and tensor < limits.pipes.tensor_full_from_ratio:
        sign = steady_partial(case, limits) or tensor_busy(case, limits)
    return Reason(sign) if sign else None
