"""How many floating-point operations does this very module take, counted while it runs?

torch counts matrix products, convolutions and attention as they are dispatched. What it leaves out is added here: its
attention on the CPU, and grouped products as experts use them. Kernels nobody can see into (hand-written ones, some
fused attention libraries) count as nothing: run the plain version of the module to count it. On the meta device a
module of any size is counted without memory for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.errors import InputError, MissingExtra

FLOP_PER_MULTIPLY_ADD = 2
_ATTENTION = "_scaled_dot_product_{}_attention"
_ATTENTIONS = (
    *(_ATTENTION.format(kind) for kind in ("flash", "efficient", "cudnn")),
    f"{_ATTENTION.format('flash')}_for_cpu",
)
Size = Sequence[int]


@dataclass(frozen=True)
class Counted:
    """FLOP of one run, in all and by operator, largest first."""

    flop: int
    by_operator: Mapping[str, int]


def count(run: Callable[[], Any], *, hardware: bool = False) -> Counted:
    """FLOP of whatever `run` does, backward passes within it included.

    Fused attention computes its scores a second time on the way back. That is the hardware's work and not the
    model's, so it counts only with `hardware` (for HFU). Checkpointed layers that run again always count: compare with
    the formulas of `training.flops` where activations are recomputed.
    """
    torch = _torch()
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False, custom_mapping=_formulas(torch.ops.aten, hardware=hardware)) as counter:
        run()
    by_operator = {_plain(op): int(flop) for op, flop in counter.get_flop_counts().get("Global", {}).items()}
    ordered = dict(sorted(by_operator.items(), key=lambda item: -item[1]))
    return Counted(int(counter.get_total_flops()), ordered)


def _formulas(aten: Any, *, hardware: bool) -> dict[Any, Callable[..., int]]:
    """What torch leaves out or counts otherwise, by operator; those this torch does not have are passed over."""

    def back(_grad: Size, query: Size, key: Size, value: Size, *_rest: Any, **_named: Any) -> int:
        scores = _product(query, key[-2], query[-1]) if hardware else 0
        return 2 * _attention(query, key, value) + scores

    wanted: dict[str, Callable[..., int]] = dict.fromkeys(_ATTENTIONS, _attention)
    wanted |= {f"{name}_backward": back for name in _ATTENTIONS}
    wanted["_grouped_mm"] = _grouped
    return {getattr(aten, name): formula for name, formula in wanted.items() if hasattr(aten, name)}


def _attention(query: Size, key: Size, value: Size, *_rest: Any, **_named: Any) -> int:
    """Scores, then values; keys and values may have fewer heads than queries."""
    return _product(query, key[-2], query[-1]) + _product(query, key[-2], value[-1])


def _product(query: Size, keys: int, wide: int) -> int:
    batch, heads, queries, _ = query
    return FLOP_PER_MULTIPLY_ADD * batch * heads * queries * keys * wide


def _grouped(left: Size, right: Size, *_rest: Any, **_named: Any) -> int:
    """A product in groups: rows are shared out among the groups unless both sides have one matrix a group."""
    groups = left[0] if len(left) == len(right) == 3 else 1
    return FLOP_PER_MULTIPLY_ADD * groups * left[-2] * left[-1] * right[-1]


def count_forward(module: Any, *args: Any, **kwargs: Any) -> Counted:
    """FLOP of one forward pass of a module."""
    torch = _torch()

    def run() -> None:
        with torch.no_grad():
            module(*args, **kwargs)

    return count(run)


def count_training(module: Any, *args: Any, loss: Callable[[Any], Any] | None = None, **kwargs: Any) -> Counted:
    """FLOP of one forward and backward pass; `loss` makes one number of what the module gives back.

    Without it the module's own `loss` is used (Hugging Face models with labels), else the sum of what it gives back.
    """

    def run() -> None:
        out = module(*args, **kwargs)
        made = loss(out) if loss else _loss_of(out)
        if getattr(made, "grad_fn", None) is None:
            raise InputError("the loss has nothing to go back through", hint="give a module in training, or loss=...")
        made.backward()

    counted = count(run)
    module.zero_grad(set_to_none=True)  # counting must not leave a trace in the next step
    return counted


def _loss_of(out: Any) -> Any:
    made = getattr(out, "loss", None)
    if made is not None:
        return made
    tensor = getattr(out, "logits", out)
    if isinstance(tensor, tuple | list):
        tensor = tensor[0]
    return tensor.float().sum()


def _plain(operator: Any) -> str:
    return str(operator).removeprefix("aten.").removeprefix("aten::")


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra("counting the FLOP of a module", "train") from error
