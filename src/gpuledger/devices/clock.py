"""What time is it, on a clock that cannot jump, and what does the calendar show?

Ticks are laid out on the monotonic clock. A sample's stamp is the monotonic time plus an offset taken once from the
wall clock, so small corrections of the wall clock do not bend the series. A step of the wall clock is noticed, noted,
and the offset taken again.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

# Slewing never shows (both clocks are slewed alike); a larger difference means that the clock was set.
STEP_S = 0.05


class Clock:
    """The machine's own clocks; subclasses play time for tests."""

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970, as the machine has it."""
        return time.time()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait until `stop` is set, at most this long; returns whether it is set."""
        return stop.wait(seconds)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


@dataclass(frozen=True)
class ClockStep:
    """The wall clock was set: when (by the new time), and by how much."""

    at_ms: int
    step_s: float


class Stamper:
    """Turns monotonic time into the stamps of samples."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._offset_now()
        self._odd = 0
        self.steps: list[ClockStep] = []

    def _offset_now(self) -> float:
        return self._clock.wall() - self._clock.monotonic()

    def stamp(self, monotonic_s: float) -> int:
        """Milliseconds since 1970, on even milliseconds, on odd ones after the clock was set back.

        Where an hour comes twice, the rows of the second pass must not collide with those of the first.
        """
        at_ms = int((monotonic_s + self._offset) * 1000)
        return at_ms - (at_ms & 1) + self._odd

    def check(self) -> ClockStep | None:
        """Follow the wall clock if it was set since the last look; returns the step."""
        offset = self._offset_now()
        step = offset - self._offset
        if abs(step) <= STEP_S:
            return None
        self._offset = offset
        if step < 0:
            self._odd ^= 1
        found = ClockStep(self.stamp(self._clock.monotonic()), round(step, 3))
        self.steps.append(found)
        return found
