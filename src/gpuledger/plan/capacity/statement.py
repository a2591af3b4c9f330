"""Which figures does a capacity plan have?

GPUs needed are counted on three bases: `held` (nominal: what owners hold today), `working` (only GPUs with work on
them; idle ones are back in the pool) and `realized` (the same work at the share of a GPU that the better GPUs reach).
A plan from a table has one: `demand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.encode import Json, iso
from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.units import Unknown

Basis = Literal["held", "working", "realized", "demand"]
Verdict = Literal["over", "uncertain", "within", "no budget", "unknown"]
Figure = float | Unknown


@dataclass(frozen=True)
class GpuRange:
    """Whole GPUs with their range."""

    low: int
    middle: int
    high: int

    def __add__(self, other: GpuRange) -> GpuRange:
        return GpuRange(self.low + other.low, self.middle + other.middle, self.high + other.high)


Needs = Mapping[Basis, GpuRange | Unknown]


@dataclass(frozen=True)
class PeriodNeed:
    """GPUs needed in a month or a part of one; `days` of it are ahead."""

    name: str
    start_ms: int
    days: float
    needs: Needs


@dataclass(frozen=True)
class Tested:
    """How well the forecast of a series did in the walk-forward back-test.

    `skill_pct`: share of the seasonal-naive forecast's miss that is avoided. `coverage_pct`: how often the range held
    the outcome, next to `promised_pct`. `weights_pct`: how much each method counts now.
    """

    history_days: float
    gaps_pct: float
    season: Literal["day", "week"]
    origins: int
    ahead_days: float
    skill_pct: Figure
    mase: Figure
    naive_mase: Figure
    coverage_pct: Figure
    promised_pct: float
    weights_pct: Mapping[str, float]


@dataclass(frozen=True)
class DayPoint:
    """Demand of one day that is enough for the covered share of its hours; low to high where it is ahead.

    None: no hour of the day was observed.
    """

    day: str
    low: float | None
    middle: float | None
    high: float | None
    ahead: bool


@dataclass(frozen=True)
class RunsOut:
    """The first week in which the need passes the GPUs there are; None: not within the horizon."""

    earliest: str | None
    expected: str | None
    latest: str | None


@dataclass(frozen=True)
class PoolPlan:
    """One cluster, namespace or line of a table.

    `gpus_now` is None where a table does not say it. `needs`: the most of any month ahead. `idle_gpus`: GPUs without
    work on average. `achievable_pct`: the share of working time that the better GPUs put to use, low to high by what is
    made of unrated time. `days` are of the basis `days_of`.
    """

    name: str
    basis: Basis
    gpus_now: int | None
    demand_now: Mapping[Basis, Figure]
    idle_gpus: Figure
    achievable_pct: tuple[float, float] | Unknown
    needs: Needs
    months: tuple[PeriodNeed, ...]
    runs_out: RunsOut | Unknown
    tested: Mapping[Basis, Tested]
    days_of: Basis
    days: tuple[DayPoint, ...]
    usd_per_gpu_h: UsdRange | Unknown


@dataclass(frozen=True)
class RightSize:
    """What an owner holds and uses. `give_back`: GPUs it can do without, by the GPUs it ever used at the same time.

    `give_back_shared`: by the work in its busy hours, if its GPUs are shared. A pod's are its own GPUs.
    """

    kind: Literal["namespace", "pod"]
    name: str
    cluster: str | None
    gpu_model: str | None
    held_gpus: float
    used_gpus: float
    working_gpus: float
    give_back: int
    give_back_shared: int
    memory_max_bytes: Figure
    slice_name: str | Unknown
    usd_per_month: Decimal | Unknown


InvestKind = Literal["use idle", "raise use", "rent", "buy"]


@dataclass(frozen=True)
class MonthRange:
    """Months with their range."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class InvestOption:
    """One way to get the GPUs that are short: how many it brings, and what it costs per month.

    `payback_months`: after which a purchase has cost less than renting the same GPUs, without what runs them.
    """

    kind: InvestKind
    gpus: int
    usd_per_month: UsdRange | Unknown
    words: str
    payback_months: MonthRange | Unknown | None = None


@dataclass(frozen=True)
class Investment:
    """How the shortfall on the nominal basis is met, cheapest first; no option where nothing is short.

    `there`: GPUs of the shortfall that are there already, without work. `surplus`: GPUs beyond the need.
    """

    short: GpuRange
    there: int
    surplus: int
    surplus_usd_per_month: UsdRange | Unknown
    idle_usd_per_month: Decimal | Unknown
    options: tuple[InvestOption, ...]


@dataclass(frozen=True)
class MonthSpend:
    """Dollars of one month: as the fleet is now, as the need asks (nominal), and the budget for it.

    A part of a month has that part of its budget.
    """

    month: str
    days: float
    name: str
    now_usd: Decimal | Unknown
    need_usd: UsdRange | Unknown
    budget_usd: Decimal | None
    verdict: Verdict


@dataclass(frozen=True)
class CapacityPlan:
    """How many GPUs will be needed, when, what is held and not used, and what it costs.

    `age_days`: how long ago the history ended; the plan starts there. None where the day it was made is not given.
    """

    headline: str
    source: str
    start_ms: int
    end_ms: int
    age_days: int | None
    weeks: int
    cover_pct: float
    target_pct: float
    growth_pct_per_month: float | None
    chosen: Basis
    gpus_now: int | None
    needs: Needs
    pools: tuple[PoolPlan, ...]
    rightsize: tuple[RightSize, ...]
    investment: Investment | Unknown
    spending: tuple[MonthSpend, ...]
    prices_dated: str | Unknown
    price_words: tuple[str, ...]
    next_to_audit: str
    runners_up: tuple[Basis, ...]
    refused: tuple[Refused, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]

    def as_json(self) -> Json:
        """With the window in words."""
        return {**vars(self), "start_utc": iso(self.start_ms), "end_utc": iso(self.end_ms)}
