"""What slows this loop, measured on it? One topic a file; each registers itself.

finding        what a topic is: evidence, the change, the share of the step it can save
loader         the device waits for batches
h2d            batches travel while the device waits
sync_points    the host waits for the device, line by line
precision      products in 32 bits
tensor_cores   products of awkward sizes
fusion         many small kernels, and an optimizer of many small kernels
batch          memory that no batch uses
memory         memory held but not used, work done twice, no memory left
mfu            how far the loop is from what loops reach
"""

from __future__ import annotations

from gpuledger.lake.counted import MeasuredFinding
from gpuledger.training.findings.finding import TOPICS
from gpuledger.training.meter.observed import Observed


def find_all(seen: Observed) -> tuple[MeasuredFinding, ...]:
    """Every topic that shows in the loop, the largest saving first."""
    found = [f for _, topic in TOPICS if (f := topic(seen)) is not None]
    return tuple(sorted(found, key=lambda f: (-f.middle, -f.high, f.topic)))
