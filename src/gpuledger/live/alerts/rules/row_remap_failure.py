"""Which GPUs have no spare memory rows left?"""

from collections.abc import Iterator

from gpuledger.live.alerts.faults import fault_readings
from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen


@alert(
    "row_remap_failure",
    "Memory row could not be remapped",
    unit="failures",
    next_step="drain the node and replace the GPU: it has no spare rows left for this memory bank",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Failed remappings in the window."""
    return fault_readings(seen, "row_remap_failures", ("row_remap_failures",))
