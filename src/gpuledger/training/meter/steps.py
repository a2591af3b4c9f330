"""How is a loop followed step by step: what is put in place, counted once, timed, and taken away again?

The first steps are not timed: they load kernels, compile and fill caches. In the second one the FLOPs are counted.
Steps are timed as often as keeps the meter's own work below a tenth of a percent of the loop. Where steps are so short
that even watching them would show, they are watched in turns: the others are counted, with all that they hold.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from time import time_ns
from typing import Any, TypeVar

from gpuledger.training.meter.count import StepWork
from gpuledger.training.meter.device import Energy, is_compiled, weakly
from gpuledger.training.meter.events import EventTimer, HostTimer, Marks, Timer
from gpuledger.training.meter.hooks import Hooks
from gpuledger.training.meter.loss import LossWatch
from gpuledger.training.meter.observed import Work
from gpuledger.training.meter.rest import FIRST_STEPS, LEAST_TIMED, MOST_MS, ROW_STEPS, TIMED_IN_ROW, Own, Turns
from gpuledger.training.meter.sites import Sites, SyncWatch
from gpuledger.training.meter.sync_debug import WINDOW_STEPS, SyncDebug
from gpuledger.training.meter.totals import Totals
from gpuledger.training.meter.units import EMPTY, BatchSize, SizeCache, together
from gpuledger.units import MS_PER_HOUR, Unknown

COUNTED_STEP = 1
BUDGET_RATIO = 0.001
ADAPT_EVERY, RECENT_STEPS = 10, 5
B = TypeVar("B")
_NO_MORE = object()
NS_PER_MS = 1_000_000
MOST_SPARSE = 64


class Steps:
    """Follows a loop. `attach` and `detach` may come in turns: hooks are there only while a loop runs."""

    def __init__(
        self, torch: Any, model: Any | None, device: Any, *, warmup: int, count: bool, sizes: SizeCache, energy: Energy
    ) -> None:
        self.torch, self.model_of, self.device = torch, weakly(model), device
        self.cuda = device.type == "cuda"
        self.timer: Timer = EventTimer(torch.cuda) if self.cuda else HostTimer()
        self.totals, self.energy = Totals(), energy
        self.marks = Marks(self.timer, self.totals.took)
        self.own, self.turns = Own(), Turns()
        self.hooks = Hooks(torch, self.own, self.marks.mark, self._on_loss)
        self.watch = SyncWatch(torch, self.own, self.cuda, lambda: self.marks.phase, self._on_wait)
        self.debug = SyncDebug(torch.cuda, self.watch.skip, lambda: self.watch.inside)
        self.losses = LossWatch(torch, self.timer, self.cuda)
        self.counted = StepWork(torch, lambda: self.marks.phase, lambda: self.hooks.forwards, wanted=count)
        self.compiled = self.in_compiled = False  # the model is; what calls it is
        self.index = 0
        self.every = 1
        self.watched = 0  # steps after the first ones, those that were left alone not among them
        self.resting = False
        # Of the steps that are left alone: how many more, how many alike went by, and the time they lie in.
        self._left = self._alike = self._rest_ms = self._until_ns = self._end_ns = 0
        self._alone_s = math.inf  # what the meter itself took in one of them, at best
        self.most_rest_ms = MOST_MS
        # Steps in which torch warns are slower: those after them are timed.
        self._first = warmup + (WINDOW_STEPS if self.cuda else 0)
        self._decide_at, self._row_at = self._first + FIRST_STEPS, -1
        self._own_before_s, self._own_from_s = 0.0, 0.0
        self.warmup, self._sizes, self._passes = warmup, sizes, SizeCache()
        self._size = EMPTY
        self._begin_ns = 0
        self._updates_before = 0
        self._in_step = self._attached = False
        self._before_wait = "other"
        self._from_forward = self._forward_seen = False
        self.hooks.on_forward = self._on_forward

    def attach(self) -> None:
        """Put the hooks in place."""
        if not self._attached:
            self._attached = True
            self.compiled = is_compiled(self.model_of())
            self.hooks.start(self.model_of())
            if not self.resting:
                self.watch.start()

    def drops(self) -> None:
        """A step that did not end is left out, unless it came as far as its update."""
        if self._in_step:
            self._in_step = False
            self.counted.stop(self._size, keep=False)
            self.marks.drop()
            if self.hooks.updates > self._updates_before:
                self._passed()

    def detach(self) -> None:
        """Take the hooks away, whether or not a step had come to its end."""
        self.drops()
        self.tell()
        if self._attached:
            self._attached = False
            self.debug.close()
            self.watch.stop()
            self.hooks.stop()

    def begins(self, phase: str) -> None:
        """A step begins; waiting for its batch is part of it."""
        at, self._own_before_s = self.own.clock(), self.own.seconds
        self._begin_ns, self._in_step, self._from_forward = time_ns(), True, False
        self._updates_before = self.hooks.updates
        if self._left <= 0 or self._begin_ns >= self._until_ns:
            self._begins(phase)
        self.own.seconds += self.own.clock() - at

    def _begins(self, phase: str) -> None:
        if self.resting:
            self._wake()
        self._size, self._forward_seen = EMPTY, False
        if self.index == self.warmup:
            self.watch.sites = Sites()  # set-up waits are no fault of the loop
            self.energy.begin()
        if self.cuda and self.index >= self.warmup and not self.debug.done:
            self.debug.begins()
        if self.index == self._first:
            self._own_from_s = self.own.seconds
        if self._is_timed():
            self.marks.begin(self.index, phase)
        else:
            self.marks.phase = phase

    def _is_timed(self) -> bool:
        since = self.index - self._first
        return (
            self.index == self._row_at + TIMED_IN_ROW if self._row_at >= 0 else since >= 0 and since % self.every == 0
        )

    def has_batch(self, batch: object, after: str | None = None) -> None:
        """The batch is there."""
        at = self.own.clock()
        size = self._sizes.of(batch)
        if self.resting:
            self._unlike(size)
        self._size = size
        self.marks.mark(after or ("h2d" if self.cuda and size.on_host else "other"))
        if self.index == COUNTED_STEP and self.counted.wanted:
            self.counted.start(compiled=self.compiled)
        self.own.seconds += self.own.clock() - at

    def forgets(self) -> None:
        """There was no further batch: no step."""
        self._in_step = False
        self.marks.drop()
        self.marks.phase = "other"

    def ends(self) -> None:
        """The step is over."""
        at, alone = self.own.clock(), self.resting
        self._in_step = False
        if alone:
            self._left, self._alike, self._end_ns = self._left - 1, self._alike + 1, time_ns()
            self.turns.left_alone(self._end_ns - self._begin_ns, 1)
        else:
            self._ends(at)
        self.own.seconds += self.own.clock() - at
        if alone:
            self._alone_s = min(self._alone_s, self.own.seconds - self._own_before_s)

    def alone(self, batches: Iterator[B]) -> Generator[B, None, bool]:
        """The batches of steps that are left alone; it tells whether there are no more of them.

        The same as `begins`, `has_batch` and `ends`, but written out: each call would show in a short step. What it
        takes is told as what one step took by those three, which the first step of each rest goes through.
        """
        if not (self.resting and self._end_ns):  # the first one of a rest goes the usual way
            return False
        hooks, size_of, first = self.hooks, self._sizes.of, self._left
        began_ns = end_ns = time_ns()
        try:
            while self._left > 0 and end_ns < self._until_ns:
                self._begin_ns, self._in_step, self._from_forward = end_ns, True, False
                self._updates_before = hooks.updates
                batch = next(batches, _NO_MORE)
                if batch is _NO_MORE:
                    self.forgets()
                    return True
                size = size_of(batch)
                if size is not self._size:
                    self._unlike(size)
                yield batch  # type: ignore[misc]
                if not self.resting:
                    self.ends()
                    return False
                self._end_ns = end_ns = time_ns()
                self._in_step, self._left, self._alike = False, self._left - 1, self._alike + 1
            return False
        finally:
            self.own.seconds += (first - self._left) * self._alone_s
            self.turns.left_alone(end_ns - began_ns, first - self._left)

    def _unlike(self, size: BatchSize) -> None:
        """A step that is left alone holds something else than those before it."""
        if size is not self._size:
            self.tell()
            self._size = size
            if size.samples is None and self.hooks.lifted:
                self._wake()  # what the model is given will tell

    def _ends(self, at: float) -> None:
        timed = self.marks.active
        self.counted.stop(self._size, keep=True)
        if timed:
            self.totals.size(self.index, self._size)
        self.marks.end()
        self.losses.look()
        self._passed()
        if self.index > self._first:
            self.turns.took(self.own.seconds + self.own.clock() - at - self._own_before_s, timed=timed)
        known = self.totals.timed
        if known and known % ADAPT_EVERY == 0:
            self._adapt()
        if self._attached and self.index >= self._decide_at and known >= LEAST_TIMED:
            self._decide()

    def _passed(self) -> None:
        self.totals.passed(self._begin_ns // NS_PER_MS, time_ns() // NS_PER_MS, self._size)
        if not self.resting and self.index >= self.warmup:
            self.watched += 1
        self.index += 1

    def _decide(self) -> None:
        """Leave the loop alone for some steps, or look again whether to in a while."""
        if not self.turns.known:  # each step was timed so far
            self._decide_at, self._row_at = self.index + ROW_STEPS, self.index
            return
        steps = self.turns.rest_steps(self.totals.recent_s(RECENT_STEPS))
        if not steps:
            self._decide_at, self._row_at = self.index + ADAPT_EVERY, -1
            return
        self.resting = True
        self._left, self._rest_ms = steps, time_ns() // NS_PER_MS
        # Not into the next hour: then all of them belong to this one.
        hour_ms = (self._rest_ms // MS_PER_HOUR + 1) * MS_PER_HOUR
        self._until_ns, self._end_ns = min(self._rest_ms + self.most_rest_ms, hour_ms) * NS_PER_MS, 0
        self.watch.stop()
        # Where steps show their size in the forward pass only, it is watched on. A compiled model keeps its hooks, and
        # so does one that is called by something compiled: they may be part of what was compiled.
        self.hooks.rest(lift=self._forward_seen and not self._from_forward and not self.compiled)

    def tell(self) -> None:
        """Add up what was left alone so far."""
        alike, self._alike = self._alike, 0
        if alike:
            self.totals.passed(self._rest_ms, self._end_ns // NS_PER_MS, self._size, alike)
            self.index += alike

    def _wake(self) -> None:
        self.tell()
        self.resting, self._left = False, 0
        if self._attached:
            self.watch.start()
        self.hooks.wake()
        self._row_at, self._decide_at = self.index, self.index + ROW_STEPS

    def _adapt(self) -> None:
        """Time fewer steps where the meter's own work would show."""
        mean_s = self.totals.timed_s
        own_s = max(self.marks.own_s / self.totals.timed, self.turns.timing_s)
        if mean_s > 0:
            self.every = max(1, min(MOST_SPARSE, math.ceil(own_s / mean_s / BUDGET_RATIO)))

    @property
    def work(self) -> Work | Unknown:
        """What one step computes."""
        return self.counted.work

    @property
    def own_ratio(self) -> float:
        """The meter's own work on the host over the time of all steps, since the first that was timed."""
        whole = self.totals.timed_s * max(self.index - self._first, 1)
        return (self.own.seconds - self._own_from_s) / whole if whole else 0.0

    def _on_forward(self, args: Any, kwargs: Any) -> None:
        if not self._in_step:
            return
        self._forward_seen = True
        if self._size.samples is None or self._from_forward:
            # The loop did not show its batch: what the model is given does, each of several batches of a step.
            self.tell()
            self._from_forward = True
            size = self._passes.of(kwargs or args)
            self._size = size if self._size.samples is None else together(self._size, size)
        self.counted.forward(self.model_of(), args, kwargs, self._size)

    def _on_loss(self, loss: Any) -> None:
        self.losses.saw(self.index, loss)

    def _on_wait(self, begins: bool) -> None:
        if begins:
            self._before_wait = self.marks.phase
            self.marks.mark("sync")
        else:
            self.marks.mark(self._before_wait)
