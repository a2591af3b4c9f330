"""Where do the forward pass, the backward pass and the update begin and end in a loop we did not write?

Three places of torch are watched: the model's own forward hooks, `torch.autograd.backward` (every loss.backward() goes
through it) and the hooks of every optimizer. All are removed when the meter ends; those of the forward pass also while
the loop is left alone, as torch calls a module with hooks in a slower way.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from gpuledger.training.meter.rest import Own

Mark = Callable[[str], None]


class Watch(Enum):
    """What the hooks look at."""

    ALL = auto()  # phases, inputs and updates
    SIZES = auto()  # inputs and updates
    UPDATES = auto()  # updates only; the hooks of the forward pass are removed


class Hooks:
    """Calls `mark(phase)` where a phase begins, `on_forward` with the model's input, `on_loss` with the loss."""

    def __init__(
        self, torch: Any, own: Own, mark: Mark, on_forward: Callable[[Any, Any], None], on_loss: Callable[[Any], None]
    ) -> None:
        self._torch, self._own, self._mark = torch, own, mark
        self._on_forward, self._on_loss = on_forward, on_loss
        self._optim = importlib.import_module("torch.optim.optimizer")
        self._compiling: Callable[[], bool] = torch.compiler.is_compiling
        self._model: Any | None = None
        self._backward: Any | None = None
        self._undo_forward: list[Callable[[], None]] = []
        self._undo_update: list[Callable[[], None]] = []
        self.watch, self._started = Watch.ALL, False
        self._deep = 0
        self._updating = False  # some optimizers run the passes themselves, by a closure
        self.forwards = self.backwards = self.updates = 0
        self.optimizer = ""
        self.fused: bool | None = None

    def start(self, model: Any | None) -> None:
        """Put the hooks in place; without a model the forward pass is not separated from what is before it."""
        self._model, self._started = model, True
        self._apply()

    def stop(self) -> None:
        """Remove them all."""
        self._model, self._started = None, False
        self._apply()
        if self._backward is not None:
            self._backward.let_go, self._backward = True, None

    def switch(self, watch: Watch) -> None:
        """Look at more or less from here on."""
        self.watch = watch
        self._apply()

    def _apply(self) -> None:
        """Put in place what is wanted and is not, and remove the rest."""
        if self._model is None or self.watch is Watch.UPDATES:
            _undone(self._undo_forward)
        elif not self._undo_forward:
            self._watch_forward(self._model)
        _undone(self._undo_update)
        post = self._optim.register_optimizer_step_post_hook
        if not self._started or self.watch is not Watch.ALL:
            self._leave_backward()
            if self._started:
                self._undo_update.append(post(self._updated).remove)
            return
        self._watch_backward()
        pre = self._optim.register_optimizer_step_pre_hook(self._update_begins)
        self._undo_update += [pre.remove, post(self._update_ends).remove]

    def _watch_forward(self, model: Any) -> None:
        try:
            before = model.register_forward_pre_hook(_Hook(self._forward_begins), with_kwargs=True)
            self._undo_forward.append(before.remove)
            self._undo_forward.append(model.register_forward_hook(_Hook(self._forward_ends)).remove)
        except RuntimeError:  # a scripted model takes none of these: its passes are not seen, and a note reports it
            _undone(self._undo_forward)

    def _forward_begins(self, _module: Any, args: Any, kwargs: Any) -> None:
        if self._compiling():
            return
        at = self._own.clock()
        training = self._torch.is_grad_enabled()
        if training:
            self._on_forward(args, kwargs)
        if self.watch is Watch.ALL:
            self.forwards += 1
            self._mark("forward" if training else "other")
        self._own.seconds += self._own.clock() - at

    def _forward_ends(self, _module: Any, _args: Any, _out: Any) -> None:
        # With gradients the loss follows: it is part of the forward pass until the backward pass begins.
        if not self._torch.is_grad_enabled() and not self._compiling() and self.watch is Watch.ALL:
            self._mark("other")

    def _watch_backward(self) -> None:
        autograd = self._torch.autograd
        if self._backward is not None and autograd.backward is not self._backward.below:
            return  # it is still in place, inside a wrapper of other code
        original, own, compiling = autograd.backward, self._own, self._compiling

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            # While it is compiled nothing else is read: a value that changes later would compile it again.
            if compiling() or self.watch is not Watch.ALL or self._deep or self._backward is not backward:
                return original(*args, **kwargs)  # recomputation goes backward within the backward pass
            at = own.clock()
            self._deep += 1
            self.backwards += 1
            self._on_loss(args[0] if args else kwargs.get("tensors"))
            self._mark("backward")
            own.seconds += own.clock() - at
            try:
                return original(*args, **kwargs)
            finally:
                at = own.clock()
                self._deep -= 1
                self._mark("optimizer" if self._updating else "other")
                own.seconds += own.clock() - at

        backward.below, backward.let_go = original, False  # type: ignore[attr-defined]
        autograd.backward = self._backward = backward

    def _leave_backward(self) -> None:
        autograd, mine = self._torch.autograd, self._backward
        if mine is None or autograd.backward is not mine:
            return  # other code has wrapped ours since: it keeps what it holds, and ours passes every call through
        self._backward, below = None, mine.below
        while getattr(below, "let_go", False):  # of another meter, which was not the outermost when it ended
            below = below.below
        autograd.backward = below

    def _update_begins(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        at = self._own.clock()
        if not self.optimizer:
            self.optimizer = type(optimizer).__name__
            self.fused = bool(optimizer.defaults["fused"]) if "fused" in optimizer.defaults else None
        self._updating = True
        self._mark("optimizer")
        self._own.seconds += self._own.clock() - at

    def _update_ends(self, *given: Any) -> None:
        at = self._own.clock()
        self._updated(*given)
        self._mark("other")
        self._own.seconds += self._own.clock() - at

    def _updated(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._updating = False
        self.updates += 1


class _Hook:
    """A model's hook of ours. A copy of the model, in memory or in a file, gets one that does nothing instead, made of
    Python's own parts: it must load where this package is not installed.
    """

    def __init__(self, does: Callable[..., None]) -> None:
        self._does = does

    def __call__(self, *given: Any) -> None:
        self._does(*given)

    def __reduce__(self) -> Any:
        return functools.partial, (sys.audit, "gpuledger.metered")


def _undone(undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()
