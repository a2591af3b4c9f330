"""How many samples and tokens does a batch hold?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What language models call their tokens; looked for first, as other tensors of a batch may be integers too.
TOKEN_NAMES = ("input_ids", "tokens", "decoder_input_ids")
_DEPTH = 4


@dataclass(frozen=True)
class BatchSize:
    """What one batch holds; None where it does not show. `sequence` is the length of its longest sample."""

    samples: int | None = None
    tokens: int | None = None
    sequence: int | None = None
    bytes: int = 0
    on_host: bool = False
    pinned: bool | None = None


EMPTY = BatchSize()


def batch_size(batch: object, samples: int | None = None, tokens: int | None = None) -> BatchSize:
    """By the first tensor of the batch; integers in two dimensions are taken as tokens. Given figures win."""
    named = _named(batch)
    tensors = list(_tensors(batch))
    first = named if named is not None else (tensors[0] if tensors else None)
    if first is None:
        return BatchSize(samples, tokens)
    shape = tuple(int(n) for n in first.shape)
    is_tokens = named is not None or (len(shape) == 2 and _is_integer(first))
    if samples is None and shape:
        samples = shape[0]
    if tokens is None and is_tokens and shape:
        tokens = math.prod(shape)
    held = [t for t in tensors if str(getattr(getattr(t, "device", None), "type", "cpu")) == "cpu"]
    return BatchSize(
        samples=samples,
        tokens=tokens,
        sequence=shape[1] if is_tokens and len(shape) == 2 else None,
        bytes=sum(int(getattr(t, "nbytes", 0)) for t in tensors),
        on_host=bool(held),
        pinned=_pinned(held[0]) if held else None,
    )


class SizeCache:
    """Sizes by shape of the first tensor: nearly all batches of a run are alike, and a close look costs time.

    The size of a batch that cannot be looked at is unknown.
    """

    def __init__(self, samples: int | None = None, tokens: int | None = None) -> None:
        self._given = samples, tokens
        self._silent = BatchSize(samples, tokens)
        self._known: dict[object, BatchSize] = {}
        self._last: tuple[object, object, object, BatchSize] = (None, None, None, EMPTY)

    def of(self, batch: object) -> BatchSize:
        """What a batch holds."""
        if batch is None:
            return self._silent
        try:
            return self._of(batch)
        except Exception:  # noqa: BLE001 - whatever a user's batch raises when it is looked at; the job goes on
            return self._silent

    def _of(self, batch: object) -> BatchSize:
        kind: object = type(batch)
        first: Any = batch
        if (kind is list or kind is tuple) and batch:
            first = batch[0]  # type: ignore[index]
        elif kind is dict or isinstance(batch, Mapping):
            first = _named(batch)
            if first is None:
                first = next((v for v in batch.values() if hasattr(v, "shape")), None)  # type: ignore[attr-defined]
        if not hasattr(first, "shape"):
            return batch_size(batch, *self._given)
        shape, dtype = first.shape, getattr(first, "dtype", None)
        last = self._last
        if kind is last[0] and dtype is last[1] and shape == last[2]:
            return last[3]
        key = kind, shape, dtype
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = batch_size(batch, *self._given)
        self._last = kind, dtype, shape, found
        return found


def together(one: BatchSize, other: BatchSize) -> BatchSize:
    """Two batches of one step, where gradients are accumulated."""

    def plus(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else a + b

    return BatchSize(
        samples=plus(one.samples, other.samples),
        tokens=plus(one.tokens, other.tokens),
        sequence=other.sequence or one.sequence,
        bytes=one.bytes + other.bytes,
        on_host=one.on_host or other.on_host,
        pinned=other.pinned if one.pinned is None else one.pinned,
    )


def _named(batch: object) -> Any:
    if isinstance(batch, Mapping):
        return next((batch[name] for name in TOKEN_NAMES if hasattr(batch.get(name), "shape")), None)
    return None


def _tensors(batch: object, depth: int = _DEPTH) -> Iterator[Any]:
    if hasattr(batch, "shape") and hasattr(batch, "dtype"):
        yield batch
    elif depth and isinstance(batch, Mapping | Sequence) and not isinstance(batch, str | bytes):
        for value in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _tensors(value, depth - 1)


def _is_integer(tensor: Any) -> bool:
    floating = getattr(tensor.dtype, "is_floating_point", None)
    if floating is None:
        return getattr(tensor.dtype, "kind", "") in {"i", "u"}
    return not floating and "int" in str(tensor.dtype)


def _pinned(tensor: Any) -> bool | None:
    asks = getattr(tensor, "is_pinned", None)
    try:
        return bool(asks()) if asks is not None else None
    except RuntimeError:
        return None  # a torch without CUDA has no pinned memory
