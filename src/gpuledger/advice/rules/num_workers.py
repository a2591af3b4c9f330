"""Would more loader processes keep the GPU fed?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import waits_for_input

CHANGE = python("""
import os
from torch.utils.data import DataLoader

# num_workers=0, the default, prepares every batch in the training process while the GPU waits.
loader = DataLoader(
    dataset,
    batch_size=batch_size,
    shuffle=True,
    num_workers=min(16, len(os.sched_getaffinity(0))),  # then halve or double it, and keep what is fastest
)
""")
SOURCE = (
    "high end measured: the same language model on one H200 with 150 ms waits 158, without 395 TFLOP/s (2.5x): the "
    "most a loader that keeps up can give; low and middle assumed"
)
GAIN = Gain("speedup", "assumed", SOURCE, (1.1, 1.5, 2.5))


@advise("num-workers", "Load data in parallel: num_workers", "throughput", Effort("small", 1), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job that waits for its input."""
    sign = waits_for_input(case, limits)
    return Reason(sign) if sign else None
