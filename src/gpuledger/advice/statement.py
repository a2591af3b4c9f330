"""Which figures does the audit have? Cost, behavior and advice.

Percentages of savings are of the bill; where no device has a price they are of the paid GPU-hours, and `of` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.advice.case import Case
from gpuledger.advice.orientation import Orientation
from gpuledger.advice.rule import Effort, Snippet
from gpuledger.cost.savings import Kind, Spread
from gpuledger.cost.statement import CostStatement
from gpuledger.cost.user_settings import Budget
from gpuledger.efficiency.statement import NotKnown, RoiRow
from gpuledger.encode import Json, encode
from gpuledger.units import Unknown


@dataclass(frozen=True)
class MonthlyUsd:
    """Dollars per month, cautious to bold."""

    low_usd: Decimal
    middle_usd: Decimal
    high_usd: Decimal


@dataclass(frozen=True)
class QuarterUsd:
    """Dollars over the next calendar quarter, cautious to bold: those of a month times its days over 30."""

    name: str
    days: int
    low_usd: Decimal
    middle_usd: Decimal
    high_usd: Decimal


@dataclass(frozen=True)
class MonthlyEnergy:
    """Energy per month that could be saved; its dollars are not part of the bill, as cloud prices include them."""

    low_kwh: float
    middle_kwh: float
    high_kwh: float
    middle_usd: Decimal | Unknown


@dataclass(frozen=True)
class Target:
    """One case a recommendation is for. `own` is in percent of that case's bill; `counted` says what became of it."""

    owner: str
    namespace: str | None
    workload: str | None
    gpu_model: str | None
    klass: str
    gpus: int
    devices: tuple[str, ...]
    why: str
    own: Spread
    month: MonthlyUsd | Unknown
    gain_words: str
    counted: bool
    words: str

    def as_json(self) -> Json:
        """Dollars under the name that has their unit."""
        return _renamed(self, klass="class", month="monthly_usd")


@dataclass(frozen=True)
class Recommendation:
    """One change: why, what to paste, how much work, what it saves by itself and what that rests on.

    `saving` is unknown where others have a price and none of its GPUs has one.
    """

    id: str
    title: str
    lever: Kind | None
    exclusive: str
    effort: Effort
    change: Snippet
    why: str
    basis: str
    source: str
    namespaces: tuple[str, ...]
    gpus: int
    month: MonthlyUsd | Unknown
    saving: Spread | Unknown
    energy: MonthlyEnergy | Unknown | None
    targets: tuple[Target, ...]

    @property
    def share(self) -> Decimal:
        """The likely saving in percent, to rank by; an unknown one ranks last."""
        return Decimal(0) if isinstance(self.saving, Unknown) else self.saving.middle_pct

    def as_json(self) -> Json:
        """Dollars and energy under names that have their unit."""
        return _renamed(self, month="monthly_usd", energy="energy_monthly") | {"exclusive": self.exclusive or None}


@dataclass(frozen=True)
class ClassPart:
    """The GPUs of a group whose work is of one class."""

    klass: str
    gpus: int
    observed_h: float
    evidence: tuple[str, ...]
    confidence: str


@dataclass(frozen=True)
class GroupBehaviour:
    """What one owner's GPUs of one model did: the class of most of the time, and the mix behind it."""

    namespace: str | None
    workload: str | None
    gpu_model: str | None
    purpose: str | None
    gpus: int
    observed_h: float
    klass: str
    shares_pct: Mapping[str, float]
    phases_pct: Mapping[str, float]
    evidence: tuple[str, ...]
    confidence: str
    parts: tuple[ClassPart, ...]


NO_QUARTER = Unknown("what is spent per hour is unknown")


@dataclass(frozen=True)
class AuditSavings:
    """All levers together, compared with the naive sum. Single figures are the middle case.

    `one_bucket_pct`: 1 - prod(1 - f) for each case, all of its waste taken as one bucket, added up over the cases.
    """

    of: str
    naive_pct: Decimal
    one_bucket_pct: Decimal
    combined_pct: Decimal
    cap_pct: Decimal
    rate_pct: Decimal
    with_rate_pct: Decimal
    combined: Spread
    with_rate: Spread
    combined_month: MonthlyUsd | Unknown
    with_rate_month: MonthlyUsd | Unknown
    words: tuple[str, ...]
    combined_quarter: QuarterUsd | Unknown = NO_QUARTER
    with_rate_quarter: QuarterUsd | Unknown = NO_QUARTER


@dataclass(frozen=True)
class RoiPriced:
    """What reaching an RFU target would be worth, in GPU-hours and at the mean price of one."""

    row: RoiRow
    usd_per_gpu_h: Decimal | Unknown
    usd_per_month: Decimal | Unknown

    def as_json(self) -> Json:
        """The figures of the row with their price, in one object."""
        return {**vars(self.row), "usd_per_gpu_h": self.usd_per_gpu_h, "usd_per_month": self.usd_per_month}


@dataclass(frozen=True)
class AuditStatement:
    """What one window cost, what the GPUs did, what to change and what that saves.

    `unrated_note`: a sentence where a sizable part of the bill cannot be rated, with the next step; else empty.
    """

    cost: CostStatement
    phases_pct: Mapping[str, float] | Unknown
    behaviours: tuple[GroupBehaviour, ...]
    cases: tuple[Case, ...]
    recommendations: tuple[Recommendation, ...]
    savings: AuditSavings | Unknown
    roi_priced: tuple[RoiPriced, ...]
    first: Recommendation | None
    headline: tuple[str, str]
    not_known: tuple[NotKnown, ...]
    assumptions: tuple[str, ...]
    unrated_note: str = ""
    budgets: tuple[Budget, ...] = ()
    orientation: tuple[Orientation, ...] = ()

    def as_json(self) -> Json:
        """The headline, the figures of the cost statement under their own names, then the advice."""
        head = {"headline": self.headline, "first": self.first.id if self.first else None}
        head |= {"unrated_note": self.unrated_note or None}
        advice = ("recommendations", "savings", "behaviours", "roi_priced", "budgets", "orientation", "assumptions")
        return head | self.cost.as_json() | {name: getattr(self, name) for name in advice}


def to_json(audit: AuditStatement) -> Json:
    """The whole audit."""
    return encode("audit", audit, named=((n.figure, n.why) for n in audit.not_known))


def _renamed(row: object, **names: str) -> Json:
    return {names.get(name, name): value for name, value in vars(row).items()}
