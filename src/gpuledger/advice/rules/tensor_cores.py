"""Do the products miss the tensor cores, by a switch that is off or by odd shapes?"""

from gpuledger.advice.rule import PRECISION, Case, Effort, Limits, Reason, advise, pct, python
from gpuledger.advice.signs import REDUCED, TO_TENSOR_CORES, runs_in_fp32
from gpuledger.catalog.gpus import Gpu

CHANGE = python("""
import torch

# TF32: float32 in and out, products on the Tensor Cores. Off by default for matrix products.
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.allow_tf32 = True

# Tensor Cores want sizes that are multiples of 8 (64 is better): pad the vocabulary, widths and batch.
vocabulary = (vocabulary + 63) // 64 * 64
""")


@advise(
    "tensor-cores", "Use the Tensor Cores: TF32 products, sizes in multiples of 8", "throughput", Effort("small", 1),
    CHANGE, TO_TENSOR_CORES, exclusive=PRECISION,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Compute-bound in 32 bits on a GPU with TF32; or in 16 bits and yet off the tensor pipe."""
    if not isinstance(case.gpu, Gpu):
        return None
    tensor = case.signals.tensor_ratio
    if case.klass == "compute-bound" and case.precision in REDUCED and tensor is not None:
        if tensor >= limits.pipes.tensor_unused_below_ratio:
            return None
        return Reason(
            f"the job says {case.precision}, yet the tensor pipe is active {pct(tensor)} of the time: odd sizes"
        )
    sign = runs_in_fp32(case, limits)
    if not sign or "tf32" not in case.gpu.peak_tflops:
        return None
    return Reason(f"{sign}; {case.gpu.name} has TF32")
