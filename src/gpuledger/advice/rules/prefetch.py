"""Would more batches ready in advance even out the waits?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import waits_for_input

CHANGE = python("""
from torch.utils.data import DataLoader

# Each worker keeps this many batches ready (default 2): it hides batches that take longer than most.
loader = DataLoader(dataset, batch_size=batch_size, num_workers=8, prefetch_factor=4)
""")
SOURCE = "assumed: evens out slow batches, adds nothing where the loader is too slow on average"
GAIN = Gain("speedup", "assumed", SOURCE, (1.0, 1.05, 1.2))


@advise("prefetch", "Keep more batches ready: prefetch_factor", "throughput", Effort("small", 1), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job that waits for its input."""
    sign = waits_for_input(case, limits)
    return Reason(sign) if sign else None
