"""What does this rate of spending come to in a month, a year, the next quarter?

With an inventory the rate is what was paid over the hours of the window. Without one a GPU counts as paid for from its
first to its last sample, which says little where GPUs were seen for a small part of the window: then the rate is that
of the GPUs while they were seen, carried through all hours, and the projection says so.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.money import usd
from gpuledger.units import MS_PER_HOUR, Unknown, utc

HOURS_PER_DAY = 24
DAYS_PER_MONTH = 30
DAYS_PER_YEAR = 365
MONTH_H = HOURS_PER_DAY * DAYS_PER_MONTH
# GPUs seen for less than this share of the window are too little seen to tell when they are paid for.
SPARSE_BELOW_RATIO = 0.5


@dataclass(frozen=True, slots=True)
class PaidBoard:
    """What was paid for one GPU in the window, for how long, and for how much of that it was not seen.

    `listed`: an inventory says when it is paid for.
    """

    usd: Decimal
    paid_ms: int
    unobserved_ms: int
    listed: bool


@dataclass(frozen=True)
class Quarter:
    """One calendar quarter at the present rate of spending; its days are counted, not assumed.

    It is the quarter after `as_of`: the newest sample of the window, unless another day was asked for.
    """

    name: str
    first_day: str
    days: int
    usd: Decimal
    as_of: str


@dataclass(frozen=True)
class ProjectionBasis:
    """What a projection assumes: a number of GPUs and hours, at a price per paid GPU-hour.

    `sparse`: no inventory, and the GPUs were seen for too small a part of the window to tell when they are paid for.
    `seen_hourly_usd` and `seen_monthly_usd` are if they are paid for only from their first to their last sample.
    """

    gpus: int
    paid_gpu_h: float
    window_gpu_h: float
    usd_per_gpu_h: Decimal | Unknown
    seen_hourly_usd: Decimal
    seen_monthly_usd: Decimal
    sparse: bool
    words: str


@dataclass(frozen=True)
class Projection:
    """The same spending over longer times. A month is 30 days, a year 365; each is to the cent."""

    hourly_usd: Decimal
    monthly_usd: Decimal
    yearly_usd: Decimal
    quarter: Quarter
    projection_basis: ProjectionBasis


def project(paid_usd: Decimal, window_ms: int, as_of_ms: int, boards: Sequence[PaidBoard] = ()) -> Projection | Unknown:
    """Paid dollars over the wall hours of the window, carried forward; of sparsely seen GPUs, their rate while seen."""
    if window_ms <= 0:
        return Unknown("the window has no length, so the hourly rate is unknown")
    seen_hourly = Fraction(paid_usd) * MS_PER_HOUR / window_ms
    sparse = bool(seen_hourly) and _sparse(window_ms, boards)
    hourly = usd(_while_seen(paid_usd, window_ms, boards) if sparse else seen_hourly)
    return Projection(
        hourly_usd=hourly,
        monthly_usd=over_days(hourly, DAYS_PER_MONTH),
        yearly_usd=over_days(hourly, DAYS_PER_YEAR),
        quarter=next_quarter(hourly, as_of_ms),
        projection_basis=_basis(boards, window_ms, usd(seen_hourly), hourly, sparse=sparse),
    )


def months(window_ms: int) -> Fraction:
    """How many times a window fits into a month of 30 days."""
    return Fraction(MONTH_H * MS_PER_HOUR, window_ms) if window_ms > 0 else Fraction(0)


def months_of(projection: Projection | Unknown, window_ms: int) -> Fraction:
    """The factor from dollars of the window to dollars per month, as the projection has it."""
    if isinstance(projection, Unknown) or not projection.projection_basis.sparse:
        return months(window_ms)
    return months(window_ms) * Fraction(projection.hourly_usd) / Fraction(projection.projection_basis.seen_hourly_usd)


def _sparse(window_ms: int, boards: Sequence[PaidBoard]) -> bool:
    assumed = [b.paid_ms for b in boards if not b.listed]
    return bool(assumed) and sum(assumed) < SPARSE_BELOW_RATIO * len(assumed) * window_ms


def _while_seen(paid_usd: Decimal, window_ms: int, boards: Sequence[PaidBoard]) -> Fraction:
    """Dollars per hour with every GPU the inventory does not list paid for at all hours, at its rate while seen."""
    assumed = [b for b in boards if not b.listed and b.paid_ms]
    rest = Fraction(paid_usd) - sum((Fraction(b.usd) for b in assumed), Fraction(0))
    return MS_PER_HOUR * (rest / window_ms + sum((Fraction(b.usd) / b.paid_ms for b in assumed), Fraction(0)))


def _basis(
    boards: Sequence[PaidBoard], window_ms: int, seen_hourly: Decimal, hourly: Decimal, *, sparse: bool
) -> ProjectionBasis:
    paid_ms, paid = sum(b.paid_ms for b in boards), sum((b.usd for b in boards), Decimal(0))
    paid_h, window_h = paid_ms / MS_PER_HOUR, window_ms / MS_PER_HOUR
    price: Decimal | Unknown = usd(Fraction(paid) * MS_PER_HOUR / paid_ms) if paid_ms else Unknown("nothing was paid")
    seen_month = over_days(seen_hourly, DAYS_PER_MONTH)
    gpus = f"{len(boards):,} GPU{'s' * (len(boards) != 1)}"
    seen = f"{paid_h:,.1f} of {len(boards) * window_h:,.1f} GPU-hours"
    if sparse and not isinstance(price, Unknown):
        month = over_days(hourly, DAYS_PER_MONTH)
        words = (
            f"${month:,.2f} per month assumes that {gpus} are paid for at all hours ({len(boards):,} x {MONTH_H} h at "
            f"${price:,.2f} per GPU-hour on average): they were seen for {seen}, and no inventory says when they are "
            f"paid for. Paid for only from first to last sample it would be ${seen_month:,.2f} per month"
        )
    else:
        words = f"assumes that {gpus} go on being paid for as in the window, {seen}"
    unobserved = sum(b.unobserved_ms for b in boards)
    if paid_ms and unobserved > SPARSE_BELOW_RATIO * paid_ms:
        words += f"; {100 * unobserved / paid_ms:.0f} % of the paid time has no samples"
    window_gpu_h = len(boards) * window_h
    return ProjectionBasis(len(boards), paid_h, window_gpu_h, price, seen_hourly, seen_month, sparse, words)


def over_days(hourly_usd: Decimal, days: int) -> Decimal:
    """An hourly rate over whole days, to the cent."""
    return round(hourly_usd * HOURS_PER_DAY * days, 2)


def next_quarter(hourly_usd: Decimal, as_of_ms: int) -> Quarter:
    """The calendar quarter after the one an instant falls in."""
    today = utc(as_of_ms).date()
    first = _quarter_start(today.year, (today.month - 1) // 3 + 1)
    after = _quarter_start(first.year, (first.month - 1) // 3 + 1)
    days = (after - first).days
    name = f"{first.year}-Q{(first.month - 1) // 3 + 1}"
    return Quarter(name, first.isoformat(), days, over_days(hourly_usd, days), today.isoformat())


def _quarter_start(year: int, quarter: int) -> dt.date:
    """The first day of a quarter counted from 0; 4 is the first of the next year."""
    return dt.date(year + quarter // 4, quarter % 4 * 3 + 1, 1)
