"""Would more loader processes keep the GPU fed?"""

from __future__ import annotations

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import Effort, Reason, advise, python
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


@advise(
    "num-workers",
    title="Load data in parallel: num_workers",
    lever="throughput",
    effort=Effort("small", 1),
    change=CHANGE,
)
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job that waits for its input."""
    sign = waits_for_input(case, limits)
    return Reason(sign) if sign else None
