"""What does a plan of autoscaling state?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpuledger.plan.autoscale.service import Service
from gpuledger.plan.autoscale.setting import Slo
from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.units import Unknown


@dataclass(frozen=True)
class TraceFacts:
    """The demand in figures."""

    source: str
    hours: float
    requests: float
    mean_per_s: float
    peak_per_s: float
    start_ms: int | Unknown
    read_as: tuple[str, ...]
    notes: tuple[str, ...]
    replay: Literal["requests", "flow"]
    learned_hours: float


@dataclass(frozen=True)
class Point:
    """A policy with one value, on the first part of the trace."""

    policy: str
    value: float
    missed_pct: float
    gpu_h_per_month: float


@dataclass(frozen=True)
class Hindsight:
    """The value with which a policy would have met the goal on the rest of the trace (not known in advance)."""

    value: float
    says: str
    missed_pct: float
    gpu_h_per_month: float


@dataclass(frozen=True)
class PolicyRow:
    """A policy, the value it was tuned to, and how it did on the rest of the trace.

    Hours and dollars are per month of 720 h. `over_gpu_h`: paid beyond what a planner takes that knows the demand;
    `short_gpu_h`: missing to it. `learned_*`: on the first part.
    """

    policy: str
    title: str
    value: float
    says: str
    meets: bool
    missed_pct: float
    missed_low_pct: float
    missed_high_pct: float
    mean_wait_s: float
    most_replicas: int
    gpu_h_per_month: float
    spot_gpu_h_per_month: float
    over_gpu_h_per_month: float
    short_gpu_h_per_month: float
    usd_per_month: UsdRange | Unknown
    learned_missed_pct: float
    learned_gpu_h_per_month: float
    hindsight: Hindsight | None = None


@dataclass(frozen=True)
class Moment:
    """A piece of the evaluated time: replicas that the demand needs, and that were paid for."""

    at_s: float
    requests_per_s: float
    needed: float
    chosen: float
    static: float | Unknown


@dataclass(frozen=True)
class AutoscalePlan:
    """Which policy, what it costs, and what to paste."""

    headline: str
    trace: TraceFacts
    service: Service
    slo: Slo
    gpu: str | Unknown
    chosen: PolicyRow | None
    runners_up: tuple[PolicyRow, ...]
    policies: tuple[PolicyRow, ...]
    refused: tuple[Refused, ...]
    clairvoyant_gpu_h_per_month: float
    busy_gpu_h_per_month: float
    spot_share_ratio: float
    prices_dated: str | Unknown
    price_words: tuple[str, ...]
    assumptions: tuple[str, ...]
    tried: tuple[Point, ...]
    moments: tuple[Moment, ...]
    manifests: Mapping[str, str]

    @property
    def static(self) -> PolicyRow | None:
        """The static peak, to compare with."""
        return next((row for row in self.policies if row.policy == "static-peak"), None)
