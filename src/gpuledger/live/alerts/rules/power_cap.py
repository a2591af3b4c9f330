"""Which GPUs are held down by their power limit?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.live.alerts.throttling import held_down


@alert(
    "power_cap",
    "Clocks held down by a power limit",
    unit="% of the time",
    next_step="if the limit is not set on purpose, raise it: nvidia-smi -pl WATTS",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Time with clocks held down by a power limit."""
    return held_down(seen, "power_capped_ms")
