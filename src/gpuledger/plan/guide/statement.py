"""What does a migration plan hold? The setup, what was chosen, what was refused and why, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from gpuledger.plan.guide.placed_job import NOT_COUNTED, Candidate, Job, Misfit, Placement, Rate
from gpuledger.units import Unknown

Level = Literal["low", "medium", "high"]


@dataclass(frozen=True)
class _OfCandidate:
    candidate: Candidate

    def as_json(self) -> dict[str, Any]:
        """With the fields of its candidate next to its own."""
        return self.candidate.as_json() | {name: v for name, v in vars(self).items() if name != "candidate"}


@dataclass(frozen=True)
class Scaling:
    """Work per GPU over that on the fewest GPUs of its kind, `base_gpus`; low: over a slower network."""

    base_gpus: int
    ratio: float
    low_ratio: float


@dataclass(frozen=True)
class Judged:
    """A level with its reasons."""

    level: Level
    amount: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """A guideline, applied to one option."""

    rule: str
    words: str
    kept: bool


@dataclass(frozen=True)
class Option(_OfCandidate):
    """A candidate that can do the job. Dollars are per month; low and high come from the range of the price and, where
    faster means cheaper, of the speed. `same_work_pct`: how much more the same work costs there than now, below zero
    where it costs less; of the price of the GPUs and that of whole instances, the one that compares worse. Where it is
    above zero, the savings are unknown: fewer dollars for less work are not a saving. `not_scored`: measures that are
    unknown and so not in the score."""

    placement: Placement
    current: bool
    monthly_h: Decimal
    monthly_usd: Decimal
    low_monthly_usd: Decimal
    high_monthly_usd: Decimal
    usd_per_million: Decimal | Unknown
    saving_usd: Decimal | Unknown
    saving_pct: float | Unknown
    same_work_pct: float | Unknown
    speed_ratio: float | Unknown
    risk: Judged
    effort: Judged
    guidelines: tuple[Verdict, ...]
    other_purchase_usd: Decimal | Unknown = NOT_COUNTED
    measures: Mapping[str, float] = field(default_factory=dict)
    cost_score: float | Unknown = NOT_COUNTED
    performance_score: float | Unknown = NOT_COUNTED
    reliability_score: float | Unknown = NOT_COUNTED
    score: float = 0.0
    scaling: Scaling | Unknown = NOT_COUNTED
    not_scored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused(_OfCandidate):
    """A candidate that was not considered further: the kind of reason, the reason, and the remedy."""

    kind: str
    why: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class RefusedGroup:
    """Refused candidates of one GPU for one kind of reason; `why` and `remedies` are of the largest count."""

    gpu_name: str
    instances: tuple[str, ...]
    kind: str
    counts: tuple[int, ...]
    candidates: int
    why: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """A common migration pattern: what is claimed for it, whether it applies here, and what it comes to.

    `option` is what it would take; the figures are compared with now.
    """

    name: str
    words: str
    claim: str
    applies: bool
    why_not: str
    option: str
    saving_pct: float | Unknown
    speed_ratio: float | Unknown


@dataclass(frozen=True)
class RuleOfThumb:
    """The memory rule of thumb compared with the real breakdown."""

    weights_bytes: int
    multiplier: float
    rule_bytes: int
    size_multiplier: float | Unknown
    size_rule_bytes: int | Unknown
    real_bytes: int | Unknown
    real_parts: Mapping[str, int]
    words: str


@dataclass(frozen=True)
class Sharing:
    """What else one GPU could hold: copies of a small job, or a slice for one."""

    on: str
    jobs_per_gpu: int
    usd_per_job_month: Decimal | Unknown
    slice: str | Unknown
    slice_usd_per_month: Decimal | Unknown
    words: str


@dataclass(frozen=True)
class Current(_OfCandidate):
    """What runs now: what it costs, whether it fits, how fast it is."""

    monthly_usd: Decimal | Unknown
    whole_monthly_usd: Decimal | Unknown
    other_purchase_usd: Decimal | Unknown
    placement: Placement | Misfit

    @property
    def rate(self) -> Rate | Unknown:
        """How fast it is; unknown where it does not fit."""
        placed = self.placement
        return Unknown(f"the present setup cannot run it: {placed.why}") if isinstance(placed, Misfit) else placed.rate

    def as_json(self) -> dict[str, Any]:
        """With the fields of its candidate, and whether it fits."""
        return {**super().as_json(), "fits": not isinstance(self.placement, Misfit)}


@dataclass(frozen=True)
class MigrationPlan:
    """The answer to one question."""

    job: Job
    current: Current
    verdict: Literal["move", "already well optimized", "nothing fits"]
    recommendation: str
    chosen: Option | None
    cheapest: Option | None
    fastest: Option | None
    runners_up: tuple[Option, ...]
    options: tuple[Option, ...]
    refused: tuple[Refused, ...]
    refused_groups: tuple[RefusedGroup, ...]
    memory: RuleOfThumb
    sharing: tuple[Sharing, ...]
    patterns: tuple[Pattern, ...]
    weights: Mapping[str, float]
    prices: str
    price_dates: tuple[str, str]
    illustrative: bool
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The best options by their ids: each is among the options."""
        ids = {name: o and o.candidate.id for name, o in (("cheapest", self.cheapest), ("fastest", self.fastest))}
        return {**vars(self), **ids, "runners_up": [option.candidate.id for option in self.runners_up]}
