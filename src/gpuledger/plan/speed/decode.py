"""How long does one step of a serving model take that writes one token for each of its sequences?

A roofline with what is lost beside it: bytes moved over the measured share of the bandwidth, products over the measured
share of the peak, and times that do not shrink with a faster GPU: per layer, per collective, per sequence, per step.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model, TransformerShape
from gpuledger.catalog.models.params import active_params, expert_params
from gpuledger.plan.memory.cache import cache_numbers_per_token
from gpuledger.plan.memory.facts import get_precision
from gpuledger.plan.memory.weights import held, stages
from gpuledger.plan.setup import Setup
from gpuledger.units import Unknown

TERA = 1e12
# Each layer adds up its attention and its MLP over the group.
COLLECTIVES_PER_LAYER = 2
# Weights stored narrower than the GPU computes in are widened: the product runs at the 16-bit peak.
WIDENED = "bf16"


@dataclass(frozen=True)
class StepLoad:
    """What one decoding step asks of one GPU, at its rated speed and before any loss."""

    weights_s: float
    experts_s: float
    cache_s: float
    compute_s: float
    layers: int
    moe_layers: int
    collectives: int
    collective_bytes: float
    sequences: int

    @property
    def memory_s(self) -> float:
        """Bytes moved at the rated bandwidth: weights outside the experts, keys and values."""
        return self.weights_s + self.cache_s


def compute_peak(gpu: Gpu, precision: str) -> float | Unknown:
    """FLOP/s the products of this precision run at: at the 16-bit peak where the GPU has no units for it."""
    needs = get_precision(precision).needs
    peak = gpu.peak(needs) if needs else gpu.peak(WIDENED if WIDENED in gpu.peak_tflops else "fp16")
    return peak if isinstance(peak, Unknown) else peak * TERA


def experts_touched(shape: TransformerShape, tokens: int) -> float:
    """How many experts of a layer a batch needs at least once, with even and independent routing."""
    if not shape.experts:
        return 0.0
    return shape.experts * (1 - (1 - shape.experts_per_token / shape.experts) ** tokens)


def step_load(model: Model, gpu: Gpu, setup: Setup, context: float) -> StepLoad | Unknown:
    """One step for setup.batch sequences of `context` tokens each, on the fullest GPU of a tensor parallel group."""
    shape = model.shape
    if not isinstance(shape, TransformerShape):
        return Unknown(f"{model.name} writes no tokens")
    peak = compute_peak(gpu, setup.precision)
    if isinstance(peak, Unknown):
        return peak
    bandwidth = gpu.memory_bandwidth_bytes_per_s.value
    bits = get_precision(setup.precision).bits
    own = held(model, stages(model, 1)[0], setup.tensor)
    experts = shape.moe_layers * expert_params(shape) / setup.tensor
    table = 0 if shape.tied_embeddings else shape.vocab * shape.hidden / setup.tensor  # only rows of it are read
    read = (own.matrices - shape.experts * experts) * bits / 8 + (own.rest - table) * max(bits, 16) / 8
    seen = shape.full_layers * context + shape.sliding_layers * min(context, shape.sliding_window or context)
    cache = setup.batch * seen * cache_numbers_per_token(shape, setup.tensor)
    products = 2 * active_params(shape) * setup.batch / setup.tensor
    pairs = 2 * setup.batch * seen * shape.heads * _score_width(shape) / setup.tensor
    return StepLoad(
        weights_s=read / bandwidth,
        experts_s=experts_touched(shape, setup.batch) * experts * bits / 8 / bandwidth,
        cache_s=cache * get_precision(setup.cache_precision).bits / 8 / bandwidth,
        compute_s=(products + pairs) / peak,
        layers=shape.layers,
        moe_layers=shape.moe_layers,
        collectives=COLLECTIVES_PER_LAYER * shape.layers if setup.tensor > 1 else 0,
        collective_bytes=2.0 * setup.batch * shape.hidden,
        sequences=setup.batch,
    )


def _score_width(shape: TransformerShape) -> int:
    """Multiply-adds of a head for each token it looks at: query x key, and weight x value."""
    if shape.mla is None:
        return 2 * shape.head_dim
    return 2 * shape.mla.kv_lora_rank + shape.mla.qk_rope_dim  # the latent itself is attended to
