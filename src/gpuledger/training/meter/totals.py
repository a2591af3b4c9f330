"""How many samples and tokens does a batch hold, and what do the steps add up to: means, rates, work, spans?"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import Any

from gpuledger.catalog.models import find_model
from gpuledger.catalog.models.shapes import CnnShape
from gpuledger.lake.counted import CountedSpan
from gpuledger.training.flops import forward_flop, training_flop, unit_of
from gpuledger.training.meter.events import PHASES, StepTimes
from gpuledger.training.meter.observed import Figure, StepSeconds, Work
from gpuledger.units import MS_PER_HOUR, Unknown, ratio

TERA = 1e12
# Enough steps for percentiles; more would only cost memory.
KEPT_STEPS = 4096
NOT_TIMED = Unknown("no step was timed yet")
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


@dataclass(slots=True)
class _Hour:
    start_ms: int
    end_ms: int
    steps: int = 0
    tokens: int | None = None
    samples: int | None = None


@dataclass
class Totals:
    """Sums over the steps; a step's size is kept until its times are known."""

    device_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    host_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_STEPS))
    timed: int = 0
    steps: int = 0
    sequence: int | None = None
    _sizes: dict[int, BatchSize] = field(default_factory=dict)
    _held: dict[str, tuple[float, int]] = field(default_factory=lambda: {"tokens": (0.0, 0), "samples": (0.0, 0)})
    _bytes: float = 0.0
    _hours: dict[int, _Hour] = field(default_factory=dict)

    def size(self, index: int, size: BatchSize) -> None:
        """What the batch of a timed step holds."""
        self._sizes[index] = size

    def took(self, step: StepTimes) -> None:
        """A step's times are known."""
        size = self._sizes.pop(step.index, BatchSize())
        self.timed += 1
        self.seconds.append(step.seconds)
        for phase in PHASES:
            self.device_s[phase] += step.device_s[phase]
            self.host_s[phase] += step.host_s[phase]
        for name, (held, steps) in self._held.items():
            if (held_now := getattr(size, name)) is not None:
                self._held[name] = held + held_now, steps + 1
        self._bytes += size.bytes if size.on_host else 0
        self.sequence = size.sequence or self.sequence

    def passed(self, begin_ms: int, end_ms: int, size: BatchSize, steps: int = 1) -> None:
        """A step is over, timed or not, or several alike: they belong to the hour they began in."""
        self.steps += steps
        hour = self._hours.get(begin_ms // MS_PER_HOUR)
        if hour is None:
            hour = self._hours[begin_ms // MS_PER_HOUR] = _Hour(begin_ms, end_ms)
        hour.end_ms = end_ms
        hour.steps += steps
        if size.tokens is not None:
            hour.tokens = (hour.tokens or 0) + steps * size.tokens
        if size.samples is not None:
            hour.samples = (hour.samples or 0) + steps * size.samples

    @property
    def timed_s(self) -> float:
        """The mean of the timed steps; 0 before there are any."""
        return sum(self.device_s.values()) / self.timed if self.timed else 0.0

    def mean(self, sums: dict[str, float], share: float = 1.0) -> dict[str, float]:
        """Seconds of a step by phase; `share`: how much of a timed step is the loop's own."""
        return {phase: share * value / self.timed if self.timed else 0.0 for phase, value in sums.items()}

    def recent_s(self, steps: int) -> float:
        """The median of the last timed steps."""
        return median(islice(reversed(self.seconds), steps)) if self.seconds else 0.0

    def step_seconds(self, share: float = 1.0) -> StepSeconds | Unknown:
        """Percentiles of the last steps, mean of all; `share` as for the mean."""
        if not self.timed:
            return NOT_TIMED
        ordered = sorted(self.seconds)
        low, middle, high = (share * ordered[min(int(q * len(ordered)), len(ordered) - 1)] for q in (0.1, 0.5, 0.9))
        return StepSeconds(low, middle, high, share * self.timed_s)

    @property
    def tokens_per_step(self) -> Figure:
        """Mean over the timed steps."""
        return ratio(*self._held["tokens"], "the batches hold no tokens")

    @property
    def samples_per_step(self) -> Figure:
        """Mean over the timed steps."""
        return ratio(*self._held["samples"], "the batches hold no tensors")

    @property
    def bytes_per_step(self) -> float:
        """What a batch brings from the host."""
        return self._bytes / self.timed if self.timed else 0.0

    def spans(self, work: Work | Unknown) -> tuple[CountedSpan, ...]:
        """By the hour, with FLOPs in proportion to the counted step."""
        return tuple(_span(hour, work) for _, hour in sorted(self._hours.items()))


def _span(hour: _Hour, work: Work | Unknown) -> CountedSpan:
    hardware = model = None
    if not isinstance(work, Unknown):
        like = work.steps_like(hour.steps, hour.tokens, hour.samples)
        hardware, model = like * work.hardware_flop / TERA, like * work.model_flop / TERA
    return CountedSpan(
        start_ms=hour.start_ms, end_ms=hour.end_ms, steps=hour.steps, tflop=hardware, model_tflop=model,
        tokens=hour.tokens, samples=hour.samples,
    )  # fmt: skip


def by_formula(name: str) -> Callable[[Totals], Work | Unknown] | Unknown:
    """The work of a step by the closed formula of a model of the catalog; unknown where there is none."""
    model = find_model(name)
    if isinstance(model, Unknown):
        return model
    shape, per = model.shape, unit_of(model.shape)
    if isinstance(tried := forward_flop(shape, 1, 1), Unknown):
        return tried

    convolves = isinstance(shape, CnnShape)

    def work(totals: Totals) -> Work | Unknown:
        samples, sequence = totals.samples_per_step, totals.sequence
        if isinstance(samples, Unknown):
            return samples
        if per == "token" and sequence is None:
            return Unknown("the batches do not show a sequence length, which the formula needs")
        # One sample, then in proportion: a mean batch need not be a whole number.
        once, forward = training_flop(shape, 1, sequence), forward_flop(shape, 1, sequence)
        if isinstance(once, Unknown) or isinstance(forward, Unknown):
            return once if isinstance(once, Unknown) else Unknown("no formula is known")
        how = f"by formula of {model.name}" + (f" at {sequence} tokens per sequence" if sequence else "")
        how += "; a formula does not see recomputation"
        return Work(once, once, forward, how, samples=1, tokens=sequence, convolution_ratio=float(convolves))

    return work
