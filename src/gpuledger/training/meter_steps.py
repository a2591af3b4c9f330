"""How is a loop followed step by step: what is put in place, counted once, timed, and taken away again?

The first steps are not timed: they load kernels, compile and fill caches. In the second one the FLOPs are counted.
Steps are timed as often as keeps the meter's own work below a tenth of a percent of the loop.
"""

from __future__ import annotations

import math
import time
from typing import Any

from gpuledger.training.meter_count import Counting, StepCount, count_apart
from gpuledger.training.meter_device import Energy, is_compiled
from gpuledger.training.meter_events import EventTimer, HostTimer, Marks, Timer
from gpuledger.training.meter_hooks import Hooks
from gpuledger.training.meter_loss import LossWatch
from gpuledger.training.meter_observed import Work
from gpuledger.training.meter_sites import Site, Sites, SyncWatch
from gpuledger.training.meter_sync_debug import WINDOW_STEPS, SyncDebug
from gpuledger.training.meter_totals import Totals
from gpuledger.training.meter_units import EMPTY, SizeCache, batch_size, together
from gpuledger.units import Unknown

COUNTED_STEP = 1
BUDGET_RATIO = 0.001
ADAPT_EVERY = 10
MOST_SPARSE = 64
_COUNTED = "counted by torch on one step"
_APART = "forward pass counted by torch on tensors without data, backward taken as twice it: the model is compiled"


