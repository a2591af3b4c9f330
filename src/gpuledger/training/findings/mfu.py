"""How far is the loop from what loops reach, and which phase keeps it there?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import facts, finding, topic
from gpuledger.training.meter.observed import Observed
from gpuledger.training.mfu import reference_peak
from gpuledger.units import Unknown

CHANGE = """
# Where the time goes within the longest phase, kernel by kernel:
with torch.profiler.profile(record_shapes=True) as profiler:
    train_step(next(iter(loader)))
print(profiler.key_averages().table(sort_by="self_device_time_total", row_limit=20))
"""


@topic("mfu")
def below_target(seen: Observed) -> MeasuredFinding | None:
    """MFU below what is usual; utilization alone would not show it."""
    known, gpu, work, step = facts("mfu"), seen.place.gpu, seen.work, seen.step
    if not isinstance(gpu, Gpu) or isinstance(work, Unknown) or isinstance(step, Unknown) or not step.mean:
        return None
    peak = reference_peak(gpu)
    mfu = peak.share_pct(work.model_flop / step.mean, 1)
    if isinstance(mfu, Unknown):
        return None
    if mfu >= known["transformer_low_pct"]:
        return None
    longest = max(seen.phases_s, key=lambda p: seen.phases_s[p])
    return finding(
        "mfu",
        "profile",
        "MFU is below what such loops reach",
        f"MFU {mfu:.1f} % of the {peak.words} ({known['source']}); the longest phase is {longest}, "
        f"{100 * seen.share(longest):.0f} % of the step",
        CHANGE,
        (0.0, 0.0, 0.0),
        "a profile saves nothing by itself",
        mfu_pct=mfu,
    )
