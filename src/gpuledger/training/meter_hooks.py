"""Where do the forward pass, the backward pass and the update begin and end in a loop we did not write?

Three places of torch are watched: the model's own forward hooks, `torch.autograd.backward` (every loss.backward() goes
through it) and the hooks of every optimizer. All are taken away again when the meter ends.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

Mark = Callable[[str], None]


class Hooks:
    """Calls `mark(phase)` where a phase begins; `on_loss` gets what the backward pass starts from."""

    def __init__(self, torch: Any, mark: Mark, on_loss: Callable[[Any], None], on_update: Callable[[], None]) -> None:
        self._torch, self._mark, self._on_loss, self._on_update = torch, mark, on_loss, on_update
        self._undo: list[Callable[[], None]] = []
        self._compiling: Callable[[], bool] = torch.compiler.is_compiling
        self._deep = 0
        self._updating = False  # some optimizers run the passes themselves, by a closure
        self.on_forward: Callable[[Any, Any], None] = lambda _args, _kwargs: None
        self.forwards = self.backwards = 0
        self.autocast: Any = None
        self.optimizer = ""
        self.fused: bool | None = None

    def start(self, model: Any | None) -> None:
        """Put the hooks in place; without a model the forward pass is not told from what is before it."""
        if model is not None:
            before = model.register_forward_pre_hook(self._forward_begins, with_kwargs=True)
            after = model.register_forward_hook(self._forward_ends)
            self._undo += [before.remove, after.remove]
        self._watch_backward()
        optim = importlib.import_module("torch.optim.optimizer")
        pre = optim.register_optimizer_step_pre_hook(self._update_begins)
        post = optim.register_optimizer_step_post_hook(self._update_ends)
        self._undo += [pre.remove, post.remove]

    def stop(self) -> None:
        """Everything as it was."""
        while self._undo:
            self._undo.pop()()

    def _forward_begins(self, _module: Any, args: Any, kwargs: Any) -> None:
        torch = self._torch
        if self._compiling():
            return
        self.forwards += 1
        training = torch.is_grad_enabled()
        if training:
            self.on_forward(args, kwargs)
        if training and self.autocast is None:
            kind = "cuda" if torch.is_autocast_enabled("cuda") else "cpu"
            self.autocast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else False
        self._mark("forward" if training else "other")

    def _forward_ends(self, _module: Any, _args: Any, _out: Any) -> None:
        # With gradients the loss follows: it is part of the forward pass until the backward pass begins.
        if not self._torch.is_grad_enabled() and not self._compiling():
            self._mark("other")

    def _watch_backward(self) -> None:
        autograd = self._torch.autograd
        original = autograd.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self._deep or self._compiling():
                return original(*args, **kwargs)  # recomputation goes backward within the backward pass
            self._deep += 1
            self.backwards += 1
            self._on_loss(args[0] if args else kwargs.get("tensors"))
            self._mark("backward")
            try:
                return original(*args, **kwargs)
            finally:
                self._deep -= 1
                self._mark("optimizer" if self._updating else "other")

        autograd.backward = backward

        def undo() -> None:
            # Somebody may have put himself around us since; then he keeps what he holds.
            if autograd.backward is backward:
                autograd.backward = original

        self._undo.append(undo)

    def _update_begins(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self.optimizer:
            self.optimizer = type(optimizer).__name__
            self.fused = bool(optimizer.defaults["fused"]) if "fused" in optimizer.defaults else None
        self._updating = True
        self._mark("optimizer")

    def _update_ends(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._updating = False
        self._on_update()
        self._mark("other")
