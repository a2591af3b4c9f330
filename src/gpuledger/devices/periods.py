"""How often does a counter really change?

A driver refreshes utilization only every so often (on an H200 each 0.2 s, elsewhere up to a second): readings in
between repeat. The period is told from the gaps between changes. A value may stay the same over several refreshes,
so long gaps say little and the short ones count; but a gap seen through ticks is off by up to one tick either way,
so the gaps within a tick of the shortest are averaged.
"""

from __future__ import annotations

from collections import deque

from gpuledger.devices.device import Value

MIN_GAPS = 5
KEPT_GAPS = 256


class Period:
    """Watches one value and estimates how often it is refreshed."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._value: Value = None
        self._changed_s: float | None = None
        self._gaps: deque[float] = deque(maxlen=KEPT_GAPS)
        self._estimate: float | None = None
        self.changes = 0

    def see(self, at_s: float, value: Value) -> bool:
        """Take a reading; whether it differs from the one before."""
        if value == self._value:
            return False
        # The first reading is no change, and a gap in the readings is no gap between changes.
        if self._value is not None and value is not None:
            self.changes += 1
            if self._changed_s is not None:
                self._gaps.append(at_s - self._changed_s)
                self._estimate = None
            self._changed_s = at_s
        else:
            self._changed_s = None
        self._value = value
        return True

    def seconds(self) -> float | None:
        """The period, or None while too few changes were seen."""
        if len(self._gaps) < MIN_GAPS:
            return None
        if self._estimate is None:
            gaps = sorted(self._gaps)
            shortest = gaps[len(gaps) // 10]
            near = [g for g in gaps if shortest - self._tick_s / 2 <= g <= shortest + 1.05 * self._tick_s]
            self._estimate = sum(near) / len(near)
        return self._estimate
