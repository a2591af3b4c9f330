"""What is known of one benchmark run, of its nodes and of each of its requests?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gpuledger.units import Unknown

T = TypeVar("T")
VERSION = 1
LOOPBACK = ("localhost", "127.0.0.1", "::1")
NOT_GIVEN = "the results do not say"
NO_END = "the run has no end: it was killed, or its file is cut short"
SOME_TOKENS = "some answers do not report their tokens"
NO_TOKEN = "no token came out"  # noqa: S105 - a reason, not a secret
_SILENT = Unknown(NOT_GIVEN)


def present(values: Iterable[T | Unknown]) -> list[T]:
    """The known ones."""
    return [v for v in values if not isinstance(v, Unknown)]


@dataclass(frozen=True)
class LineFault:
    """One line, or a value on it, that could not be used. `node` is empty where the line names none."""

    line: int
    node: str
    why: str


@dataclass(frozen=True)
class Node:
    """What served: the driver's name of its GPUs and how many; `more` has everything else the runner found."""

    gpu: str | Unknown = _SILENT
    gpus: int | Unknown = _SILENT
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One request. `start_s` counts from the common start of all nodes; warm-up is before it or marked.

    `lost`: it was planned and never answered (`ok` is false, the error says why). `batch`: how many were in flight
    together where that was swept.
    """

    node: str
    request: int | str
    ok: bool
    start_s: float | Unknown = _SILENT
    ttft_s: float | Unknown = _SILENT
    latency_s: float | Unknown = _SILENT
    input_tokens: int | Unknown = _SILENT
    output_tokens: int | Unknown = _SILENT
    error: str = ""
    warmup: bool = False
    lost: bool = False
    batch: int | Unknown = _SILENT
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def span_s(self) -> tuple[float, float] | Unknown:
        """When it started and ended, from the common start."""
        if isinstance(self.start_s, Unknown) or isinstance(self.latency_s, Unknown):
            return Unknown("start or latency is not known")
        return self.start_s, self.start_s + self.latency_s

    @property
    def end_s(self) -> float | Unknown:
        """When it ended, from the common start."""
        span = self.span_s
        return span if isinstance(span, Unknown) else span[1]

    @property
    def per_token_s(self) -> float | Unknown:
        """Seconds between tokens after the first."""
        if isinstance(self.ttft_s, Unknown) or isinstance(self.latency_s, Unknown):
            return Unknown("time to the first token is not known")
        if isinstance(self.output_tokens, Unknown) or self.output_tokens < 2:
            return Unknown("fewer than two tokens")
        return (self.latency_s - self.ttft_s) / (self.output_tokens - 1)


@dataclass(frozen=True)
class Run:
    """One run: its header, its requests, how it ended.

    `planned` counts the requests to measure, without warm-up; a run without a header has none. `client`: cpu_s,
    wall_s, max_lag_s, bottleneck, why. `problems`: by node, what went wrong apart from its requests.
    """

    file: str
    planned: Mapping[str, int] | Unknown
    nodes: Mapping[str, Node]
    baseline: str | None
    wall_s: float | Unknown
    requests: tuple[Request, ...]
    ended: bool
    telemetry: str | Unknown = _SILENT
    client: Mapping[str, Any] | Unknown = _SILENT
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: tuple[LineFault, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measured(self) -> tuple[Request, ...]:
        """All requests but the warm-up."""
        return tuple(r for r in self.requests if not r.warmup)

    @property
    def answered(self) -> tuple[Request, ...]:
        """The measured requests that were answered."""
        return tuple(r for r in self.measured if r.ok)

    @property
    def names(self) -> tuple[str, ...]:
        """Every node that the header plans or names, or that sent a request, in order of first mention."""
        planned = {} if isinstance(self.planned, Unknown) else self.planned
        return tuple(dict.fromkeys((*planned, *self.nodes, *(r.node for r in self.requests))))

    @property
    def telemetry_dir(self) -> Path | Unknown:
        """The lake with the run's telemetry, next to the results file."""
        return self.telemetry if isinstance(self.telemetry, Unknown) else Path(self.file).parent / self.telemetry
