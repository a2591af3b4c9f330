"""Which GPUs are held down by heat?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.live.alerts.throttling import held_down


@alert(
    "thermal",
    "Clocks held down by heat",
    unit="% of the time",
    next_step="check the fans, the airflow and the inlet temperature of the host",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Time with clocks held down by heat."""
    return held_down(seen, "thermal_ms")
