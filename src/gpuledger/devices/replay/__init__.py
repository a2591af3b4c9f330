"""How does a recording or a scenario answer as if it were a GPU?

doors       a recording or a scenario as a device to sample; layouts/*.toml list the columns of a recording
script      what a device will report: the interface, a loop, and scripts written by hand
fake_nvml   an object that answers the calls of pynvml from scripts
faults      lost GPU, unsupported field, slow call, driver error, clock step
clock       virtual time for tests, quick time for demonstrations
"""

from __future__ import annotations

from gpuledger.devices.clock import Clock
from gpuledger.devices.device import DEVICES, Driver, Source


def _open(path: str, clock: Clock | None) -> Source:
    from gpuledger.devices.replay.doors import open_replay

    return open_replay(path, clock)


DEVICES.register("replay")(Driver(_open, takes="FILE"))
