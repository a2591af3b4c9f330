"""How long does a denoiser take for one step, and how many images per second does it make?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import TracedFactors
from gpuledger.plan.speed.steps import compute_peak
from gpuledger.plan.speed.traced import soft_max
from gpuledger.plan.tracing import denoised
from gpuledger.training.blueprint.forward import Served
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Denoised:
    """Seconds of one batch of images in one copy: each of its steps, then the way to pixels where that is known."""

    steps: int
    step_s: float
    pixels_s: float

    @property
    def total_s(self) -> float:
        """All of it; text encoders, which run once, are not within."""
        return self.steps * self.step_s + self.pixels_s


def denoised_s(model: Model, gpu: Gpu, setup: Setup, facts: TracedFactors) -> Denoised | Unknown:
    """A batch of images of this setup."""
    peak, found = compute_peak(gpu, setup.precision), denoised(model, setup)
    if isinstance(found, Unknown):
        return found
    wide = gpu.figure("memory_bandwidth_bytes_per_s")
    if isinstance(peak, Unknown):
        return peak
    if isinstance(wide, Unknown):
        return wide
    step, *rest = (_pass_s(one, peak, wide, facts) for one in found)
    return Denoised(setup.denoising_steps, step, sum(rest))


def _pass_s(one: Served, peak: float, bandwidth: float, facts: TracedFactors) -> float:
    compute = (one.product_flop + one.attention_flop) / peak / facts.compute_ratio
    return soft_max(compute + one.moved_bytes / bandwidth / facts.memory_ratio, one.kernels * facts.per_kernel_s)
