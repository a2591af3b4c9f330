"""What will a device report, and when?

Columns and units are the schema's; times are seconds since the device was opened. A script is a recording (tape.py) or
written by hand:

    Scenario([
        Segment(5, gpu_util_ratio=0.0, power_w=80.0),
        Segment(10, gpu_util_ratio=Square(1.0, 0.0, period_s=0.5, duty=0.3), power_w=Ramp(200.0, 600.0)),
    ])

Every curve knows its own area, so means and energy are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from gpuledger.arguments import refuse_unknown, takes_names
from gpuledger.telemetry import schema

# Processes on a board, with the bytes of memory each holds where that is known.
Pids = tuple[int, ...] | Mapping[int, int | None]


class Script(ABC):
    """The readings of one device over time; None where the device has no such reading.

    `length_s`: how long it lasts; afterwards the last readings stay. `columns`: the readings the device has at all.
    """

    length_s: float
    columns: frozenset[str]

    @abstractmethod
    def level(self, column: str, at_s: float) -> float | None:
        """A reading at an instant."""

    @abstractmethod
    def mean(self, column: str, from_s: float, to_s: float) -> float | None:
        """A reading's mean over the part of a time in which it is known."""

    @abstractmethod
    def energy_mj(self, at_s: float) -> float | None:
        """The energy counter at an instant."""


class Looped(Script):
    """A script played over and over; the energy counter runs on."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.length_s = float("inf")
        self.columns = script.columns

    def _split(self, at_s: float) -> tuple[int, float]:
        rounds = int(at_s // self._script.length_s)
        return rounds, at_s - rounds * self._script.length_s

    def level(self, column: str, at_s: float) -> float | None:
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


class Curve(Protocol):
    """A reading within a segment of `length_s` seconds: its value at a time, and value x time from the start on."""

    def at(self, t: float, length_s: float, /) -> float: ...

    def area(self, t: float, length_s: float, /) -> float: ...


@takes_names
@dataclass(frozen=True)
class Ramp:
    """Straight from `start` to `end` over the segment."""

    start: float
    end: float

    def at(self, t: float, length_s: float) -> float:
        return self.start + (self.end - self.start) * t / length_s

    def area(self, t: float, length_s: float) -> float:
        return t * (self.start + self.at(t, length_s)) / 2


@takes_names
@dataclass(frozen=True)
class Square:
    """Up for `duty` of each period, then down."""

    high: float
    low: float
    period_s: float
    duty: float = 0.5

    def at(self, t: float, _length_s: float) -> float:
        return self.high if t % self.period_s < self.duty * self.period_s else self.low

    def area(self, t: float, _length_s: float) -> float:
        rounds, rest = divmod(t, self.period_s)
        up = rounds * self.duty * self.period_s + min(rest, self.duty * self.period_s)
        return self.high * up + self.low * (t - up)


class Segment:
    """Some seconds in which every reading follows one curve; a plain number stays as it is."""

    def __init__(self, seconds: float, **readings: float | Curve) -> None:
        refuse_unknown("Segment", readings, ("seconds", *schema.readings()))
        self.seconds = seconds
        self.curves: dict[str, Curve] = {
            name: Ramp(float(r), float(r)) if isinstance(r, (int, float)) else r for name, r in readings.items()
        }


class Scenario(Script):
    """Segments one after the other; a reading a segment does not name is not known there."""

    def __init__(self, segments: Sequence[Segment], energy_start_mj: float = 1e6) -> None:
        self._segments = list(segments)
        self._starts = [0.0, *accumulate(s.seconds for s in segments)]
        self._energy_start_mj = energy_start_mj
        self.length_s = self._starts[-1]
        self.columns = frozenset(name for s in segments for name in s.curves)

    def _place(self, at_s: float) -> tuple[Segment, float]:
        for segment, start in zip(reversed(self._segments), reversed(self._starts[:-1]), strict=True):
            if at_s >= start:
                return segment, min(at_s - start, segment.seconds)
        return self._segments[0], 0.0

    def level(self, column: str, at_s: float) -> float | None:
        segment, t = self._place(at_s)
        curve = segment.curves.get(column)
        return None if curve is None else curve.at(t, segment.seconds)

    def mean(self, column: str, from_s: float, to_s: float) -> float | None:
        area = known = 0.0
        for segment, start in zip(self._segments, self._starts[:-1], strict=True):
            a, b = max(from_s - start, 0.0), min(to_s - start, segment.seconds)
            curve = segment.curves.get(column)
            if b > a and curve is not None:
                area += curve.area(b, segment.seconds) - curve.area(a, segment.seconds)
                known += b - a
        if known:
            return area / known
        return self.level(column, from_s) if from_s >= self.length_s else None

    def energy_mj(self, at_s: float) -> float | None:
        at_s = min(at_s, self.length_s)
        watts = self.mean("power_w", 0.0, at_s) if at_s > 0 else self.level("power_w", 0.0)
        return None if watts is None else self._energy_start_mj + watts * at_s * 1000
