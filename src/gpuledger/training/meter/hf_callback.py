"""How is a Hugging Face Trainer measured?

    from gpuledger.training.meter.hf_callback import MeterCallback

    trainer = Trainer(..., callbacks=[MeterCallback(lake="gpuledger-data")])

A step is one update, with all the batches whose gradients it gathers.
"""

from __future__ import annotations

import inspect
from typing import Any

from gpuledger.arguments import takes
from gpuledger.training.meter.device import is_compiled
from gpuledger.training.meter.meter import Meter
from gpuledger.training.meter.report import MeterReport
from gpuledger.training.runtime import need_class

_NEEDS = ("measuring a Hugging Face Trainer", "transformers accelerate", "transformers")
_Callback: Any = need_class("TrainerCallback", *_NEEDS)


class MeterCallback(_Callback):  # type: ignore[misc]
    """Measures `trainer.train()`; takes what `Meter` takes. `report` holds the figures afterwards."""

    @takes(Meter)
    def __init__(self, *, show: bool = True, **options: Any) -> None:
        self._show, self._options = show, options
        self.meter: Meter | None = None
        self.report: MeterReport | None = None

    def on_train_begin(self, *_: Any, model: Any = None, train_dataloader: Any = None, **__: Any) -> None:
        """The model is ready."""
        self.meter = Meter(_called(model), **self._options)
        self.meter.begin_loop(train_dataloader)
        self.meter.steps.begins("data_wait")

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """The batches have arrived."""
        if self.meter is not None:
            self.meter.steps.has_batch(None, after="h2d" if self.meter.steps.cuda else "other")

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """The update is done; the next batch is waited for."""
        if self.meter is not None:
            self.meter.end_step()
            self.meter.steps.begins("data_wait")

    def _was_something_else(self, *_: Any, **__: Any) -> None:
        """The time since the step's end was not a wait for data."""
        if self.meter is not None:
            self.meter.steps.marks.rename("other")
            self.meter.steps.marks.mark("data_wait")

    on_log = on_evaluate = on_save = _was_something_else

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write what was counted."""
        if self.meter is not None:
            self.meter.steps.forgets()
            self.meter.finish()
            self.report = self.meter.report(show=self._show and self.meter.who.rank == 0)


def _called(model: Any) -> Any:
    """The module the Trainer calls. With torch_compile=True that is a compiled model around its own, but callbacks get
    its own, whose hooks then run while it is compiled and never again.
    """
    trainers = need_class("Trainer", *_NEEDS)
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, trainers):
            outer = getattr(caller, "model_wrapped", None)
            return outer if is_compiled(outer) else model
        frame = frame.f_back
    return model
