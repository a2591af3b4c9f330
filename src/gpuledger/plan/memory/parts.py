"""How many bytes does one GPU need to run this, part by part?"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gpuledger.catalog.models import CountedShape, Model, TransformerShape, VitShape
from gpuledger.plan.memory.activations import Activations, activations
from gpuledger.plan.memory.facts import FP32_BITS, get_optimizer, get_precision, get_scheme, overheads
from gpuledger.plan.memory.weights import Held, Stage, held, stages
from gpuledger.plan.setup import Setup
from gpuledger.plan.tracing import denoised, keeps_traced, served_pass, traced_step
from gpuledger.training.flops import unit_of
from gpuledger.units import Unknown

# Embeddings, norms and routers are left in 16 bits where the matrices are quantized.
LEAST_REST_BITS = 16.0
# A quantized model still computes in 16 bits.
LEAST_WORK_BITS = 16.0
FP32_BYTES = 4
# FSDP gathers the next unit while one computes.
UNITS_GATHERED = 2


@dataclass(frozen=True)
class Memory:
    """Bytes of the fullest GPU by part; an unknown part is named with the reason and adds nothing."""

    parts: dict[str, int]
    not_known: dict[str, str]

    @property
    def total_bytes(self) -> int:
        """The sum of the parts: a lower bound where some part is unknown."""
        return sum(self.parts.values())


def memory(model: Model, setup: Setup) -> Memory:
    """The need of the fullest GPU: with a pipeline, of the stage that needs most."""
    each = [stage_memory(model, setup, stage) for stage in stages(model, setup.pipeline)]
    return max(each, key=lambda need: need.total_bytes)


def stage_memory(model: Model, setup: Setup, stage: Stage) -> Memory:
    """The need of one GPU of one stage."""
    own = held(model, stage, setup.tensor)
    parts, missing = (
        _training(model, setup, stage, own) if setup.mode == "train" else _serving(model, setup, stage, own)
    )
    facts = overheads()
    moving = sum(parts.get(name, 0) for name in ("activations", "working"))
    fixed = facts.context_bytes.value + facts.workspace_bytes.value
    fixed += facts.collective_bytes.value if setup.count > 1 else 0
    parts["overhead"] = ceil(fixed + facts.fragmentation_ratio.value * moving)
    return Memory(parts, missing)


@dataclass(frozen=True)
class ModelStates:
    """Bytes of weights, gradients and optimizer before sharding, and of the pieces gathered at a time."""

    weights: int
    gradients: int
    optimizer: int | Unknown
    unit_weights: int | None
    unit_gradients: int | None


def model_states(setup: Setup, own: Held, *, casts: bool = True) -> ModelStates:
    """What training holds for its parameters on one unsharded GPU; `casts`: with the copies autocast makes."""
    precision, scheme = get_precision(setup.precision), get_scheme(setup.scheme)
    optimizer = get_optimizer(setup.optimizer)
    work = get_precision(precision.train_as).bits
    bits = {"work": work, "fp32": FP32_BITS, "none": 0.0}
    masters = bits[scheme.master] if work < FP32_BITS else 0.0  # fp32 weights are their own master
    copies = precision.train_copy_bits + (bits[scheme.copies] if work < FP32_BITS and casts else 0.0)
    per_weight = bits[scheme.weights]
    edges = own.edges
    if setup.lora_rank:
        trained, edges = setup.lora_rank * own.rank_one, setup.lora_rank * own.rank_one
        stored = get_precision(setup.frozen_precision).bits if setup.frozen_precision else work
        frozen = own.matrices * stored + (own.rest + own.frozen) * work
    else:
        trained, frozen = own.matrices + own.rest, own.frozen * work
    weights = _bytes(trained * per_weight + frozen + (0 if setup.lora_rank else own.matrices * copies))
    state_bits = bits[scheme.states] if optimizer.state_bits is None else optimizer.state_bits
    states: int | Unknown = _bytes(trained * (masters + optimizer.states * state_bits))
    if optimizer.factored:
        states = (
            _bytes(trained * masters + edges * state_bits)
            if edges is not None
            else Unknown("rows and columns of this model's convolutions are not counted")
        )
    ratio = own.unit / own.total if own.unit is not None and own.total else None
    return ModelStates(
        weights=weights,
        gradients=_bytes(trained * bits[scheme.gradients]),
        optimizer=states,
        unit_weights=None if ratio is None else ceil(UNITS_GATHERED * weights * ratio),
        unit_gradients=None if ratio is None else ceil(trained * bits[scheme.gradients] / 8 * ratio),
    )


def _training(model: Model, setup: Setup, stage: Stage, own: Held) -> tuple[dict[str, int], dict[str, str]]:
    traced = keeps_traced(model, setup)  # a trace has the copies among what it keeps
    states, missing = model_states(setup, own, casts=not traced), {}
    whole = states.optimizer
    weights = _shard(states.weights, setup.data if setup.zero >= 3 else 1)
    gradients = _shard(states.gradients, setup.data if setup.zero >= 2 else 1)
    parts = {"weights": weights, "gradients": gradients}
    if isinstance(whole, Unknown):
        missing["optimizer"] = whole.why
    else:
        parts["optimizer"] = _shard(whole, setup.data if setup.zero else 1)
    step = activations(model, setup, stage)
    if isinstance(step, Unknown):
        missing["activations"] = step.why
    else:
        parts["activations"], parts["working"] = step.kept_bytes, step.working_bytes
        if not setup.accumulate:
            parts["gradients"] = _gradients_at_peak(model, setup, gradients, step)
    # No more can be gathered than what the GPU does not hold already.
    if setup.zero >= 2 and setup.data > 1:
        if states.unit_weights is None or states.unit_gradients is None:
            missing["gathered"] = f"the pieces {model.name} is gathered in are unknown: it has no equal layers"
        else:
            parts["gathered"] = min(states.unit_weights, states.weights - weights)
            parts["gathered"] += min(states.unit_gradients, states.gradients - gradients)
    return parts, missing


def _gradients_at_peak(model: Model, setup: Setup, gradients: int, step: Activations) -> int:
    """Without accumulation gradients grow while activations shrink: what is there of them when most is held."""
    most = step.kept_bytes + step.working_bytes
    if keeps_traced(model, setup):  # the trace has the gradients it makes on the way within its peak
        freed = traced_step(model, setup)
        grown = 0 if isinstance(freed, Unknown) else freed.peak_bytes - most
        return max(0, min(gradients, max(grown, gradients - most)))
    return max(0, gradients - most)


def _serving(model: Model, setup: Setup, stage: Stage, own: Held) -> tuple[dict[str, int], dict[str, str]]:
    precision = get_precision(setup.precision)
    bits, rest = precision.bits, max(precision.bits, LEAST_REST_BITS)
    narrow = own.experts if precision.experts_only and own.experts else own.matrices
    weights = {"weights": _bytes((narrow + own.frozen) * bits + (own.matrices - narrow + own.rest) * rest)}
    if isinstance(model.shape, CountedShape):
        passed = _denoising(model, setup) if model.shape.denoising else _counted_serving(model, setup)
        return (weights, {"working": passed.why}) if isinstance(passed, Unknown) else ({**weights, **passed}, {})
    parts = {**weights, "cache": cache_bytes(model, setup, stage)}
    working = working_bytes(model, setup, stage)
    if isinstance(working, Unknown):
        return parts, {"working": working.why}
    return {**parts, "working": working}, {}


def _denoising(model: Model, setup: Setup) -> dict[str, int] | Unknown:
    """The larger of what a denoising step holds and what making pixels of latents does: one follows the other."""
    found = denoised(model, setup)
    return found if isinstance(found, Unknown) else {"working": max(one.working_bytes for one in found)}


def _counted_serving(model: Model, setup: Setup) -> dict[str, int] | Unknown:
    """The cache one sequence leaves, for each of them, and what a pass over as many prompts as go at a time holds."""
    chunk = int(overheads().prefill_chunk_tokens.value)
    text = unit_of(model.shape) == "token"
    rows = max(1, min(setup.batch, chunk // setup.context)) if text else setup.batch
    blocks = _shard(setup.context, setup.block_tokens) * setup.block_tokens
    context = blocks if setup.cache == "paged" and text else setup.context
    one, several = served_pass(model, 1, context), served_pass(model, rows, setup.context)
    if isinstance(one, Unknown):
        return one
    if isinstance(several, Unknown):
        return several
    narrower = get_precision(setup.cache_precision).bits / LEAST_WORK_BITS
    return {"cache": ceil(setup.batch * one.cache_bytes * narrower), "working": several.working_bytes}


def _bytes(bits: float) -> int:
    return ceil(bits / 8)


def _shard(whole: int, among: int) -> int:
    return -(-whole // among)


def cache_numbers_per_token(shape: TransformerShape, tensor: int) -> int:
    """Numbers one layer keeps of one token on one GPU; a latent is kept whole on each."""
    if shape.mla is not None:
        return shape.mla.kv_lora_rank + shape.mla.qk_rope_dim
    return 2 * max(1, shape.kv_heads // tensor) * shape.head_dim


def cache_bytes(model: Model, setup: Setup, stage: Stage) -> int:
    """Keys and values of all sequences of one copy on one GPU; a windowed layer keeps its window only."""
    shape = model.shape
    if not isinstance(shape, TransformerShape):
        return 0
    windowed = shape.sliding_layers * stage.layers // shape.layers  # rounded down: a stage may have more full layers
    whole, window = setup.context, min(setup.context, shape.sliding_window or setup.context)
    if setup.cache == "paged":  # whole blocks; a window touches one more than it fills
        block = setup.block_tokens
        whole = _shard(whole, block) * block
        window = min(whole, (_shard(window, block) + 1) * block)
    seen = (stage.layers - windowed) * whole + windowed * window
    numbers = setup.batch * seen * cache_numbers_per_token(shape, setup.tensor)
    return ceil(numbers * get_precision(setup.cache_precision).bits / 8)


def working_bytes(model: Model, setup: Setup, stage: Stage) -> int | Unknown:
    """What one forward pass holds: the widest layer of the tokens in flight, and the logits of each sequence."""
    shape = model.shape
    work = max(get_precision(setup.precision).bits, LEAST_WORK_BITS) / 8
    if isinstance(shape, VitShape):
        per_token = work * (2 * shape.mlp_hidden / setup.tensor + 2 * shape.hidden)
        return ceil(setup.batch * shape.tokens * per_token)
    if not isinstance(shape, TransformerShape):
        return Unknown(f"no closed form for what a forward pass of {model.name} holds")
    per_token = work * _widest(shape) / setup.tensor + (2 * work + FP32_BYTES) * shape.hidden
    logits = setup.batch * -(-shape.vocab // setup.tensor) * (work + FP32_BYTES) if stage.last else 0
    # A long prompt comes in pieces; every sequence adds one token when decoding.
    tokens = max(min(int(overheads().prefill_chunk_tokens.value), setup.batch * setup.context), setup.batch)
    return ceil(tokens * per_token + logits)


def _widest(s: TransformerShape) -> int:
    """Numbers per token in the widest part of a layer: the MLP, the experts of a token, or the attention."""
    each = 3 if s.mlp_gated else 2
    routed = s.experts_per_token * (each * s.expert_hidden + 2 * s.hidden) + each * s.expert_hidden * s.shared_experts
    if s.mla is None:
        attention = s.head_dim * (2 * s.heads + 2 * s.kv_heads)
    else:
        attention = s.heads * (2 * s.mla.qk_dim + 2 * s.mla.v_dim)
    return max(each * s.mlp_hidden, routed if s.moe_layers else 0, attention)
