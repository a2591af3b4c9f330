"""Is the step made of many small kernels?"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import COMPUTE, by_speedup, facts, finding, share_of, topic
from gpuledger.training.meter.observed import Observed
from gpuledger.units import Unknown

COMPILE = """
model = torch.compile(model)        # fuses what lies between the products; the first steps are slow
"""
FUSED = """
optimizer = torch.optim.{optimizer}(model.parameters(), lr=lr, fused=True)
"""


@topic("fusion")
def small_kernels(seen: Observed) -> MeasuredFinding | None:
    """Kernels that take a few microseconds each, in a model that is not compiled."""
    known, work = facts("fusion"), seen.work
    if isinstance(work, Unknown) or seen.compiled or seen.place.kind != "cuda" or work.kernels < known["kernels_from"]:
        return None
    share = seen.share(*COMPUTE, "optimizer")
    mean_us = 1e6 * share * sum(seen.phases_s.values()) / work.kernels
    if mean_us >= known["kernel_below_us"]:
        return None
    return finding(
        "fusion",
        "torch-compile",
        "The step is made of many small kernels",
        f"{work.kernels:,} operations a step of {mean_us:.0f} us each on the device, and the model is not compiled",
        COMPILE,
        by_speedup(seen.share(*COMPUTE), known["speedup_low"], known["speedup_middle"], known["speedup_high"]),
        known["source"],
        kernels=work.kernels,
        kernel_us=mean_us,
        compute_ratio=seen.share(*COMPUTE),
    )


@topic("optimizer")
def plain_update(seen: Observed) -> MeasuredFinding | None:
    """An optimizer that could be fused and is not."""
    known, share = facts("optimizer"), seen.share("optimizer")
    if seen.fused_optimizer is not False or share < known["share_from_ratio"]:
        return None
    ms = 1000 * seen.phases_s["optimizer"]
    return finding(
        "optimizer",
        "fused-kernels",
        "The update is not fused",
        f"{seen.optimizer} takes {ms:.2f} ms of each step ({100 * share:.0f} %) without fused=True",
        FUSED.format(optimizer=seen.optimizer),
        share_of(share, known),
        known["source"],
        optimizer_ms=ms,
        optimizer_ratio=share,
    )
