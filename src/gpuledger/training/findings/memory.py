"""Is memory unused, held in pieces, saved by doing work twice, or full?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings import COMPUTE, NO_TIME, TOPICS, by_speedup, facts, finding, share_of, speedups
from gpuledger.training.meter.observed import MemoryFacts, Observed
from gpuledger.units import GIB, Unknown

# The rest of the card stays free: torch reserves more than it allocates.
FILLED_RATIO = 0.9
LARGER = """
# {times:.1f} times the batch fits if all memory grows with it; weights do not, so more may. Scale the learning rate
# with it. To keep the effective batch of a run that accumulates gradients, accumulate over fewer batches.
loader = DataLoader(dataset, batch_size={batch}, shuffle=True)
"""
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


@TOPICS.register("batch")
def headroom(seen: Observed) -> MeasuredFinding | None:
    """Most of the card unused while the device is far from its peak."""
    known, memory, gpu = facts("batch"), seen.memory, seen.place.gpu
    if isinstance(memory, Unknown) or not isinstance(gpu, Gpu) or not memory.total_bytes:
        return None
    free, hfu = 1 - memory.reserved_bytes / memory.total_bytes, _hfu_pct(seen, gpu)
    if free < known["free_from_ratio"] or hfu is None or hfu >= known["mfu_below_pct"]:
        return None
    times = FILLED_RATIO * memory.total_bytes / max(memory.reserved_bytes, 1)
    now = None if isinstance(seen.samples_per_step, Unknown) else round(seen.samples_per_step)
    batch = "2 * batch_size"
    if now:
        fits = int(now * times)
        if fits <= now:
            return None
        batch = f"{fits // 8 * 8 if fits // 8 * 8 > now else fits}"
    why = (
        f"at most {memory.reserved_bytes / GIB:.1f} of {memory.total_bytes / GIB:.0f} GiB was held, at {hfu:.0f} % of "
        "the dense peak; how the rate follows the batch is unknown until it is tried"
    )
    return finding(
        "batch", "larger-batch", "Most of the memory is never used", why, LARGER.format(times=times, batch=batch),
        by_speedup(seen.share(*COMPUTE), speedups(known)), known["source"],
        free_ratio=free, fits_times=times, hfu_pct=hfu,
    )  # fmt: skip


def _hfu_pct(seen: Observed, gpu: Gpu) -> float | None:
    peak = gpu.peak(gpu.reference_precision())
    if isinstance(seen.work, Unknown) or isinstance(seen.step, Unknown) or isinstance(peak, Unknown):
        return None
    return 100 * seen.work.hardware_flop / seen.step.mean / (peak * 1e12) if seen.step.mean else None


@TOPICS.register("out_of_memory")
def full(seen: Observed) -> MeasuredFinding | None:
    """The run ended for lack of memory, or torch had to free memory and ask again."""
    memory, ended = seen.memory, seen.ended == "out_of_memory"
    retries = memory.retries if isinstance(memory, MemoryFacts) else 0
    if not ended and not retries:
        return None
    peak = "" if isinstance(memory, Unknown) else f"; at most {memory.allocated_bytes / GIB:.1f} GiB were in use"
    why = f"the run {seen.state}{peak}" if ended else f"torch ran short of memory {retries} times and had to ask again"
    return finding(
        "out_of_memory", "gradient-accumulation", "The memory is full", why, FULL, NO_TIME, "it lets the run go on",
        retries=retries,
    )  # fmt: skip


@TOPICS.register("fragmentation")
def held(seen: Observed) -> MeasuredFinding | None:
    """Much more reserved than was ever allocated."""
    memory = seen.memory
    if isinstance(memory, Unknown) or not memory.total_bytes:
        return None
    unused = (memory.reserved_bytes - memory.allocated_bytes) / memory.total_bytes
    if unused < facts("memory")["fragmented_from_ratio"]:
        return None
    why = (
        f"torch holds {memory.reserved_bytes / GIB:.1f} GiB, of which at most {memory.allocated_bytes / GIB:.1f} were "
        f"in use: {100 * unused:.0f} % of the card"
    )
    return finding(
        "fragmentation", "larger-batch", "Memory is held in unusable pieces", why, FRAGMENTED, NO_TIME,
        "it makes room for a larger batch", unused_ratio=unused,
    )  # fmt: skip


@TOPICS.register("recomputation")
def twice(seen: Observed) -> MeasuredFinding | None:
    """The forward pass is done again although there is memory to keep it."""
    known, work, memory = facts("memory"), seen.work, seen.memory
    if isinstance(work, Unknown) or work.recompute_ratio < known["recompute_from_ratio"] or isinstance(memory, Unknown):
        return None
    free = 1 - memory.reserved_bytes / memory.total_bytes if memory.total_bytes else 0.0
    if free < known["room_from_ratio"]:
        return None
    again = work.recompute_ratio * work.forward_flop
    why = f"the backward pass does {100 * work.recompute_ratio:.0f} % of the forward pass again"
    return finding(
        "recomputation", "fused-kernels", "The forward pass is done twice, with memory to spare",
        f"{why}, and {100 * free:.0f} % of the card is free", RECOMPUTED,
        share_of(seen.share(*COMPUTE) * min(again / work.hardware_flop, 1.0), known), known["source"],
        recompute_ratio=work.recompute_ratio, free_ratio=free,
    )  # fmt: skip