class Steps:
    """Follows a loop. `attach` and `detach` may come in turns: hooks are there only while a loop runs."""

    def __init__(
        self, torch: Any, model: Any | None, device: Any, *, warmup: int, count: bool, sizes: SizeCache, energy: Energy
    ) -> None:
        self.torch, self.model, self.device = torch, model, device
        self.cuda = device.type == "cuda"
        self.timer: Timer = EventTimer(torch.cuda) if self.cuda else HostTimer()
        self.totals, self.energy = Totals(), energy
        self.marks = Marks(self.timer, self.totals.took)
        self.hooks = Hooks(torch, self.marks.mark, self._on_loss, self._on_update)
        self.watch = SyncWatch(torch, self.cuda, lambda: self.marks.phase, self._on_wait)
        self.debug = SyncDebug(torch.cuda, self.watch.skip, lambda: self.watch.inside)
        self.losses = LossWatch(torch, self.timer, self.cuda)
        self.work: Work | Unknown = Unknown("FLOPs are counted in the second step, which did not come")
        self.compiled = False
        self.index = self.updates = 0
        self.every = 1
        self.warmup, self._count, self._sizes = warmup, count, sizes
        self._counting: Counting | None = None
        self._size = EMPTY
        self._begin_ms = 0
        self._updates_before = 0
        self._in_step = self._attached = False
        self._before_wait = "other"
        self._apart = self._from_forward = False
        self.hooks.on_forward = self._on_forward

    def attach(self) -> None:
        """Put the hooks in place."""
        if not self._attached:
            self._attached = True
            self.compiled = is_compiled(self.model)
            self.hooks.start(self.model)
            self.watch.start()

    def detach(self) -> None:
        """Take the hooks away; a step that did not end is left out, unless it came as far as its update."""
        if self._in_step:
            self._in_step = False
            self._stop_counting(keep=False)
            self.marks.drop()
            if self.updates > self._updates_before:
                self._passed()
        if self._attached:
            self._attached = False
            self.debug.close()
            self.watch.stop()
            self.hooks.stop()

    def begins(self, phase: str) -> None:
        """A step begins; waiting for its batch is part of it."""
        if self.index == self.warmup:
            self.watch.sites = Sites()  # set-up waits are no fault of the loop
            self.energy.begin()
        if self.cuda and self.index >= self.warmup and not self.debug.done:
            self.debug.begins()
        self._begin_ms, self._in_step, self._size = _now_ms(), True, EMPTY
        self._from_forward = False
        self._updates_before = self.updates
        first = self.warmup + (WINDOW_STEPS if self.cuda else 0)  # steps that torch warns in are slower
        if self.index >= first and (self.index - first) % self.every == 0:
            self.marks.begin(self.index, phase)
        else:
            self.marks.phase = phase

    def has_batch(self, batch: object, after: str | None = None) -> None:
        """The batch is there."""
        self._size = self._sizes.of(batch)
        self.marks.mark(after or ("h2d" if self.cuda and self._size.on_host else "other"))
        if self._count and self.index == COUNTED_STEP and isinstance(self.work, Unknown):
            self._start_counting()

    def forgets(self) -> None:
        """There was no further batch: no step."""
        self._in_step = False
        self.marks.drop()
        self.marks.phase = "other"

    def ends(self) -> None:
        """The step is over."""
        self._in_step = False
        self._stop_counting(keep=True)
        if self.marks.active:
            self.totals.size(self.index, self._size)
        self.marks.end()
        self.losses.look()
        self._passed()
        timed = self.totals.timed
        if timed and timed % ADAPT_EVERY == 0:
            self._adapt()

    def _passed(self) -> None:
        self.totals.passed(self._begin_ms, _now_ms(), self._size)
        self.index += 1

    def _adapt(self) -> None:
        """Time fewer steps where the meter's own work would show."""
        mean_s = sum(self.totals.device_s.values()) / self.totals.timed
        own_s = self.marks.own_s / self.totals.timed
        if mean_s > 0:
            self.every = max(1, min(MOST_SPARSE, math.ceil(own_s / mean_s / BUDGET_RATIO)))

    def sites(self) -> tuple[Site, ...]:
        """Every line at which the host waits, by our watch and by torch's own."""
        return (*self.watch.sites.all(), *self.debug.sites(max(self.index - self.warmup, 1)))

    @property
    def own_ratio(self) -> float:
        """The meter's own work on the host over the time of all steps."""
        timed = self.totals.timed
        whole = sum(self.totals.device_s.values()) / timed * max(self.index - self.warmup, 1) if timed else 0.0
        return self.marks.own_s / whole if whole else 0.0

    def _start_counting(self) -> None:
        if self.compiled:
            self._apart = True
            return
        self._counting = Counting(self.torch, lambda: self.marks.phase)
        self._counting.start()

    def _on_forward(self, args: Any, kwargs: Any) -> None:
        if not self._in_step:
            return
        if self._size.samples is None or self._from_forward:
            # The loop did not show its batch: what the model is given does, each of several batches of a step.
            self._from_forward = True
            self._size = together(self._size, batch_size(kwargs or args))
        if self._apart:
            self._apart = False
            self._count_apart(args, kwargs)

    def _count_apart(self, args: Any, kwargs: Any) -> None:
        try:
            self.work = self._worked(count_apart(self.torch, self.model, args, kwargs), _APART)
        except Exception as error:  # noqa: BLE001 - whatever a model does on tensors without data; the job goes on
            first = (str(error) or type(error).__name__).splitlines()[0][:120]
            self.work = Unknown(f"a compiled model is counted apart, and this one cannot be: {first}")

    def _stop_counting(self, *, keep: bool) -> None:
        self._apart = False
        counting, self._counting = self._counting, None
        if counting is not None:
            count = counting.stop()
            if keep:
                self.work = self._worked(count, _COUNTED)

    def _worked(self, count: StepCount, how: str) -> Work | Unknown:
        if not count.model_flop:
            return Unknown("the counted step held no matrix product that torch knows")
        if count.unseen:
            names = ", ".join(name for name, _ in count.unseen.most_common(3))
            how += f"; operations without a formula are left out: {names}"
        return Work(
            model_flop=count.model_flop,
            hardware_flop=count.hardware_flop,
            forward_flop=count.forward_flop,
            how=how,
            tokens=self._size.tokens,
            samples=self._size.samples,
            kernels=count.kernels,
            odd_ratio=count.odd_flop / count.product_flop if count.product_flop else 0.0,
            odd_sizes=tuple(size for size, _ in count.odd_sizes.most_common(3)),
            recompute_ratio=count.recompute_ratio,
        )

    def _on_loss(self, loss: Any) -> None:
        self.losses.saw(self.index, loss)

    def _on_update(self) -> None:
        self.updates += 1

    def _on_wait(self, begins: bool) -> None:
        if begins:
            self._before_wait = self.marks.phase
            self.marks.mark("sync")
        else:
            self.marks.mark(self._before_wait)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
