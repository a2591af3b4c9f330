"""How much room does a setting leave, and how are two compared where the device has no room for both at once?

Each is built for its window and taken down after it. That costs time, not truth: a window starts warm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpuledger.training.tune.settings import Settings
from gpuledger.units import GIB, Unknown


class Held(Protocol):
    """A setting that is built and holds its memory."""

    curve: Sequence[float]
    peak_bytes: int | Unknown

    def window(self, seconds: float) -> float:
        """Samples a second."""
        ...

    def utilization_pct(self) -> float | Unknown:
        """What the driver said."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


class Opens(Protocol):
    """Where settings are built."""

    def open(self, settings: Settings) -> Held:
        """Build one."""
        ...


class Alone:
    """A setting that holds no memory between its windows."""

    def __init__(self, machine: Opens, settings: Settings) -> None:
        self._machine, self._settings = machine, settings
        first = machine.open(settings)
        self.curve: Sequence[float] = first.curve
        self.peak_bytes: int | Unknown = first.peak_bytes
        self._utilization = first.utilization_pct()
        first.close()

    def window(self, seconds: float) -> float:
        """Samples a second, measured after building it again."""
        held = self._machine.open(self._settings)
        try:
            rate = held.window(seconds)
            self._utilization = held.utilization_pct()
            return rate
        finally:
            held.close()

    def utilization_pct(self) -> float | Unknown:
        """What the driver said of the last window."""
        return self._utilization

    def close(self) -> None:
        """Nothing is held."""


def too_large(held: Held, room: int | Unknown, margin_ratio: float) -> str:
    """Why the peak leaves too little room; a step that barely fits now runs out later."""
    peak = held.peak_bytes
    if isinstance(peak, Unknown) or isinstance(room, Unknown) or peak * (1 + margin_ratio) <= room:
        return ""
    return f"a step takes {peak / GIB:.1f} GiB of {room / GIB:.1f}: less than {margin_ratio:.0%} would be left over"
