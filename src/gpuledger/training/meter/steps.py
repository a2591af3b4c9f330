"""How is a loop followed step by step: what is put in place, counted once, timed, and taken away again?

The first steps are not timed: they load kernels, compile and fill caches. In the second one the FLOPs are counted.
Steps are timed as often as keeps the meter's own work below a tenth of a percent of the loop. Where steps are so short
that even watching them would show, most are left alone and only counted (rest.py); `_rest` and `_wake` are the only
transitions between the two states.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from time import time_ns
from typing import Any, TypeVar

from gpuledger.training.meter.count import StepWork
from gpuledger.training.meter.device import Energy, is_compiled, weakly
from gpuledger.training.meter.events import EventTimer, HostTimer, LossWatch, Marks
from gpuledger.training.meter.hooks import Hooks, Watch
from gpuledger.training.meter.rest import FIRST_STEPS, LEAST_TIMED, NS_PER_MS, ROW_STEPS, Own, Resting, Rests, Watching
from gpuledger.training.meter.sites import WINDOW_STEPS, Sites, SyncDebug, SyncWatch
from gpuledger.training.meter.totals import EMPTY, BatchSize, SizeCache, Totals, together

COUNTED_STEP = 1
BUDGET_RATIO = 0.001
ADAPT_EVERY, RECENT_STEPS = 10, 5
MOST_SPARSE = 64
B = TypeVar("B")
_NO_MORE = object()


@dataclass(slots=True)
class _Step:
    """The step that runs, or the last one. `size` and `forward_seen` are those of the last watched step on a rest."""

    running: bool = False
    begin_ns: int = 0
    own_before_s: float = 0.0
    updates_before: int = 0
    size: BatchSize = EMPTY
    forward_seen: bool = False
    sized_by_forward: bool = False


class Steps:
    """Follows a loop. `attach` and `detach` may alternate: hooks are there only while a loop runs."""

    def __init__(
        self, torch: Any, model: Any | None, device: Any, *, warmup: int, count: bool, sizes: SizeCache, energy: Energy
    ) -> None:
        self.model_of, self.device, self.cuda = weakly(model), device, device.type == "cuda"
        timer = EventTimer(torch.cuda) if self.cuda else HostTimer()
        self.totals, self.energy = Totals(), energy
        self.marks = Marks(timer, self.totals.took)
        self.own, self.rests = Own(), Rests()
        self.hooks = Hooks(
            torch, self.own, self.marks.mark, self._on_forward, lambda loss: self.losses.saw(self.index, loss)
        )
        self.watch = SyncWatch(torch, self.own, self.cuda, lambda: self.marks.phase, self._on_wait)
        self.debug = SyncDebug(torch.cuda, self.watch.skip, lambda: self.watch.inside)
        self.losses = LossWatch(torch, timer, self.cuda)
        self.counted = StepWork(torch, lambda: self.marks.phase, lambda: self.hooks.forwards, wanted=count)
        self.compiled = self.in_compiled = False  # the model is; its caller is
        self.warmup, self._sizes, self._passes = warmup, sizes, SizeCache()
        # Steps in which torch warns are slower: timing starts after them.
        self._first = warmup + (WINDOW_STEPS if self.cuda else 0)
        self.index = 0
        self.watched = 0  # steps after the warm-up that were not left alone
        self.every = 1
        self.state: Watching | Resting = Watching(self._first + FIRST_STEPS)
        self._now = _Step()
        self._attached = False
        self._own_from_s = 0.0
        self._alone_s = math.inf  # the meter's own time in a step that was left alone, at best
        self._before_wait = "other"

    @property
    def resting(self) -> bool:
        """Whether steps are left alone at present."""
        return isinstance(self.state, Resting)

    def attach(self) -> None:
        """Put the hooks in place."""
        if not self._attached:
            self._attached = True
            self.compiled = is_compiled(self.model_of())
            self.hooks.start(self.model_of())
            if not self.resting:
                self.watch.start()

    def drops(self) -> None:
        """A step that did not end is left out, unless it reached its update."""
        if self._now.running:
            self._now.running = False
            self.counted.stop(self._now.size, keep=False)
            self.marks.drop()
            if self.hooks.updates > self._now.updates_before:
                self._passed()

    def detach(self) -> None:
        """Remove the hooks, whether or not a step had ended."""
        self.drops()
        self.add_up()
        if self._attached:
            self._attached = False
            self.debug.close()
            self.watch.stop()
            self.hooks.stop()

    def begins(self, phase: str) -> None:
        """A step begins; waiting for its batch is part of it."""
        at, now, state = self.own.clock(), self._now, self.state
        now.own_before_s, now.updates_before = self.own.seconds, self.hooks.updates
        now.begin_ns, now.running, now.sized_by_forward = time_ns(), True, False
        if not (isinstance(state, Resting) and state.goes_on(now.begin_ns)):
            self._begins_watched(phase)
        self.own.seconds += self.own.clock() - at

    def _begins_watched(self, phase: str) -> None:
        state = self.state if isinstance(self.state, Watching) else self._wake()
        self._now.size, self._now.forward_seen = EMPTY, False
        if self.index == self.warmup:
            self.watch.sites = Sites()  # waits during set-up are not the loop's
            self.energy.begin()
        if self.cuda and self.index >= self.warmup and not self.debug.done:
            self.debug.begins()
        if self.index == self._first:
            self._own_from_s = self.own.seconds
        if state.times(self.index, self._first, self.every):
            self.marks.begin(self.index, phase)
        else:
            self.marks.phase = phase

    def has_batch(self, batch: object, after: str | None = None) -> None:
        """The batch has arrived."""
        at = self.own.clock()
        size = self._sizes.of(batch)
        if self.resting:
            self._unlike(size)
        self._now.size = size
        self.marks.mark(after or ("h2d" if self.cuda and size.on_host else "other"))
        if self.index == COUNTED_STEP and self.counted.wanted:
            self.counted.start(compiled=self.compiled)
        self.own.seconds += self.own.clock() - at

    def forgets(self) -> None:
        """There was no further batch, so this is not a step."""
        self._now.running = False
        self.marks.drop()
        self.marks.phase = "other"

    def ends(self) -> None:
        """The step is over."""
        at, state, now = self.own.clock(), self.state, self._now
        now.running = False
        if isinstance(state, Resting):
            state.count(time_ns())
            self.rests.left_alone(state.end_ns - now.begin_ns, 1)
        else:
            self._ends_watched(state, at)
        self.own.seconds += self.own.clock() - at
        if isinstance(state, Resting):
            self._alone_s = min(self._alone_s, self.own.seconds - now.own_before_s)

    def alone(self, batches: Iterator[B]) -> Generator[B, None, bool]:
        """The batches of steps that are left alone; it returns whether there are no more of them.

        The same as `begins`, `has_batch` and `ends`, but written out: each call would show in a short step. Its own
        time is taken from the first step of each rest, which goes through those three.
        """
        rest, now = self.state, self._now
        if not isinstance(rest, Resting) or not rest.end_ns:
            return False
        hooks, size_of, first = self.hooks, self._sizes.of, rest.left
        began_ns = end_ns = time_ns()
        try:
            while rest.left > 0 and end_ns < rest.until_ns:
                now.begin_ns, now.running, now.sized_by_forward = end_ns, True, False
                now.updates_before = hooks.updates
                batch = next(batches, _NO_MORE)
                if batch is _NO_MORE:
                    self.forgets()
                    return True
                size = size_of(batch)
                if size is not now.size:
                    self._unlike(size)
                yield batch  # type: ignore[misc]
                if self.state is not rest:
                    self.ends()
                    return False
                rest.end_ns = end_ns = time_ns()
                now.running, rest.left, rest.alike = False, rest.left - 1, rest.alike + 1
            return False
        finally:
            self.own.seconds += (first - rest.left) * self._alone_s
            self.rests.left_alone(end_ns - began_ns, first - rest.left)

    def _unlike(self, size: BatchSize) -> None:
        """A step that is left alone holds a batch of another size than those before it."""
        if size is not self._now.size:
            self.add_up()
            self._now.size = size
            if size.samples is None and self.hooks.watch is Watch.UPDATES:
                self._wake()  # the model's input will show the size

    def _ends_watched(self, state: Watching, at: float) -> None:
        timed, size = self.marks.active, self._now.size
        self.counted.stop(size, keep=True)
        if timed:
            self.totals.size(self.index, size)
        self.marks.end()
        self.losses.look()
        self._passed()
        if self.index > self._first:
            self.rests.took(self.own.seconds + self.own.clock() - at - self._now.own_before_s, timed=timed)
        known = self.totals.timed
        if known and known % ADAPT_EVERY == 0:
            self._adapt()
        if self._attached and self.index >= state.decide_at and known >= LEAST_TIMED:
            self._decide()

    def _passed(self) -> None:
        self.totals.passed(self._now.begin_ns // NS_PER_MS, time_ns() // NS_PER_MS, self._now.size)
        if not self.resting and self.index >= self.warmup:
            self.watched += 1
        self.index += 1

    def _decide(self) -> None:
        """Leave the loop alone for some steps, or decide again in a while."""
        if not self.rests.known:  # each step was timed so far
            self.state = Watching(self.index + ROW_STEPS, self.index)
        elif steps := self.rests.rest_steps(self.totals.recent_s(RECENT_STEPS)):
            self._rest(steps)
        else:
            self.state = Watching(self.index + ADAPT_EVERY)

    def _rest(self, steps: int) -> None:
        self.state = Resting.begin(steps, time_ns(), self.rests.most_ms)
        self.watch.stop()
        # Where only the forward pass shows a step's size, it is still watched. A compiled model keeps its hooks, and so
        # does one whose caller is compiled: they may be part of the compiled code.
        lift = self._now.forward_seen and not self._now.sized_by_forward and not self.compiled
        self.hooks.switch(Watch.UPDATES if lift else Watch.SIZES)

    def _wake(self) -> Watching:
        self.add_up()
        self.state = Watching(self.index + ROW_STEPS, self.index)
        if self._attached:
            self.watch.start()
        self.hooks.switch(Watch.ALL)
        return self.state

    def add_up(self) -> None:
        """Add the steps that were left alone so far to the totals."""
        state = self.state
        if isinstance(state, Resting) and state.alike:
            self.totals.passed(state.begin_ms, state.end_ns // NS_PER_MS, self._now.size, state.alike)
            self.index += state.alike
            state.alike = 0

    def _adapt(self) -> None:
        """Time fewer steps where the meter's own work would show."""
        mean_s = self.totals.timed_s
        own_s = max(self.marks.own_s / self.totals.timed, self.rests.timing_s)
        if mean_s > 0:
            self.every = max(1, min(MOST_SPARSE, math.ceil(own_s / mean_s / BUDGET_RATIO)))

    @property
    def own_ratio(self) -> float:
        """The meter's own work on the host over the time of all steps, since the first that was timed."""
        whole = self.totals.timed_s * max(self.index - self._first, 1)
        return (self.own.seconds - self._own_from_s) / whole if whole else 0.0

    def _on_forward(self, args: Any, kwargs: Any) -> None:
        now = self._now
        if not now.running:
            return
        now.forward_seen = True
        if now.size.samples is None or now.sized_by_forward:
            # The loop did not show its batch, but the model's input does, for each of several batches of a step.
            self.add_up()
            now.sized_by_forward = True
            size = self._passes.of(kwargs or args)
            now.size = size if now.size.samples is None else together(now.size, size)
        self.counted.forward(self.model_of(), args, kwargs, now.size)

    def _on_wait(self, begins: bool) -> None:
        if begins:
            self._before_wait = self.marks.phase
            self.marks.mark("sync")
        else:
            self.marks.mark(self._before_wait)
