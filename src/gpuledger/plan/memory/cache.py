"""What does serving hold beside the weights: keys and values of every token so far, and the tokens in flight?"""

from __future__ import annotations

from math import ceil

from gpuledger.catalog.models import Model, TransformerShape, VitShape
from gpuledger.plan.memory.facts import get_precision, overheads
from gpuledger.plan.memory.weights import Stage
from gpuledger.plan.setup import Setup
from gpuledger.units import Unknown

FP32_BYTES = 4
# A quantised model still computes in 16 bits.
LEAST_WORK_BITS = 16.0


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
    seen = stage.layers * setup.context
    if shape.sliding_window is not None:
        seen -= windowed * (setup.context - min(setup.context, shape.sliding_window))
    numbers = setup.batch * seen * cache_numbers_per_token(shape, setup.tensor)
    return ceil(numbers * get_precision(setup.cache_precision).bits / 8)


def tokens_in_flight(setup: Setup) -> int:
    """Tokens one forward pass reads at most: a long prompt comes in pieces, every sequence adds one when decoding."""
    return max(min(int(overheads().prefill_chunk_tokens.value), setup.batch * setup.context), setup.batch)


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
    return ceil(tokens_in_flight(setup) * per_token + logits)


def _widest(s: TransformerShape) -> int:
    """Numbers per token in the widest part of a layer: the MLP, the experts of a token, or the attention."""
    each = 3 if s.mlp_gated else 2
    routed = s.experts_per_token * (each * s.expert_hidden + 2 * s.hidden) + each * s.expert_hidden * s.shared_experts
    if s.mla is None:
        attention = s.head_dim * (2 * s.heads + 2 * s.kv_heads)
    else:
        attention = s.heads * (2 * s.mla.qk_dim + 2 * s.mla.v_dim)
    return max(each * s.mlp_hidden, routed if s.moe_layers else 0, attention)
