"""How is a Lightning Trainer measured?

from gpuledger.training.meter.lightning_callback import MeterCallback

trainer = Trainer(..., callbacks=[MeterCallback(lake="gpuledger-data")])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gpuledger.arguments import takes
from gpuledger.training.meter.meter import Meter
from gpuledger.training.meter.report import MeterReport
from gpuledger.training.runtime import need_class

# Both names of the library may be installed, and a Trainer accepts only callbacks of its own.
_HOMES = ("lightning.pytorch", "pytorch_lightning")
_Callback: Any = need_class("Callback", "measuring a Lightning Trainer", "lightning", *_HOMES)


class MeterCallback(_Callback):  # type: ignore[misc]
    """Measures `trainer.fit()`; takes what `Meter` takes. `report` holds the figures afterwards."""

    @takes(Meter)
    def __init__(self, *, show: bool = True, **options: Any) -> None:
        super().__init__()
        self._show, self._options = show, options
        self.meter: Meter | None = None
        self.report: MeterReport | None = None
        self._undo: list[Callable[[], None]] = []

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Everything is on its device."""
        self.meter = meter = Meter(pl_module, **self._options)
        meter.begin_loop(trainer.train_dataloader)
        # Lightning compiles the steps of the module it was given, not the module.
        meter.steps.in_compiled = getattr(pl_module, "_compiler_ctx", None) is not None
        self._around(meter, trainer.strategy, "batch_to_device", "h2d", "other")
        self._around(meter, trainer.strategy, "training_step", "forward", "forward")
        meter.steps.begins("data_wait")

    def _around(self, meter: Meter, owner: Any, name: str, phase: str, after: str) -> None:
        """Mark a phase around what Lightning calls by this name."""
        original, marks = getattr(owner, name), meter.steps.marks

        @functools.wraps(original)
        def marked(*args: Any, **kwargs: Any) -> Any:
            marks.mark(phase)
            try:
                return original(*args, **kwargs)
            finally:
                marks.mark(after)

        setattr(owner, name, marked)
        self._undo.append(lambda: delattr(owner, name))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        """The batch is on the device."""
        if self.meter is not None:
            self.meter.steps.hooks.forwards += 1
            self.meter.steps.has_batch(batch, after="other")

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """The step is over; the next batch is waited for."""
        if self.meter is not None:
            self.meter.end_step()
            self.meter.steps.begins("data_wait")

    def on_validation_start(self, *_: Any, **__: Any) -> None:
        """Not a training step."""
        if self.meter is not None:
            self.meter.steps.marks.mark("other")

    def on_validation_end(self, *_: Any, **__: Any) -> None:
        """Training goes on."""
        if self.meter is not None:
            self.meter.steps.marks.mark("data_wait")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Write what was counted."""
        self._end(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """The job raised: nothing that was counted is lost."""
        self._end(exception)

    def _end(self, error: BaseException | None) -> None:
        while self._undo:
            self._undo.pop()()
        if self.meter is not None and self.report is None:
            if error is None:
                self.meter.steps.forgets()
            self.meter.finish(error)
            self.report = self.meter.report(show=self._show and self.meter.who.rank == 0)
