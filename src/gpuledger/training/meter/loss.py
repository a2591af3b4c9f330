"""Is the loss still a number? Asked every few steps that are watched, without making the host wait for the device."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from gpuledger.training.meter.events import Timer

EVERY = 10


class LossWatch:
    """Copies a loss to the host now and then, and looks at it once the copy has arrived."""

    def __init__(self, torch: Any, timer: Timer, cuda: bool) -> None:
        self._torch, self._timer, self._cuda = torch, timer, cuda
        self._pending: deque[tuple[int, Any, Any]] = deque()
        self._next = 0
        self._at = self._before = -1
        self.not_finite_at: int | None = None
        self.not_finite_gap = 0
        self.last: float | None = None

    def saw(self, index: int, loss: Any) -> None:
        """The loss of a step; only each tenth is looked at, or the first one after a longer while."""
        if (index < self._next and index != self._at) or self._torch.compiler.is_compiling():
            return
        tensor = loss[0] if isinstance(loss, tuple | list) and loss else loss
        if not hasattr(tensor, "detach") or tensor.numel() != 1 or len(self._pending) > EVERY:
            return
        self._at, self._next = index, index + EVERY
        held = tensor.detach()
        if not self._cuda:
            self._judge(index, _number(self._torch, held))
            return
        on_host = self._torch.empty((), dtype=self._torch.float32, pin_memory=True)
        on_host.copy_(held.reshape(()), non_blocking=True)
        self._pending.append((index, on_host, self._timer.stamp()))

    def look(self) -> None:
        """Judge what has arrived."""
        while self._pending and self._timer.ready(self._pending[0][2]):
            index, on_host, stamp = self._pending.popleft()
            self._timer.release(stamp)
            self._judge(index, _number(self._torch, on_host))

    def _judge(self, index: int, value: float) -> None:
        self.last = value
        if not math.isfinite(value) and self.not_finite_at is None:
            self.not_finite_at, self.not_finite_gap = index, max(index - self._before - 1, 0)
        self._before = index


def _number(torch: Any, tensor: Any) -> float:
    """Past our own watch over .item(): this is not a wait of the user's."""
    return float(torch._C.TensorBase.item(tensor))  # noqa: SLF001
