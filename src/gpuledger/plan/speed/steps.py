"""How long does a GPU work on one step: decoding, a training micro-batch, or reading prompts?

A roofline and its losses: bytes moved over the measured share of the bandwidth, products over the measured share of the
peak, the traffic of everything else (norms, activations, casts), and times that do not shrink with a faster GPU: per
layer, per collective, per sequence, per step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import CountedShape, Model, TransformerShape, VitShape
from gpuledger.catalog.models.params import active_params, expert_params
from gpuledger.plan.memory.activations import activations
from gpuledger.plan.memory.facts import get_precision, overheads
from gpuledger.plan.memory.parts import cache_numbers_per_token, model_states
from gpuledger.plan.memory.weights import held, stages
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import Products, Way, all_reduce_s, gather_s, links, way
from gpuledger.training.flops import forward_flop, training_flop
from gpuledger.units import Unknown

TERA = 1e12
# Each layer adds up its attention and its MLP over the group.
COLLECTIVES_PER_LAYER = 2
# Weights stored narrower than the GPU computes in are widened: the product runs at the 16-bit peak.
WIDENED = "bf16"
# Weights, gradients and states are read, and all but the gradients written back.
STATE_PASSES = 2
# Training makes three products for each one forward, four with recomputation.
PASSES, PASSES_RECOMPUTED = 3, 4


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
        known = isinstance(shape, CountedShape)
        return Unknown(
            f"no formula for writing tokens with {model.name}" if known else f"{model.name} writes no tokens"
        )
    peak = compute_peak(gpu, setup.precision)
    bandwidth = gpu.figure("memory_bandwidth_bytes_per_s")
    if isinstance(peak, Unknown):
        return peak
    if isinstance(bandwidth, Unknown):
        return bandwidth
    bits = get_precision(setup.precision).bits
    own = held(model, stages(model, 1)[0], setup.tensor)
    experts = shape.moe_layers * expert_params(shape) / setup.tensor
    table = 0 if shape.tied_embeddings else shape.vocab * shape.hidden / setup.tensor  # only rows of it are read
    read = (own.matrices - shape.experts * experts) * bits / 8 + (own.rest - table) * max(bits, 16) / 8
    seen = shape.full_layers * context + shape.sliding_layers * min(context, shape.sliding_window or context)
    cache = setup.batch * seen * cache_numbers_per_token(shape, setup.tensor)
    products = 2 * active_params(shape) * setup.batch / setup.tensor
    # Multiply-adds of a head per token it looks at: query x key, weight x value; or the latent itself.
    score = 2 * (shape.mla.kv_lora_rank if shape.mla else shape.head_dim) + (shape.mla.qk_rope_dim if shape.mla else 0)
    pairs = 2 * setup.batch * seen * shape.heads * score / setup.tensor
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


@dataclass(frozen=True)
class Rated:
    """One micro-batch on one GPU at its rated speed: products, kept bytes (once more for each pass), layers run."""

    compute_s: float
    traffic_s: float
    layers: float


@dataclass(frozen=True)
class Work:
    """One micro-batch on one GPU: seconds by cause, before what overlaps is taken off."""

    compute_s: float
    traffic_s: float
    launch_s: float
    tensor_link_s: float

    @property
    def total_s(self) -> float:
        """Together."""
        return self.compute_s + self.traffic_s + self.launch_s + self.tensor_link_s


def rated(model: Model, gpu: Gpu, setup: Setup) -> Rated | Unknown:
    """One micro-batch, or one batch of prompts, on one GPU of a pipeline stage."""
    shape = model.shape
    if setup.mode == "train":
        flop = training_flop(shape, setup.micro_batch, _length(model, setup), causal=True, recompute=setup.recompute)
    else:
        flop = forward_flop(shape, setup.batch, _length(model, setup), causal=True)
    peak = compute_peak(gpu, setup.precision)
    plain = replace(setup, recompute=False, mode="train", sequence=setup.sequence, pipeline=1, count=setup.tensor)
    if setup.mode == "serve":
        plain = replace(plain, sequence=setup.context, micro_batch=setup.batch, lora_rank=0, precision="bf16")
    kept = activations(model, plain, stages(model, 1)[0])
    wide = gpu.figure("memory_bandwidth_bytes_per_s")
    if isinstance(flop, Unknown) or isinstance(peak, Unknown) or isinstance(kept, Unknown) or isinstance(wide, Unknown):
        return next(found for found in (flop, peak, kept, wide) if isinstance(found, Unknown))
    passes = PASSES_RECOMPUTED if setup.recompute else PASSES
    again = passes / PASSES if setup.mode == "train" else 1.0
    # Frozen weights have no gradient: with adapters one of three (or four) products is left out.
    trained = (passes - 1) / passes if setup.mode == "train" and setup.lora_rank else 1.0
    # Convolutions run long enough to hide their launches: in our recording ResNet-50 shows none.
    layers = shape.layers if isinstance(shape, TransformerShape | VitShape) else 0
    return Rated(
        compute_s=flop * trained / (setup.tensor * setup.pipeline) / peak,
        traffic_s=again * kept.kept_bytes / setup.pipeline / wide,
        layers=again * layers / setup.pipeline,
    )


def work(model: Model, gpu: Gpu, setup: Setup, facts: Products) -> Work | Unknown:
    """One micro-batch (or one batch of prompts) on one GPU of a pipeline stage."""
    ideal = rated(model, gpu, setup)
    if isinstance(ideal, Unknown):
        return ideal
    chunk = int(overheads().prefill_chunk_tokens.value)  # tokens of prompts read in one pass
    calls = max(1, ceil(setup.batch * setup.context / chunk)) if setup.mode == "serve" else 1
    return Work(
        compute_s=ideal.compute_s / facts.compute_ratio,
        traffic_s=ideal.traffic_s * facts.traffic_per_kept / facts.memory_ratio,
        launch_s=calls * ideal.layers * facts.per_layer_s,
        tensor_link_s=_tensor_link(model, gpu, setup),
    )


def _length(model: Model, setup: Setup) -> int | None:
    if not isinstance(model.shape, TransformerShape):
        return None
    return setup.sequence if setup.mode == "train" else setup.context


def _tensor_link(model: Model, gpu: Gpu, setup: Setup) -> float:
    """The all-reduces of a tensor parallel group: two per layer forward, two backward, two more when recomputed."""
    shape = model.shape
    if setup.tensor == 1 or not isinstance(shape, TransformerShape | VitShape):
        return 0.0
    tokens = setup.micro_batch * setup.sequence if setup.mode == "train" else setup.batch * setup.context
    if isinstance(shape, VitShape):
        tokens = (setup.micro_batch if setup.mode == "train" else setup.batch) * shape.tokens
    passes = 1 if setup.mode == "serve" else (3 if setup.recompute else 2)
    times = COLLECTIVES_PER_LAYER * passes * shape.layers / setup.pipeline
    return times * all_reduce_s(2.0 * tokens * shape.hidden, setup.tensor, way(gpu, setup.tensor))


def data_way(gpu: Gpu, setup: Setup, node_gbps: float | None, per_node: int | None = None) -> Way:
    """The way between copies of the model: within the node while all GPUs are in one. `per_node`: GPUs it has."""
    held = per_node or links().gpus_per_node
    in_node = max(1, min(setup.data, held // setup.tensor))
    return way(gpu, setup.data, across=setup.count > held, in_node=in_node, node_gbps=node_gbps)


def exchange_s(model: Model, setup: Setup, over: Way, micro_batches: int) -> float:
    """Bytes of weights and gradients between copies in one step, before overlap."""
    if setup.data == 1:
        return 0.0
    states = model_states(setup, held(model, stages(model, setup.pipeline)[0], setup.tensor))
    gradients = all_reduce_s(states.gradients, setup.data, over)
    if setup.zero < 3:
        return gradients
    # Weights are gathered forward and backward for each micro-batch, gradients scattered once each.
    once = 2 * gather_s(states.weights, setup.data, over) + gather_s(states.gradients, setup.data, over)
    return micro_batches * once


def optimizer_s(model: Model, gpu: Gpu, setup: Setup, memory_ratio: float) -> float:
    """One optimizer step: all states pass through memory."""
    states = model_states(setup, held(model, stages(model, setup.pipeline)[0], setup.tensor))
    optimizer = 0 if isinstance(states.optimizer, Unknown) else states.optimizer
    moved = STATE_PASSES * (states.weights + optimizer) + states.gradients
    sharded = moved / (setup.data if setup.zero else 1)
    return sharded / gpu.stated("memory_bandwidth_bytes_per_s") / memory_ratio
