"""How long did each phase of a step take on the device, without ever making the host wait for it?

A step is a row of marks; each says which phase begins there, so the phases of a step always add up to the step. On a
GPU a mark is an event in the stream: the time between two of them is what the device spent, waits for the host
included. Events are asked (query) whether they happened and read some steps later; nothing is synchronised.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

PHASES = ("data_wait", "h2d", "forward", "backward", "optimizer", "sync", "other")
# A loop that waits at hundreds of places a step is told so; timing each of them would cost more than it says.
MOST_MARKS = 96


class Timer(Protocol):
    """What can put a mark into the work of a device."""

    def stamp(self) -> Any:
        """A mark here and now."""
        ...

    def closed(self) -> bool:
        """Whether no mark can be put now: what is being captured into a graph does not run."""
        ...

    def ready(self, stamp: Any) -> bool:
        """Whether the device has reached it."""
        ...

    def seconds(self, begin: Any, end: Any) -> float:
        """Time between two marks that were reached."""
        ...

    def release(self, stamp: Any) -> None:
        """The mark is not needed any more."""
        ...

    def settle(self) -> None:
        """Wait until all marks are reached; only ever after the loop."""
        ...


class HostTimer:
    """The processor's own clock: where there is no GPU, work is done when the call returns."""

    def stamp(self) -> float:
        """Now."""
        return time.perf_counter()

    def closed(self) -> bool:
        """Never."""
        return False

    def ready(self, stamp: float) -> bool:  # noqa: ARG002
        """At once."""
        return True

    def seconds(self, begin: float, end: float) -> float:
        """The difference."""
        return end - begin

    def release(self, stamp: float) -> None:
        """Nothing to give back."""

    def settle(self) -> None:
        """Nothing to wait for."""


class EventTimer:
    """CUDA events from a pool, recorded in the current stream."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._pool: list[Any] = []

    def stamp(self) -> Any:
        """An event in the current stream."""
        event = self._pool.pop() if self._pool else self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def closed(self) -> bool:
        """While a CUDA graph is captured."""
        return bool(self._cuda.is_current_stream_capturing())

    def ready(self, stamp: Any) -> bool:
        """Asked, not waited for."""
        return bool(stamp.query())

    def seconds(self, begin: Any, end: Any) -> float:
        """What the device took between the two."""
        return float(begin.elapsed_time(end)) / 1000

    def release(self, stamp: Any) -> None:
        """Back into the pool."""
        self._pool.append(stamp)

    def settle(self) -> None:
        """Wait for the device; the loop is over."""
        self._cuda.synchronize()


@dataclass(frozen=True)
class StepTimes:
    """One step: seconds by phase on the device and on the host. `sync_s` are waits of the host, each by its place."""

    index: int
    device_s: dict[str, float]
    host_s: dict[str, float]

    @property
    def seconds(self) -> float:
        """The whole step on the device."""
        return sum(self.device_s.values())


@dataclass
class _Open:
    index: int
    marks: list[tuple[str, Any, float]] = field(default_factory=list)


class Marks:
    """The marks of the step that runs and of those whose marks the device has not reached yet.

    `done` takes each step when it is known. `own_s` is the host's time spent here, for the meter to stay cheap.
    """

    def __init__(self, timer: Timer, done: Callable[[StepTimes], None]) -> None:
        self._timer, self._done = timer, done
        self._open: _Open | None = None
        self._pending: deque[tuple[int, list[tuple[str, Any, float]]]] = deque()
        self.phase = "other"
        self.own_s = 0.0
        self.left_out = 0

    @property
    def active(self) -> bool:
        """Whether the step that runs is being timed."""
        return self._open is not None

    def begin(self, index: int, phase: str) -> None:
        """A step that is timed begins, in this phase."""
        self._open = _Open(index)
        self.mark(phase)

    def mark(self, phase: str) -> None:
        """Another phase begins here."""
        held = self._open
        if held is None:
            self.phase = phase
            return
        before, self.phase = self.phase, phase
        if held.marks and before == phase:
            return
        if self._timer.closed():
            return
        if len(held.marks) >= MOST_MARKS:
            self.left_out += 1
            return
        at = time.perf_counter()
        held.marks.append((phase, self._timer.stamp(), at))
        self.own_s += time.perf_counter() - at

    def rename(self, phase: str) -> None:
        """What ran since the last mark belongs to another phase after all."""
        if self._open is not None and self._open.marks:
            _, stamp, at = self._open.marks[-1]
            self._open.marks[-1] = (phase, stamp, at)
            self.phase = phase

    def end(self) -> None:
        """The step is over; what the device has reached of earlier ones is read."""
        held, self._open = self._open, None
        at = time.perf_counter()
        if held is not None:
            held.marks.append(("end", self._timer.stamp(), at))
            self._pending.append((held.index, held.marks))
        # The step that just ended is left alone: asking for it would show it unfinished nearly always.
        while len(self._pending) > 1 and self._timer.ready(self._pending[0][1][-1][1]):
            self._read()
        self.own_s += time.perf_counter() - at

    def drop(self) -> None:
        """Forget the step that runs: it did not come to its end."""
        if self._open is not None:
            for _, stamp, _at in self._open.marks:
                self._timer.release(stamp)
            self._open = None

    def finish(self) -> None:
        """Read all that is left. The loop is over, so waiting costs nobody anything."""
        self.drop()
        if self._pending:
            self._timer.settle()
        while self._pending:
            self._read()

    def _read(self) -> None:
        index, marks = self._pending.popleft()
        device, host = dict.fromkeys(PHASES, 0.0), dict.fromkeys(PHASES, 0.0)
        for (phase, begin, began), (_, end, ended) in pairwise(marks):
            device[phase] += self._timer.seconds(begin, end)
            host[phase] += ended - began
        for _, stamp, _at in marks:
            self._timer.release(stamp)
        self._done(StepTimes(index, device, host))
