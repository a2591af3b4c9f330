"""What will a device say, and when?

Columns and units are the schema's; times are seconds since the device was opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

# Processes on a board, with the bytes of memory each holds where that is known.
Pids = tuple[int, ...] | Mapping[int, int | None]


class Script(Protocol):
    """The readings of one device over time. None where the device has no such reading."""

    @property
    def length_s(self) -> float:
        """How long it lasts; afterwards the last readings stay."""
        ...

    @property
    def columns(self) -> frozenset[str]:
        """The readings the device has at all."""
        ...

    def level(self, column: str, at_s: float) -> float | None:
        """A reading at an instant."""
        ...

    def mean(self, column: str, from_s: float, to_s: float) -> float | None:
        """A reading's mean over a time."""
        ...

    def energy_mj(self, at_s: float) -> float | None:
        """The energy counter at an instant."""
        ...


class Looped:
    """A script played over and over; the energy counter runs on."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.length_s = float("inf")
        self.columns = script.columns

    def _split(self, at_s: float) -> tuple[int, float]:
        rounds = int(at_s // self._script.length_s)
        return rounds, at_s - rounds * self._script.length_s

    def level(self, column: str, at_s: float) -> float | None:
        """A reading at an instant."""
        return self._script.level(column, self._split(at_s)[1])

    def mean(self, column: str, from_s: float, to_s: float) -> float | None:
        """A reading's mean over a time; where that crosses the end, of the longer part."""
        (first, start), (last, end) = self._split(from_s), self._split(to_s)
        if first == last:
            return self._script.mean(column, start, end)
        if self._script.length_s - start > end:
            return self._script.mean(column, start, self._script.length_s)
        return self._script.mean(column, 0.0, end)

    def energy_mj(self, at_s: float) -> float | None:
        """The energy counter at an instant."""
        rounds, place = self._split(at_s)
        now, first = self._script.energy_mj(place), self._script.energy_mj(0.0)
        last = self._script.energy_mj(self._script.length_s)
        if now is None or first is None or last is None:
            return None
        return now + rounds * (last - first)


@dataclass(frozen=True)
class Board:
    """One GPU to be played: who it is, what it says, and how it says it.

    `util_period_s`: how often the utilization counter is refreshed (0: the script has its repeats already).
    `instances`: MIG instances as (number, slices, script); `slices` is how many the board has.
    `pids`: the processes on it, or a function that answers who is on it now.
    """

    script: Script
    uuid: str = "GPU-replay-0"
    model: str = "NVIDIA H200"
    memory_bytes: int = 143_771 << 20
    gpm: bool = True
    util_period_s: float = 0.0
    instances: tuple[tuple[int, int, Script], ...] = ()
    slices: int = 7
    pids: Pids | Callable[[], Pids] = ()

    def holders(self) -> Mapping[int, int | None]:
        """The processes on the board now, with their memory."""
        found = self.pids() if callable(self.pids) else self.pids
        return found if isinstance(found, Mapping) else dict.fromkeys(found)
