"""Is there memory for a larger batch, and would it help?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import COMPUTE, by_speedup, facts, finding, topic
from gpuledger.training.meter.observed import Observed
from gpuledger.units import GIB, Unknown

CHANGE = """
# {times:.1f} times the batch fits if all memory grows with it; weights do not, so more may. Scale the learning rate
# with it. To keep the effective batch of a run that accumulates gradients, accumulate over fewer batches.
loader = DataLoader(dataset, batch_size={batch}, shuffle=True)
"""


@topic("batch")
def headroom(seen: Observed) -> MeasuredFinding | None:
    """Most of the card unused while the device is far from its peak."""
    known, memory, gpu = facts("batch"), seen.memory, seen.place.gpu
    if isinstance(memory, Unknown) or not isinstance(gpu, Gpu) or not memory.total_bytes:
        return None
    free = 1 - memory.reserved_bytes / memory.total_bytes
    hfu = _hfu_pct(seen, gpu)
    if free < known["free_from_ratio"] or hfu is None or hfu >= known["mfu_below_pct"]:
        return None
    # A tenth of the card stays free: torch keeps more than it uses.
    times = 0.9 * memory.total_bytes / max(memory.reserved_bytes, 1)
    now = None if isinstance(seen.samples_per_step, Unknown) else round(seen.samples_per_step)
    batch = "2 * batch_size"
    if now:
        fits = int(now * times)
        if fits <= now:
            return None
        batch = f"{fits // 8 * 8 if fits // 8 * 8 > now else fits}"
    return finding(
        "batch",
        "larger-batch",
        "Most of the memory is never used",
        f"at most {memory.reserved_bytes / GIB:.1f} of {memory.total_bytes / GIB:.0f} GiB was held, at {hfu:.0f} % of "
        "the dense peak; without trying it is not known how the rate follows the batch",
        CHANGE.format(times=times, batch=batch),
        by_speedup(seen.share(*COMPUTE), known["speedup_low"], known["speedup_middle"], known["speedup_high"]),
        known["source"],
        free_ratio=free,
        fits_times=times,
        hfu_pct=hfu,
    )


def _hfu_pct(seen: Observed, gpu: Gpu) -> float | None:
    peak = gpu.peak(gpu.reference_precision())
    if isinstance(seen.work, Unknown) or isinstance(seen.step, Unknown) or isinstance(peak, Unknown):
        return None
    return 100 * seen.work.hardware_flop / seen.step.mean / (peak * 1e12) if seen.step.mean else None
