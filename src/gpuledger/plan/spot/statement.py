"""What does a spot plan say? The chosen way, others, what was refused, and what it rests on."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.plan.outcome import Refused
from gpuledger.plan.spot.backtest import Backtest
from gpuledger.plan.spot.checkpoints import Intervals
from gpuledger.plan.spot.options import Rated
from gpuledger.units import Range, Unknown


@dataclass(frozen=True)
class Job:
    """What was asked; `checkpoint_s` is None where the job cannot save its state."""

    gpus: int
    gpu_hours: tuple[tuple[str, float], ...]
    checkpoint_s: float | None
    restart_s: float
    deadline_h: float
    deadline_given: bool
    budget_usd: Decimal | None
    confidence_pct: float

    def as_json(self) -> dict[str, object]:
        """Hours by GPU."""
        return {**vars(self), "gpu_hours": dict(self.gpu_hours)}


@dataclass(frozen=True)
class PoolRow:
    """A pool of the chosen way."""

    instance: str
    region: str
    zone: str
    instances: int
    spot_usd_h: Decimal
    on_demand_usd_h: Decimal | Unknown
    band: str
    reclaims_per_day: Range
    interval_min: float | Unknown
    billed_per_work_h: float


@dataclass(frozen=True)
class PastPrices:
    """The price of a pool in the months before the plan; None where it was not observed or not on offer."""

    name: str
    days: tuple[dt.date, ...]
    usd_h: tuple[float | None, ...]


@dataclass(frozen=True)
class Unrated:
    """A spot offer of a cloud without a price history."""

    cloud: str
    instance: str
    region: str
    usd_h: Decimal
    dated: dt.date


@dataclass(frozen=True)
class SpotPlan:
    """Where and how to run a job on spot."""

    headline: str
    notes: tuple[str, ...]
    job: Job
    chosen: Rated
    runners_up: tuple[Rated, ...]
    options: tuple[Rated, ...]
    on_demand_usd: Decimal
    intervals: Intervals | Unknown
    pools: tuple[PoolRow, ...]
    refused: tuple[Refused, ...]
    assumptions: tuple[str, ...]
    start_ms: int
    prices_dated: dt.date
    price_age_days: int
    price_source: str
    past: tuple[PastPrices, ...]
    unrated: tuple[Unrated, ...]
    backtest: Backtest | None
