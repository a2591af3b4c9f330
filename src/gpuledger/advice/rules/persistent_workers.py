"""Are loader processes started anew for every epoch?"""

from __future__ import annotations

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import Effort, Reason, advise, python
from gpuledger.advice.signs import waits_for_input

CHANGE = python("""
from torch.utils.data import DataLoader

# Keeps the workers and their opened files from one epoch to the next.
loader = DataLoader(dataset, batch_size=batch_size, num_workers=8, persistent_workers=True)
""")


@advise(
    "persistent-workers",
    title="Keep loader processes between epochs: persistent_workers",
    lever="throughput",
    effort=Effort("small", 0.5),
    change=CHANGE,
)
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job that waits for its input."""
    sign = waits_for_input(case, limits)
    return Reason(f"{sign}; short epochs lose most to starting workers") if sign else None
