"""What is the demand: single requests, or a rate for every step?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BIN_S = 300.0
LEAST_STEPS = 12


@dataclass(frozen=True)
class Trace:
    """Requests by arrival, or rates by step; times are seconds from the start of the trace.

    `at_s`: arrivals, in order (None where only rates are known). `generated`: tokens of each request. `rates_per_s`:
    requests per second in each step of `step_s`. `clock_s`: seconds since 1970 at which each step starts, or since an
    unknown start (`dated` is False). `read_as`: what was taken for what. `notes`: what is unusual.
    """

    source: str
    rates_per_s: np.ndarray
    step_s: float
    clock_s: np.ndarray
    dated: bool
    at_s: np.ndarray | None = None
    generated: np.ndarray | None = None
    read_as: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def length_s(self) -> float:
        """How long the trace is."""
        return len(self.rates_per_s) * self.step_s

    @property
    def requests(self) -> float:
        """How many requests it has: counted where they are known, so that rounding cannot add one."""
        return float(self.rates_per_s.sum() * self.step_s if self.at_s is None else len(self.at_s))

    @property
    def mean_tokens(self) -> float | None:
        """Generated tokens per request."""
        return None if self.generated is None or not len(self.generated) else float(self.generated.mean())

    def first(self, until_s: float) -> Trace:
        """The part before an instant, to a whole step."""
        steps = max(1, round(until_s / self.step_s))
        kept = None if self.at_s is None else int(np.searchsorted(self.at_s, steps * self.step_s))
        return Trace(
            self.source, self.rates_per_s[:steps], self.step_s, self.clock_s[:steps], self.dated,
            None if self.at_s is None else self.at_s[:kept],
            None if self.generated is None else self.generated[:kept], self.read_as, self.notes,
        )  # fmt: skip


def of_requests(
    source: str, at_s: np.ndarray, generated: np.ndarray | None, start_s: float, *, dated: bool, **more: tuple[str, ...]
) -> Trace:
    """A trace of single requests; `at_s` counts from the first of them, which arrives at `start_s` on the clock."""
    length = float(at_s[-1])
    steps = max(LEAST_STEPS, round(length / BIN_S))
    step = length / steps
    counts = np.bincount(np.minimum((at_s / step).astype(np.int64), steps - 1), minlength=steps)
    clock = start_s + step * np.arange(steps)
    return Trace(source, counts / step, step, clock, dated, at_s, generated, **more)


@dataclass(frozen=True)
class Arrivals:
    """Requests to replay: when each arrives, in order, and how long it takes."""

    at_s: np.ndarray
    service_s: np.ndarray

    def before(self, until_s: float) -> Arrivals:
        """Those that arrive before an instant."""
        kept = int(np.searchsorted(self.at_s, until_s))
        return Arrivals(self.at_s[:kept], self.service_s[:kept])


def arrivals_of(trace: Trace, service_s: float, seed: int) -> Arrivals:
    """The requests of a trace; drawn from its rates where it has no requests (Poisson within each step).

    Service times follow the generated tokens where they are known, else they are exponential; their mean is
    `service_s`.
    """
    random = np.random.default_rng(seed)
    at = trace.at_s
    if at is None:
        counts = random.poisson(trace.rates_per_s * trace.step_s)
        starts = np.repeat(np.arange(len(counts)) * trace.step_s, counts)
        at = np.sort(starts + random.random(len(starts)) * trace.step_s)
    if trace.generated is not None and trace.mean_tokens:
        return Arrivals(at, trace.generated * (service_s / trace.mean_tokens))
    return Arrivals(at, random.exponential(service_s, len(at)))
