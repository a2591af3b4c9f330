"""A recording by the Python call, hurried: minutes of a replayed GPU in about a second, with many small flushes.

With a third argument the clock of the machine is set meanwhile: back, forward, and back over midnight.
"""

from __future__ import annotations

import sys

from gpuledger.devices.replay.clock import EPOCH_S, QuickClock
from gpuledger.errors import GpuledgerError
from gpuledger.recording.record import Recording

LASTS_S = 100.0
STEPS = ((15.0, -30.0), (35.0, 7200.0), (55.0, -3600.0), (80.0, -86_400.0))


class SteppingClock(QuickClock):
    """A clock that is set while it runs."""

    def wall(self) -> float:
        """Seconds since 1970, by a machine whose clock is set again and again."""
        return super().wall() + sum(step for at, step in STEPS if at <= self.monotonic())


def main() -> int:
    """Record to the end; 2 where that fails."""
    stepping = len(sys.argv) > 3
    clock = SteppingClock(200.0, EPOCH_S + 3600.0, LASTS_S) if stepping else QuickClock(200.0, lasts_s=LASTS_S)
    try:
        with Recording(sys.argv[1], device=sys.argv[2], hz=2.0, flush_s=2.0, clock=clock):
            clock.until(LASTS_S)
    except GpuledgerError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
