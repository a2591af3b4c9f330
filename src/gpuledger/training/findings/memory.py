"""Is memory unused, held in pieces, saved by doing work twice, or full?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings import COMPUTE, NO_TIME, TOPICS, Facts, by_speedup, finding, share_of, speedups
from gpuledger.training.meter.observed import MemoryFacts, Observed
from gpuledger.units import GIB, Unknown


@TOPICS.register("batch")
def headroom(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """Most of the card unused while the device is far from its peak."""
    memory, gpu = seen.memory, seen.place.gpu
    if isinstance(memory, Unknown) or not isinstance(gpu, Gpu) or not memory.total_bytes:
        return None
    free, hfu = 1 - memory.reserved_bytes / memory.total_bytes, _hfu_pct(seen, gpu)
    if free < known["free_from_ratio"] or hfu is None or hfu >= known["mfu_below_pct"]:
        return None
    times = known["filled_ratio"] * memory.total_bytes / max(memory.reserved_bytes, 1)
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
    saved, figures = by_speedup(seen.share(*COMPUTE), speedups(known)), {"free_ratio": free, "hfu_pct": hfu}
    change = known["change"].format(times=times, batch=batch)
    return finding(known, why, saved, figures | {"fits_times": times}, change=change)


def _hfu_pct(seen: Observed, gpu: Gpu) -> float | None:
    peak = gpu.peak(gpu.reference_precision())
    if isinstance(seen.work, Unknown) or isinstance(seen.step, Unknown) or isinstance(peak, Unknown):
        return None
    return 100 * seen.work.hardware_flop / seen.step.mean / (peak * 1e12) if seen.step.mean else None


@TOPICS.register("out_of_memory")
def full(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """The run ended for lack of memory, or torch had to free memory and ask again."""
    memory, ended = seen.memory, seen.ended == "out_of_memory"
    retries = memory.retries if isinstance(memory, MemoryFacts) else 0
    if not ended and not retries:
        return None
    peak = "" if isinstance(memory, Unknown) else f"; at most {memory.allocated_bytes / GIB:.1f} GiB were in use"
    why = f"the run {seen.state}{peak}" if ended else f"torch ran short of memory {retries} times and had to ask again"
    return finding(known, why, NO_TIME, {"retries": retries})


@TOPICS.register("fragmentation")
def held(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """Much more reserved than was ever allocated."""
    memory = seen.memory
    if isinstance(memory, Unknown) or not memory.total_bytes:
        return None
    unused = (memory.reserved_bytes - memory.allocated_bytes) / memory.total_bytes
    if unused < known["unused_from_ratio"]:
        return None
    why = (
        f"torch holds {memory.reserved_bytes / GIB:.1f} GiB, of which at most {memory.allocated_bytes / GIB:.1f} were "
        f"in use: {100 * unused:.0f} % of the card"
    )
    return finding(known, why, NO_TIME, {"unused_ratio": unused})


@TOPICS.register("recomputation")
def twice(seen: Observed, known: Facts) -> MeasuredFinding | None:
    """The forward pass is done again although there is memory to keep it."""
    work, memory = seen.work, seen.memory
    if isinstance(work, Unknown) or work.recompute_ratio < known["recompute_from_ratio"] or isinstance(memory, Unknown):
        return None
    free = 1 - memory.reserved_bytes / memory.total_bytes if memory.total_bytes else 0.0
    if free < known["room_from_ratio"]:
        return None
    again = work.recompute_ratio * work.forward_flop
    why = (
        f"the backward pass does {100 * work.recompute_ratio:.0f} % of the forward pass again, and {100 * free:.0f} % "
        "of the card is free"
    )
    saved = share_of(seen.share(*COMPUTE) * min(again / work.hardware_flop, 1.0), known)
    return finding(known, why, saved, {"recompute_ratio": work.recompute_ratio, "free_ratio": free})
