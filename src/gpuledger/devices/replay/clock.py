"""How does time pass in a test?"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable

from gpuledger.arguments import takes
from gpuledger.devices.clock import Clock
from gpuledger.devices.replay.faults import ClockStep

EPOCH_S = 1_768_867_200.0  # 2026-01-20 00:00 UTC
# A wait for another thread that takes longer than this hangs.
HUNG_S = 120.0


class VirtualClock(Clock):
    """Time that passes only in a wait, and then at once. For one thread only."""

    def __init__(self, start_s: float = EPOCH_S, steps: Iterable[ClockStep] = ()) -> None:
        self._now = 1000.0
        self._offset = start_s - self._now
        self._steps = sorted(steps, key=lambda s: s.at_s)

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        """Seconds since 1970, with the steps that were due."""
        passed = self._now - 1000.0
        return self._now + self._offset + sum(s.step_s for s in self._steps if s.at_s <= passed)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        if not stop.is_set():
            self._now += seconds
        return stop.is_set()

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class QuickClock(Clock):
    """Time that passes while a sampler waits, and then faster: a minute of recording takes 60 / `speed` seconds.

    It stands while threads work, so a recording has all its ticks however slow the machine is. With `lasts_s` it stands
    from then on, which makes a recording of a known length. One thread may wait or sleep; others may read it and wait
    `until` a time.
    """

    @takes()
    def __init__(self, speed: float, start_s: float | None = None, lasts_s: float | None = None) -> None:
        self.speed = speed
        self._now = 0.0
        self._lasts_s = math.inf if lasts_s is None else lasts_s
        self._passed = threading.Condition()
        self._start_s = time.time() if start_s is None else start_s

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._start_s + self._now

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait for `stop`, at most this long by this clock; where it stands, until `stop`."""
        due = self._now + seconds
        if not stop.wait(min(seconds, self._lasts_s - self._now) / self.speed):
            self._set(min(due, self._lasts_s))
            if due > self._lasts_s:
                stop.wait(HUNG_S)
        return stop.is_set()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self.speed)
        self._set(self._now + seconds)

    def _set(self, now: float) -> None:
        with self._passed:
            self._now = now
            self._passed.notify_all()

    def until(self, seconds: float) -> None:
        """Wait until this clock, moved on by another thread, shows this many seconds."""
        with self._passed:
            if not self._passed.wait_for(lambda: self._now >= seconds, HUNG_S):
                raise TimeoutError(f"the clock still shows {self._now} s, not {seconds} s: does a thread wait on it?")
