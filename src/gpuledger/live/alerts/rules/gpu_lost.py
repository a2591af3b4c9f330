"""Which GPUs have stopped reporting while others go on?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import MS_PER_MIN


@alert(
    "gpu_lost",
    "GPU stopped reporting",
    unit="min",
    next_step="on its host run nvidia-smi; if the GPU is missing there, look for XID 79 in dmesg and drain the node",
)
def look(seen: Seen) -> Iterator[Reading]:
    """How far each GPU is behind the newest sample of the lake."""
    for device in seen.devices.values():
        behind = max(0, seen.newest_ms - device.last_ms) / MS_PER_MIN
        yield Reading(device.subject, behind, seen.newest_ms, device.last_ms, device.owner, {"host": device.host})
