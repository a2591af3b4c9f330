"""How long does a GPU work on a training micro-batch, or on reading prompts?

The products at the measured share of the peak; beside them the traffic of all that is no product (norms, activations,
casts), which grows with the tensors a step keeps; and a time for each layer that does not shrink with the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import CnnShape, Model, TransformerShape, VitShape
from gpuledger.plan.links import Way, all_reduce_s, gather_s, gpus_per_node, way
from gpuledger.plan.memory.activations import activations
from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.memory.parts import model_states
from gpuledger.plan.memory.weights import held, stages
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.decode import COLLECTIVES_PER_LAYER, compute_peak
from gpuledger.plan.speed.facts import Products
from gpuledger.training.flops import forward_flop, training_flop
from gpuledger.units import Unknown

# Weights, gradients and states are read, and all but the gradients written back.
STATE_PASSES = 2
# Training makes three products for each one forward, four with recomputation.
PASSES, PASSES_RECOMPUTED = 3, 4


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
    for found in (flop, peak, kept):
        if isinstance(found, Unknown):
            return found
    assert not isinstance(flop, Unknown)
    assert not isinstance(peak, Unknown)
    assert not isinstance(kept, Unknown)
    again = PASSES_RECOMPUTED / PASSES if setup.mode == "train" and setup.recompute else 1.0
    # Convolutions run long enough to hide their launches: in our recording ResNet-50 shows none.
    layers = shape.layers if isinstance(shape, TransformerShape | VitShape) else 0
    return Rated(
        compute_s=flop * _trained_share(setup) / (setup.tensor * setup.pipeline) / peak,
        traffic_s=again * kept.kept_bytes / setup.pipeline / gpu.memory_bandwidth_bytes_per_s.value,
        layers=again * layers / setup.pipeline,
    )


def _trained_share(setup: Setup) -> float:
    """Frozen weights have no gradient: with adapters one of three (or four) products is left out."""
    if setup.mode == "serve" or not setup.lora_rank:
        return 1.0
    passes = PASSES_RECOMPUTED if setup.recompute else PASSES
    return (passes - 1) / passes


def work(model: Model, gpu: Gpu, setup: Setup, facts: Products) -> Work | Unknown:
    """One micro-batch (or one batch of prompts) on one GPU of a pipeline stage."""
    ideal = rated(model, gpu, setup)
    if isinstance(ideal, Unknown):
        return ideal
    calls = max(1, ceil(setup.batch * setup.context / chunk())) if setup.mode == "serve" else 1
    return Work(
        compute_s=ideal.compute_s / facts.compute_ratio,
        traffic_s=ideal.traffic_s * facts.traffic_per_kept / facts.memory_ratio,
        launch_s=calls * ideal.layers * facts.per_layer_s,
        tensor_link_s=_tensor_link(model, gpu, setup),
    )


def chunk() -> int:
    """Tokens of prompts read in one pass."""
    return int(overheads().prefill_chunk_tokens.value)


def _length(model: Model, setup: Setup) -> int | None:
    if not isinstance(model.shape, TransformerShape):
        return None
    return setup.sequence if setup.mode == "train" else setup.context


def _tensor_link(model: Model, gpu: Gpu, setup: Setup) -> float:
    """The all-reduces of a tensor parallel group: two a layer forward, two backward, two more when recomputed."""
    shape = model.shape
    if setup.tensor == 1 or isinstance(shape, CnnShape) or not isinstance(shape, TransformerShape | VitShape):
        return 0.0
    tokens = setup.micro_batch * setup.sequence if setup.mode == "train" else setup.batch * setup.context
    if isinstance(shape, VitShape):
        tokens = (setup.micro_batch if setup.mode == "train" else setup.batch) * shape.tokens
    passes = 1 if setup.mode == "serve" else (3 if setup.recompute else 2)
    times = COLLECTIVES_PER_LAYER * passes * shape.layers / setup.pipeline
    return times * all_reduce_s(2.0 * tokens * shape.hidden, setup.tensor, way(gpu, setup.tensor))


def data_way(gpu: Gpu, setup: Setup, node_gbps: float | None, per_node: int | None = None) -> Way:
    """The way between copies of the model: within the node while all GPUs are in one. `per_node`: GPUs it has."""
    held = per_node or gpus_per_node()
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
    return sharded / gpu.memory_bandwidth_bytes_per_s.value / memory_ratio
