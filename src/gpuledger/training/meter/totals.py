"""What do the steps add up to: means by phase, rates, work by formula, and spans by the hour for the lake?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from statistics import median

from gpuledger.catalog.models import find_model
from gpuledger.lake.counted import CountedSpan
from gpuledger.training.flops import forward_flop, training_flop, unit_of
from gpuledger.training.meter.batch import BatchSize
from gpuledger.training.meter.events import PHASES, StepTimes
from gpuledger.training.meter.observed import Figure, StepSeconds, Work
from gpuledger.units import MS_PER_HOUR, Unknown, ratio

TERA = 1e12
# Enough steps for percentiles; more would only cost memory.
KEPT_STEPS = 4096
NOT_TIMED = Unknown("no step was timed yet")


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
        return Work(once, once, forward, f"{how}; a formula does not see recomputation", samples=1, tokens=sequence)

    return work
