"""Which GPUs had driver errors?"""

from collections.abc import Iterator

from gpuledger.live.alerts.faults import fault_readings
from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen


@alert(
    "xid",
    "Driver error (XID)",
    unit="driver errors",
    next_step="look up the XID in dmesg on the host; drain the node if it is 48, 63, 64, 74, 79, 94 or 95",
)
def look(seen: Seen) -> Iterator[Reading]:
    """XID errors in the window."""
    return fault_readings(seen, "xid_events", ("xid",))
