"""How many sequences does a server with a paged cache hold at a time, as vLLM and SGLang do?

Such a server takes a share of the card at its start. What weights and one forward pass leave of it becomes blocks of a
few tokens each; a sequence holds whole blocks, and a windowed layer only the blocks its window touches.

As vLLM has it: pool = memory x gpu_memory_utilization - weights - peak of one pass - what lies outside torch;
num_gpu_blocks = pool // block; block = 2 x block_size x key-value heads x width of a head x bytes x layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.memory.facts import capacity
from gpuledger.plan.memory.parts import Memory, memory
from gpuledger.plan.setup import Setup

MOST_SEQUENCES = 1 << 20


@dataclass(frozen=True)
class Paged:
    """The pool of one copy's fullest GPU, and how many sequences of the whole context it holds."""

    block_tokens: int
    memory_share: float
    pool_bytes: int
    sequence_bytes: int
    sequences: int
    asked: int
    block_bytes: int
    blocks: int
    tokens: int  # of the blocks; where layers have a window, of blocks that all layers hold


def room_bytes(gpu: Gpu, setup: Setup) -> int:
    """What a job may take of the card: all of it, or a paged server's share."""
    whole = capacity(gpu)[0]
    return int(whole * setup.memory_share) if is_paged(setup) else whole


def is_paged(setup: Setup) -> bool:
    """Whether keys and values rest in blocks."""
    return setup.mode == "serve" and setup.cache == "paged"


def paged(model: Model, gpu: Gpu, setup: Setup) -> Paged | None:
    """The pool under this setup; None where nothing is cached."""

    def need(batch: int) -> Memory:
        return memory(model, replace(setup, batch=batch))

    one = need(1)
    if not is_paged(setup) or not one.parts.get("cache"):
        return None
    room = room_bytes(gpu, setup)
    low, high = 0, 1
    while high < MOST_SEQUENCES and need(high).total_bytes <= room:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if need(middle).total_bytes <= room else (low, middle)
    at = need(max(1, low))
    pool = max(0, room - at.total_bytes + at.parts["cache"])
    block = memory(model, replace(setup, batch=1, context=setup.block_tokens)).parts["cache"]
    return Paged(
        block_tokens=setup.block_tokens,
        memory_share=setup.memory_share,
        block_bytes=block,
        blocks=pool // block,
        tokens=pool // block * setup.block_tokens,
        pool_bytes=pool,
        sequence_bytes=one.parts["cache"],
        sequences=low,
        asked=setup.batch,
    )
