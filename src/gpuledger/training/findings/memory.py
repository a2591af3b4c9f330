"""Is memory held without use, is work done twice to save it, or did it run out?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import COMPUTE, facts, finding, share_of, topic
from gpuledger.training.meter.observed import MemoryFacts, Observed
from gpuledger.units import GIB, Unknown

FRAGMENTED = """
# Before torch is imported; segments then grow in place instead of being cut into pieces that fit nothing.
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
"""
RECOMPUTED = """
model.gradient_checkpointing_disable()      # or checkpoint only every second layer
"""
FULL = """
# Half the batch, twice as often: the same update, half the activations.
for i, batch in enumerate(loader):                      # with half the batch size
    loss = train_step(batch) / 2
    loss.backward()
    if i % 2:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
"""


@topic("out_of_memory")
def full(seen: Observed) -> MeasuredFinding | None:
    """The run ended for want of memory, or torch had to give back and ask again."""
    memory = seen.memory
    retries = memory.retries if isinstance(memory, MemoryFacts) else 0
    ended = seen.state.startswith("ran out of memory")
    if not ended and not retries:
        return None
    peak = "" if isinstance(memory, Unknown) else f"; at most {memory.allocated_bytes / GIB:.1f} GiB were in use"
    why = f"the run {seen.state}{peak}" if ended else f"torch ran short of memory {retries} times and had to ask again"
    return finding(
        "out_of_memory", "gradient-accumulation", "The memory is full", why, FULL, (0.0, 0.0, 0.0),
        "it lets the run go on", retries=retries,
    )  # fmt: skip


@topic("fragmentation")
def held(seen: Observed) -> MeasuredFinding | None:
    """Much more reserved than was ever allocated."""
    known, memory = facts("memory"), seen.memory
    if isinstance(memory, Unknown) or not memory.total_bytes:
        return None
    unused = (memory.reserved_bytes - memory.allocated_bytes) / memory.total_bytes
    if unused < known["fragmented_from_ratio"]:
        return None
    return finding(
        "fragmentation",
        "larger-batch",
        "Memory is held in pieces nobody can use",
        f"torch holds {memory.reserved_bytes / GIB:.1f} GiB, of which at most {memory.allocated_bytes / GIB:.1f} were "
        f"in use: {100 * unused:.0f} % of the card",
        FRAGMENTED,
        (0.0, 0.0, 0.0),
        "it makes room for a larger batch",
        unused_ratio=unused,
    )


@topic("recomputation")
def twice(seen: Observed) -> MeasuredFinding | None:
    """The forward pass is done again although there is memory to keep it."""
    known, work, memory = facts("memory"), seen.work, seen.memory
    if isinstance(work, Unknown) or work.recompute_ratio < known["recompute_from_ratio"] or isinstance(memory, Unknown):
        return None
    free = 1 - memory.reserved_bytes / memory.total_bytes if memory.total_bytes else 0.0
    if free < known["room_from_ratio"]:
        return None
    again = work.recompute_ratio * work.forward_flop
    share = seen.share(*COMPUTE) * min(again / work.hardware_flop, 1.0)
    return finding(
        "recomputation",
        "fused-kernels",
        "The forward pass is done twice, with memory to spare",
        f"the backward pass does {100 * work.recompute_ratio:.0f} % of the forward pass again, and {100 * free:.0f} % "
        "of the card is free",
        RECOMPUTED,
        share_of(share, known),
        known["source"],
        recompute_ratio=work.recompute_ratio,
        free_ratio=free,
    )
