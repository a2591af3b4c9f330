"""Which GPUs replaced rows of their memory?"""

from collections.abc import Iterator

from gpuledger.live.alerts.faults import fault_readings
from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen


@alert(
    "row_remap",
    "Memory rows remapped",
    unit="rows",
    next_step="reset the GPU when its job is over, so that the remapping takes effect; replace it if this repeats",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Rows remapped in the window."""
    return fault_readings(seen, "rows_remapped", ("remapped_correctable_rows", "remapped_uncorrectable_rows"))
