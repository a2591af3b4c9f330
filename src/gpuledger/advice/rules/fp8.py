"""Would eight bits halve the time of the products?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import nvidia, tensor_busy
from gpuledger.catalog.gpus import Gpu

# A job that reports one of these is not ready for FP8: it runs in 8 bits already, or 16 bits come first.
_NOT_FROM = ("fp8", "int8", "fp4", "fp64", "fp32", "tf32")

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
SOURCE = (
    "13B GPT on H100, 0.34 -> 0.24 s per step (1.4x): github.com/NVIDIA/Megatron-LM/issues/396; GPT-3-style models on"
    " H100, 60 % faster: lambdalabs.com/blog/unleashing-the-power-of-transformers-with-nvidia-transformer-engine; low"
    " end assumed"
)
GAIN = Gain("speedup", "published", SOURCE, (1.1, 1.4, 1.6))


@advise("fp8", "Compute products in FP8: Transformer Engine", "throughput", Effort("large", 40), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """The tensor pipe is the limit, on a GPU whose tensor cores do FP8."""
    sign = tensor_busy(case, limits)
    if not sign or not isinstance(case.gpu, Gpu) or not nvidia(case):
        return None
    if "fp8" not in case.gpu.peak_tflops or case.precision in _NOT_FROM or case.tensor_kind is not None:
        return None
    unsure = "" if case.precision else "; the precision is not recorded: if it is TF32, BF16 comes first"
    return Reason(f"{sign}; {case.gpu.name} does its products at twice the rate in FP8{unsure}")
