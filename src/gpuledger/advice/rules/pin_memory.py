"""Would copies from pinned memory shorten the wait for input?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, gb_per_s, python
from gpuledger.advice.signs import waits_for_input
from gpuledger.units import Unknown

CHANGE = python("""
from torch.utils.data import DataLoader

# Batches land in page-locked memory: the copy is faster and need not be waited for.
loader = DataLoader(dataset, batch_size=batch_size, num_workers=8, pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to("cuda", non_blocking=True)
    targets = targets.to("cuda", non_blocking=True)
""")
SOURCE = "assumed: pinned copies are faster and can overlap; small where little is copied"
GAIN = Gain("speedup", "assumed", SOURCE, (1.0, 1.03, 1.1))


@advise("pin-memory", "Copy from pinned memory: pin_memory", "throughput", Effort("small", 0.5), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job that waits for its input and copies enough of it to matter."""
    sign, copied = waits_for_input(case, limits), case.demand.pcie_rx_bytes_per_s
    if not sign:
        return None
    if isinstance(copied, Unknown) or copied < limits.traffic.pinned_from_bytes_per_s:
        return None
    return Reason(f"{sign}; {gb_per_s(copied)} are copied to the GPU")
