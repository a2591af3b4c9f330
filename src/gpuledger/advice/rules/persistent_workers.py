"""Are loader processes started anew for every epoch?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import waits_for_input

CHANGE = python("""
from torch.utils.data import DataLoader

# Keeps the workers and their opened files from one epoch to the next.
loader = DataLoader(dataset, batch_size=batch_size, num_workers=8, persistent_workers=True)
""")
SOURCE = "assumed: saves the start of the workers once per epoch, so short epochs gain most"
GAIN = Gain("speedup", "assumed", SOURCE, (1.0, 1.02, 1.1))


@advise(
    "persistent-workers", "Keep loader processes between epochs: persistent_workers", "throughput",
    Effort("small", 0.5), CHANGE, GAIN,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job that waits for its input."""
    sign = waits_for_input(case, limits)
    return Reason(f"{sign}; short epochs lose most to starting workers") if sign else None
