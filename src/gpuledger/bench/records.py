"""What is known of one benchmark run, of its nodes and of each of its requests?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuledger.units import Unknown

VERSION = 1
NOT_GIVEN = "the results do not say"
NO_END = "the run has no end: it was killed, or its file is cut short"
_SILENT = Unknown(NOT_GIVEN)


@dataclass(frozen=True)
class LineFault:
    """One line, or a value on it, that could not be used. `node` is empty where the line names none."""

    line: int
    node: str
    why: str


@dataclass(frozen=True)
class Node:
    """What served: the driver's name of its GPUs and how many; `more` has all else the runner found."""

    gpu: str | Unknown = _SILENT
    gpus: int | Unknown = _SILENT
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One request. Seconds of start are from the common start of all nodes; warm-up is before it or marked.

    `lost`: it was planned and never came to an answer (`ok` is false, the error says why). `batch`: how many were in
    flight together where that was swept.
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
    def end_s(self) -> float | Unknown:
        """When it ended, from the common start."""
        if isinstance(self.start_s, Unknown) or isinstance(self.latency_s, Unknown):
            return Unknown("start or latency is not known")
        return self.start_s + self.latency_s

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

    `planned` counts requests that were to be measured, warm-up not among them; a run without a header has none.
    `client`: cpu_s, wall_s, max_lag_s, bottleneck, why. `problems`: by node, what went wrong beside its requests.
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
    def names(self) -> tuple[str, ...]:
        """Every node the header plans or names, or a request came from, in order of first mention."""
        planned = {} if isinstance(self.planned, Unknown) else self.planned
        return tuple(dict.fromkeys((*planned, *self.nodes, *(r.node for r in self.requests))))

    @property
    def telemetry_dir(self) -> Path | Unknown:
        """The lake with the run's telemetry, beside the results file."""
        if isinstance(self.telemetry, Unknown):
            return self.telemetry
        return Path(self.file).parent / self.telemetry
