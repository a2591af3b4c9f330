"""Would copying the next batch while this one is computed hide the copies?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, gb_per_s, python
from gpuledger.advice.signs import steady_partial, waits_for_input
from gpuledger.units import Unknown

CHANGE = python("""
import torch

copies = torch.cuda.Stream()


def ahead(loader):
    # The host-to-device (H2D) copy of the next batch runs while this one is computed; needs pin_memory=True.
    waiting = None
    for batch in loader:
        with torch.cuda.stream(copies):
            moved = [part.to("cuda", non_blocking=True) for part in batch]
        if waiting is not None:
            yield waiting
        torch.cuda.current_stream().wait_stream(copies)
        for part in moved:
            part.record_stream(torch.cuda.current_stream())
        waiting = moved
    if waiting is not None:
        yield waiting
""")
GAIN = Gain("speedup", "assumed", "assumed: at most the time the copies take", (1.0, 1.05, 1.25))


@advise(
    "h2d-overlap", "Overlap copies to the GPU with compute: non_blocking, a stream of its own", "throughput",
    Effort("small", 4), CHANGE, GAIN,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """A job with gaps or at 70 to 90 %, that copies enough for the copies to take time."""
    sign = waits_for_input(case, limits) or steady_partial(case, limits)
    copied = case.demand.pcie_rx_bytes_per_s
    if not sign:
        return None
    if isinstance(copied, Unknown) or copied < limits.traffic.copies_from_bytes_per_s:
        return None
    return Reason(f"{sign}; {gb_per_s(copied)} are copied to the GPU")
