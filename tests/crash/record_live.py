"""A recording by the Python call, hurried: a few minutes of a replayed GPU in about a second, with many small flushes."""

from __future__ import annotations

import sys

from gpuledger.devices.replay.clock import QuickClock
from gpuledger.errors import GpuledgerError
from gpuledger.recording.record import Recording

LASTS_S = 150.0

clock = QuickClock(200.0, lasts_s=LASTS_S)
try:
    with Recording(sys.argv[1], device=sys.argv[2], hz=2.0, flush_s=2.0, clock=clock):
        clock.until(LASTS_S)
except GpuledgerError as error:
    sys.stderr.write(f"error: {error}\n")
    sys.exit(2)
