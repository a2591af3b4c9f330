"""How long does a GPU work on one traced micro-batch, and on the optimizer step after it?

Every operator is known: the FLOP of products, the bytes all others move, how many kernels there are. The GPU takes the
sum of both rooflines; the processor takes its time to launch each kernel; the longer of the two decides, softly.
Depthwise convolutions hardly multiply, and their kernels reach a far smaller share of the memory's bandwidth.
"""

from __future__ import annotations

from dataclasses import replace

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import TracedFactors
from gpuledger.plan.speed.steps import Work, compute_peak, optimizer_s
from gpuledger.plan.tracing import traced_step, traced_tensors
from gpuledger.units import Unknown

# Neither hides behind the other entirely: (gpu^3 + launches^3)^(1/3).
SOFT = 3


def traced_work(model: Model, gpu: Gpu, setup: Setup, facts: TracedFactors) -> Work | Unknown:
    """One micro-batch, forward and backward."""
    peak = compute_peak(gpu, setup.precision)
    wide = gpu.figure("memory_bandwidth_bytes_per_s")
    if isinstance(peak, Unknown):
        return peak
    if isinstance(wide, Unknown):
        return wide
    step = traced_step(model, replace(setup, accumulate=True))
    if isinstance(step, Unknown):
        return step
    compute = (step.product_flop + step.attention_flop) / peak / facts.compute_ratio
    moved = step.moved_bytes / facts.memory_ratio + step.depthwise_bytes / facts.depthwise_ratio
    traffic = moved / wide
    total = soft_max(compute + traffic, step.kernels * facts.per_kernel_s)
    return Work(compute_s=compute, traffic_s=traffic, launch_s=total - compute - traffic, tensor_link_s=0.0)


def traced_optimizer_s(model: Model, gpu: Gpu, setup: Setup, facts: TracedFactors, memory_ratio: float) -> float:
    """One optimizer step: all states pass through memory, or every tensor is launched by itself."""
    each = facts.per_master_s if setup.scheme == "mixed" and setup.precision != "fp32" else facts.per_tensor_s
    return soft_max(optimizer_s(model, gpu, setup, memory_ratio), traced_tensors(model) * each)


def soft_max(one: float, other: float) -> float:
    """A little more than the larger of two times."""
    return float((one**SOFT + other**SOFT) ** (1 / SOFT))


def traced_flop(model: Model, setup: Setup) -> int | Unknown:
    """FLOP of one micro-batch of training, nothing counted twice for recomputation."""
    step = traced_step(model, replace(setup, accumulate=True, recompute=False))
    return step if isinstance(step, Unknown) else step.product_flop + step.attention_flop
