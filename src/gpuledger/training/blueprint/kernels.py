"""What does a GPU do differently from torch's plain operators: fused attention, dropout masks, autocast?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode, _get_current_function_mode

_PLAIN_ATTENTION, _PLAIN_DROPOUT = functional.scaled_dot_product_attention, functional.dropout
_ASKS_FIRST = functional.has_torch_function
FLOP_PER_MULTIPLY_ADD = 2


class _Fused(torch.autograd.Function):  # type: ignore[misc]
    """Fused attention keeps queries, keys, values, its output, a log-sum per row, and a bias where there is one."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, bias: Any) -> Any:
        same = query.shape[-1] == value.shape[-1]
        out = torch.empty_like(query) if same else query.new_empty((*query.shape[:-1], value.shape[-1]))
        log_sum = query.new_empty(query.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(query, key, value, out, log_sum, *([] if bias is None else [bias]))
        return out

    @staticmethod
    def backward(ctx: Any, *_grads: Any) -> Any:
        query, key, value, *_ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), None


class Attention:
    """Takes the place of scaled_dot_product_attention and adds up its FLOP, which no operator shows."""

    def __init__(self) -> None:
        self.forward_flop = 0
        self.calls = 0

    def __call__(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None,  # noqa: ARG002
        enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        # As seen on an H200: a learned bias whose rows do not lie in one piece (T5) takes the plain path.
        learned = attn_mask is not None and attn_mask.requires_grad and attn_mask.stride(-1) != 1
        if learned or (key.shape[1] != query.shape[1] and not enable_gqa):  # no fused kernel takes these
            return _unfused(query, key, value, attn_mask, dropout_p)
        if attn_mask is not None and attn_mask.dtype == torch.bool:  # kernels add a bias instead
            attn_mask = torch.empty_like(attn_mask, dtype=query.dtype)
        batch, heads, rows, wide = query.shape
        pairs = rows * key.shape[-2] // (2 if is_causal else 1)
        self.forward_flop += FLOP_PER_MULTIPLY_ADD * batch * heads * pairs * (wide + value.shape[-1])
        self.calls += 1
        return _Fused.apply(query, key, value, attn_mask)


def _unfused(query: Any, key: Any, value: Any, bias: Any, dropout: float) -> Any:
    """What torch does where no fused kernel fits: all of it in fp32, with the whole score matrix."""
    query, key, value, kind = query.float() * 1.0, key.float() * 1.0, value.float(), query.dtype
    scores = query @ key.transpose(-2, -1)
    if bias is not None:
        scores = scores.add_(bias)
    return (_dropout(torch.softmax(scores, -1), dropout) @ value).to(kind)


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:  # noqa: A002, ARG001
    """On a GPU a dropout keeps a mask of one byte per number."""
    return torch.native_dropout(input, p, True)[0] if training and p > 0 else input


class Autocast(TorchFunctionMode):  # type: ignore[misc]
    """torch.autocast for the meta device, which has none: products in 16 bits, sums that need it in fp32."""

    _narrow = frozenset({
        functional.linear, functional.conv1d, functional.conv2d, functional.conv3d, torch.conv1d, torch.conv2d,
        torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.bmm, torch.Tensor.bmm, torch.addmm,
        torch.baddbmm, torch.einsum,
    })  # fmt: skip
    _wide = frozenset({
        functional.layer_norm, functional.group_norm, functional.softmax, functional.log_softmax, torch.softmax,
        torch.Tensor.softmax, functional.cross_entropy, torch.pow, torch.Tensor.pow, torch.rsqrt, torch.exp,
        functional.rms_norm, functional.interpolate, functional.mse_loss,
    })  # fmt: skip

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.casts: dict[int, Any] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        kind = torch.bfloat16 if func in self._narrow else torch.float32 if func in self._wide else None
        if kind is not None:
            args = tuple(self._cast(value, kind) for value in args)
            given = {name: self._cast(value, kind) for name, value in given.items()}
        return func(*args, **given)

    def _cast(self, value: Any, kind: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._cast(one, kind) for one in value)
        if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point or value.dtype == kind:
            return value
        if not isinstance(value, torch.nn.Parameter):
            return value.to(kind)
        if id(value) not in self.casts:  # a weight is cast once per pass
            self.casts[id(value)] = value.to(kind)
        return self.casts[id(value)]

    def narrowed(self, *tensors: Any) -> Iterator[Any]:
        """Tensors as autocast hands them to fused attention."""
        return (self._cast(tensor, torch.bfloat16) for tensor in tensors)


def cast_again() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """What surrounds a part that is computed again in the backward pass, where torch has left this autocast."""
    mode = _get_current_function_mode()
    return nullcontext(), mode if isinstance(mode, Autocast) else nullcontext()


@contextmanager
def as_on_gpu(*, autocast: bool) -> Iterator[Attention]:
    """Within: attention, dropout and casts behave as on a GPU."""
    attention = Attention()
    with ExitStack() as stack:
        run: Any = attention
        if autocast:
            mode = stack.enter_context(Autocast(attention))

            def run(query: Any, key: Any, value: Any, *rest: Any, **named: Any) -> Any:
                return attention(*mode.narrowed(query, key, value), *rest, **named)

        functional.scaled_dot_product_attention, functional.dropout = run, _dropout
        # torch's own multi-head attention would run outside of the mode that asked for it, and cast nothing.
        functional.has_torch_function = lambda _tensors: False
        try:
            yield attention
        finally:
            functional.scaled_dot_product_attention, functional.dropout = _PLAIN_ATTENTION, _PLAIN_DROPOUT
            functional.has_torch_function = _ASKS_FIRST
