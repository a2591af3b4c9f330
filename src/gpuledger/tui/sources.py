"""Where do looks at the fleet come from, and what happened before the last one?"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuledger.tui.fleet import Fleet
from gpuledger.units import known, point_of

KEPT_POINTS = 900  # half an hour of looks two seconds apart


@dataclass(frozen=True)
class Point:
    """One GPU at one time; None where a figure is not known."""

    at_ms: int
    util_pct: float | None
    realized_pct: float | None
    power_w: float | None


@dataclass(frozen=True)
class History:
    """What one GPU did, oldest first, at every look; or hour by hour."""

    device: str
    hourly: bool
    points: tuple[Point, ...]


class Source(Protocol):
    """Live devices or a lake."""

    @property
    def name(self) -> str:
        """What is looked at, in a few words."""
        ...

    def start(self) -> None:
        """Begin to read."""
        ...

    def changed(self) -> bool:
        """Whether a look now would show anything new."""
        ...

    def look(self) -> Fleet:
        """The fleet as it is; raises where it is unknown."""
        ...

    def history(self, device: str) -> History:
        """What one GPU did before; raises where it is unknown."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Looks:
    """What successive looks showed of each GPU."""

    def __init__(self) -> None:
        self._points: dict[str, deque[Point]] = {}

    def keep(self, fleet: Fleet) -> None:
        """Remember a look."""
        for gpu in fleet.gpus:
            realized = known(point_of(gpu.realized_pct))
            point = Point(fleet.at_ms, known(gpu.util_pct), realized, known(gpu.power_w))
            points = self._points.setdefault(gpu.device, deque(maxlen=KEPT_POINTS))
            if not points or points[-1].at_ms != point.at_ms:
                points.append(point)

    def of(self, device: str) -> tuple[Point, ...]:
        """The looks at one GPU."""
        return tuple(self._points.get(device, ()))

    def utils(self, most: int) -> Mapping[str, Sequence[float | None]]:
        """The utilization of each GPU in the last looks."""
        return {device: [p.util_pct for p in list(points)[-most:]] for device, points in self._points.items()}
