"""Would compiling the model fuse its small operations?"""

from __future__ import annotations

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import Effort, Reason, advise, python
from gpuledger.advice.signs import memory_limit, small_kernels, steady_partial, tensor_busy

CHANGE = python("""
import torch

# Fuses element-wise operations into few kernels. The first steps are slow; shapes that change compile again.
model = torch.compile(model)
""")


@advise(
    "torch-compile",
    title="Compile the model: torch.compile",
    lever="throughput",
    effort=Effort("small", 4),
    change=CHANGE,
)
def when(case: Case, limits: Limits) -> Reason | None:
    """Small kernels, memory traffic between them, or a tensor pipe that is not yet full."""
    tensor = case.signals.tensor_ratio
    sign = small_kernels(case) or memory_limit(case)
    if not sign and case.by_counters and tensor is not None and tensor < limits.pipes.tensor_full_from_ratio:
        sign = steady_partial(case, limits) or tensor_busy(case, limits)
    return Reason(sign) if sign else None
