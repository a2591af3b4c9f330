"""What does the scaling report say? Figures of a run, and what is made of them, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gpuledger.scaling.figures import Facts, Figure, Ranged
from gpuledger.units import Unknown

Word = Literal["supported", "contradicted", "cannot tell"]
Horizon = Literal["immediate", "1-3 months", "later"]


@dataclass(frozen=True)
class Grade:
    """One line of the scorecard; no grade where the figure is not known."""

    area: str
    title: str
    value: Figure
    unit: str
    grade: str | Unknown
    limits: str
    essential: bool


@dataclass(frozen=True)
class Check:
    """One thing that goes wrong in reports like this, and whether it went wrong here."""

    check: str
    title: str
    caught: bool
    why: str


@dataclass(frozen=True)
class Verdict:
    """What the run says to a claim somebody made about it."""

    claim: str
    value: Any
    node: str | None
    verdict: Word
    why: str


@dataclass(frozen=True)
class Cause:
    """A possible cause and what the run says to it."""

    name: str
    found: bool | Unknown
    evidence: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bottleneck:
    """What holds the run back; `gain_pct` is the throughput that mending it would add."""

    rank: int
    name: str
    gain_pct: Figure
    why: str


@dataclass(frozen=True)
class Optimization:
    """A change with what it would bring, and what that rests on."""

    name: str
    horizon: Horizon
    gain: str
    basis: str
    why: str


@dataclass(frozen=True)
class Readiness:
    """Whether the run speaks for production: what speaks against it, and what is not known."""

    verdict: Literal["not ready", "cannot tell", "ready as far as measured"]
    against: tuple[str, ...]
    unknown: tuple[str, ...]
    passed: tuple[str, ...]


@dataclass(frozen=True)
class PublicFigure:
    """A figure somebody published for the same model and GPU, with ours beside it."""

    model: str
    gpu: str
    what: str
    value: float
    unit: str
    source: str
    as_of: str
    ours: Figure
    note: str


@dataclass(frozen=True)
class Change:
    """One figure before and after, and whether the difference is beyond noise."""

    figure: str
    before: float | Unknown
    after: float | Unknown
    change_pct: Ranged
    beyond_noise: bool | Unknown
    words: str


@dataclass(frozen=True)
class Comparison:
    """This run against an earlier one."""

    before_file: str
    after_file: str
    settings: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class ScalingStatement:
    """The whole report."""

    headline: str
    second: str
    facts: Facts
    grades: tuple[Grade, ...]
    overall: str | Unknown
    overall_words: str
    checks: tuple[Check, ...]
    claims: tuple[Verdict, ...]
    causes: tuple[Cause, ...]
    bottlenecks: tuple[Bottleneck, ...]
    optimizations: tuple[Optimization, ...]
    public: tuple[PublicFigure, ...]
    public_words: str
    readiness: Readiness
    summary: tuple[str, ...]
    recommendations: tuple[tuple[str, tuple[str, ...]], ...]
    comparison: Comparison | Unknown
