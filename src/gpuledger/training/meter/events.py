"""What does the device show of a step, without ever making the host wait for it: the time of each phase, the loss?

A step is a row of marks; each names the phase that begins there, so the phases of a step always add up to the step. On
a GPU a mark is an event in the stream: the time between two of them is what the device spent, waits for the host
included. Events are queried and read some steps later; nothing is synchronized.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

PHASES = ("data_wait", "h2d", "forward", "backward", "optimizer", "sync", "other")
# A loop that waits at hundreds of places per step: timing each of them would cost more than it shows.
MOST_MARKS = 96
LOSS_EVERY = 10


class HostTimer:
    """Marks by the processor's own clock: without a GPU, work is done when the call returns."""

    def stamp(self) -> Any:
        """A mark here and now."""
        return time.perf_counter()

    def closed(self) -> bool:
        """Whether no mark can be put now: work that is captured into a graph does not run."""
        return False

    def ready(self, stamp: Any) -> bool:  # noqa: ARG002
        """Whether the device has reached it."""
        return True

    def seconds(self, begin: Any, end: Any) -> float:
        """Time between two marks that were reached."""
        return float(end - begin)

    def release(self, stamp: Any) -> None:
        """The mark is no longer needed."""

    def settle(self) -> None:
        """Wait until all marks are reached; only ever after the loop."""


class EventTimer(HostTimer):
    """Marks by CUDA events from a pool, recorded in the current stream."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._pool: list[Any] = []

    def stamp(self) -> Any:
        event = self._pool.pop() if self._pool else self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def closed(self) -> bool:
        return bool(self._cuda.is_current_stream_capturing())

    def ready(self, stamp: Any) -> bool:
        return bool(stamp.query())

    def seconds(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) / 1000

    def release(self, stamp: Any) -> None:
        self._pool.append(stamp)

    def settle(self) -> None:
        self._cuda.synchronize()


@dataclass(frozen=True)
class StepTimes:
    """One step: seconds by phase on the device and on the host."""

    index: int
    device_s: dict[str, float]
    host_s: dict[str, float]

    @property
    def seconds(self) -> float:
        """The whole step on the device."""
        return sum(self.device_s.values())


_Row = tuple[int, list[tuple[str, Any, float]]]  # the step's index, and its marks: phase, stamp, host's time


class Marks:
    """The marks of the step that runs and of those whose marks the device has not reached yet.

    `done` takes each step when it is known. `own_s` is the host's time spent here, for the meter to stay cheap.
    """

    def __init__(self, timer: HostTimer, done: Callable[[StepTimes], None]) -> None:
        self._timer, self._done = timer, done
        self._open: _Row | None = None
        self._pending: deque[_Row] = deque()
        self.phase = "other"
        self.own_s = 0.0
        self.left_out = 0

    @property
    def active(self) -> bool:
        """Whether the step that runs is being timed."""
        return self._open is not None

    def begin(self, index: int, phase: str) -> None:
        """A step that is timed begins, in this phase."""
        self._open = (index, [])
        self.mark(phase)

    def mark(self, phase: str) -> None:
        """Another phase begins here."""
        before, self.phase = self.phase, phase
        if self._open is None:
            return
        marks = self._open[1]
        if (marks and before == phase) or self._timer.closed():
            return
        if len(marks) >= MOST_MARKS:
            self.left_out += 1
            return
        at = time.perf_counter()
        marks.append((phase, self._timer.stamp(), at))
        self.own_s += time.perf_counter() - at

    def rename(self, phase: str) -> None:
        """The time since the last mark belongs to another phase after all."""
        if self._open is not None and self._open[1]:
            _, stamp, at = self._open[1][-1]
            self._open[1][-1] = (phase, stamp, at)
            self.phase = phase

    def end(self) -> None:
        """The step is over; earlier ones that the device has reached are read."""
        held, self._open = self._open, None
        at = time.perf_counter()
        if held is not None:
            held[1].append(("end", self._timer.stamp(), at))
            self._pending.append(held)
        # Not the step that just ended: asking for it would nearly always show it unfinished.
        while len(self._pending) > 1 and self._timer.ready(self._pending[0][1][-1][1]):
            self._read()
        self.own_s += time.perf_counter() - at

    def drop(self) -> None:
        """Forget the step that runs: it did not reach its end."""
        if self._open is not None:
            for _, stamp, _at in self._open[1]:
                self._timer.release(stamp)
            self._open = None

    def finish(self) -> None:
        """Read all that is left. The loop is over, so waiting costs nothing."""
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


class LossWatch:
    """Is the loss still a number? Copied to the host every few watched steps, and looked at once it has arrived."""

    def __init__(self, torch: Any, timer: HostTimer, cuda: bool) -> None:
        self._torch, self._timer, self._cuda = torch, timer, cuda
        self._pending: deque[tuple[int, Any, Any]] = deque()
        self._next = 0
        self._at = self._before = -1
        self.not_finite_at: int | None = None
        self.not_finite_gap = 0
        self.last: float | None = None

    def saw(self, index: int, loss: Any) -> None:
        """The loss of a step; only every tenth is looked at, or the first one after a longer while."""
        if (index < self._next and index != self._at) or self._torch.compiler.is_compiling():
            return
        tensor = loss[0] if isinstance(loss, tuple | list) and loss else loss
        if not hasattr(tensor, "detach") or tensor.numel() != 1 or len(self._pending) > LOSS_EVERY:
            return
        self._at, self._next = index, index + LOSS_EVERY
        held = tensor.detach()
        if not self._cuda:
            self._judge(index, held)
            return
        on_host = self._torch.empty((), dtype=self._torch.float32, pin_memory=True)
        on_host.copy_(held.reshape(()), non_blocking=True)
        self._pending.append((index, on_host, self._timer.stamp()))

    def look(self) -> None:
        """Judge what has arrived."""
        while self._pending and self._timer.ready(self._pending[0][2]):
            index, on_host, stamp = self._pending.popleft()
            self._timer.release(stamp)
            self._judge(index, on_host)

    def _judge(self, index: int, tensor: Any) -> None:
        # Past the meter's own watch over .item(): this is not a wait of the user's code.
        self.last = value = float(self._torch._C.TensorBase.item(tensor))  # noqa: SLF001
        if not math.isfinite(value) and self.not_finite_at is None:
            self.not_finite_at, self.not_finite_gap = index, max(index - self._before - 1, 0)
        self._before = index
