"""Would a slice of the GPU be enough?"""

from gpuledger.advice.rule import SHARE_A_GPU, Case, Effort, Gain, Limits, Range, Reason, advise, bash, pct
from gpuledger.advice.signs import room_to_share
from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.mig import smallest_slice
from gpuledger.units import Unknown

CHANGE = bash("""
# Multi-Instance GPU (MIG): slices with memory and SMs of their own. Stop all work on the GPU first.
sudo nvidia-smi -i 0 -mig 1
sudo nvidia-smi mig -i 0 -lgip
sudo nvidia-smi mig -i 0 -cgi {{profiles}} -C
nvidia-smi -L
""")
GAIN = Gain("computed", "measured", "the busy and memory shares of this case against the slices of its GPU")


@advise("mig", "Cut the GPU into slices: MIG", "hours", Effort("medium", 16), CHANGE, GAIN, exclusive=SHARE_A_GPU)
def when(case: Case, limits: Limits) -> Reason | None:
    """Idle-heavy, on a GPU that supports MIG, with a slice that holds what the case needs."""
    sign, memory = room_to_share(case, limits), case.demand.memory_max_ratio
    if not sign or not isinstance(case.gpu, Gpu) or isinstance(memory, Unknown):
        return None
    fulls = limits.fill.cautious_ratio, limits.fill.middle_ratio, limits.fill.bold_ratio
    parts = [smallest_slice(case.gpu.key, case.busy_ratio / full, memory) for full in fulls]
    low, middle, high = (0.0 if isinstance(s, Unknown) else 1 - s.compute_ratio for s in parts)
    chosen = parts[1]
    if isinstance(chosen, Unknown):
        return None
    name = chosen.name or f"{chosen.compute}g"
    held = f"a slice {name} holds it: {pct(chosen.compute_ratio)} of the SMs, {pct(chosen.memory_ratio)} of the memory"
    copies = ",".join([name] * int(1 / max(chosen.compute_ratio, chosen.memory_ratio)))
    return Reason(f"{sign}; {held}", Range.of(low, middle, high), fills={"profiles": copies})
