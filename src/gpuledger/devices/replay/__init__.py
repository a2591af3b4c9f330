"""How does a recording or a scenario answer as if it were a GPU?

doors       a recording or a scenario as a device to sample
script      what a device will say: the interface, and playing it in a loop
tape        a script read from a recording; layouts/*.toml say which columns a recording has
scenario    a script written by hand: pieces of constant, ramping or bouncing readings
fake_nvml   an object that answers the calls of pynvml from scripts; fake_amd: those of amdsmi
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
