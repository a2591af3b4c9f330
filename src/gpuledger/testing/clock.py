"""How does time pass in a test?"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from gpuledger.testing.faults import ClockStep

EPOCH_S = 1_768_867_200.0  # 2026-01-20 00:00 UTC


class VirtualClock:
    """Time that passes only when somebody waits, and then at once. Not for several threads."""

    def __init__(self, start_s: float = EPOCH_S, steps: Iterable[ClockStep] = ()) -> None:
        self._now = 1000.0
        self._offset = start_s - self._now
        self._steps = sorted(steps, key=lambda s: s.at_s)

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return self._now

    def wall(self) -> float:
        """Seconds since 1970, with the steps that were due."""
        passed = self._now - 1000.0
        return self._now + self._offset + sum(s.step_s for s in self._steps if s.at_s <= passed)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Time passes unless the end was called already."""
        if not stop.is_set():
            self._now += seconds
        return stop.is_set()

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self._now += seconds


class QuickClock:
    """Real time, but faster: a minute of recording takes 60 / `speed` seconds. Safe for several threads."""

    def __init__(self, speed: float, start_s: float | None = None) -> None:
        self.speed = speed
        self._began = time.monotonic()
        self._start_s = time.time() if start_s is None else start_s

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return (time.monotonic() - self._began) * self.speed

    def wall(self) -> float:
        """Seconds since 1970, running ahead."""
        return self._start_s + self.monotonic()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait for `stop`, at most so long by this clock."""
        return stop.wait(seconds / self.speed)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds / self.speed)
