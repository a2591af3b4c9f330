"""Would eight bits halve the time of the products?"""

from __future__ import annotations

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import Effort, Reason, advise, python
from gpuledger.advice.signs import nvidia, tensor_busy
from gpuledger.catalog.gpus import Gpu

_EIGHT_BITS = ("fp8", "int8", "fp4")

CHANGE = python("""
import torch
import transformer_engine.pytorch as te
from transformer_engine.common.recipe import DelayedScaling

recipe = DelayedScaling()
# te.Linear, te.LayerNormMLP and te.TransformerLayer in place of torch's own.
with torch.autocast("cuda", dtype=torch.bfloat16), te.fp8_autocast(enabled=True, fp8_recipe=recipe):
    loss = criterion(model(inputs), targets)
loss.backward()
""")


@advise(
    "fp8",
    title="Compute products in FP8: Transformer Engine",
    lever="throughput",
    effort=Effort("large", 40),
    change=CHANGE,
)
def when(case: Case, limits: Limits) -> Reason | None:
    """The tensor pipe is the limit, on a GPU whose tensor cores do FP8."""
    sign = tensor_busy(case, limits)
    if not sign or not isinstance(case.gpu, Gpu) or not nvidia(case):
        return None
    if "fp8" not in case.gpu.peak_tflops or case.precision in _EIGHT_BITS:
        return None
    return Reason(f"{sign}; {case.gpu.name} does twice the work in FP8 while its products last")
