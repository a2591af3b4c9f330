"""What does this rate of spending come to in a month, a year, the next quarter?"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.money import usd
from gpuledger.units import MS_PER_HOUR, Unknown, utc

HOURS_PER_DAY = 24
DAYS_PER_MONTH = 30
DAYS_PER_YEAR = 365


@dataclass(frozen=True)
class Quarter:
    """One calendar quarter at the present rate of spending; its days are counted, not assumed."""

    name: str
    first_day: str
    days: int
    usd: Decimal


@dataclass(frozen=True)
class Projection:
    """The same spending over longer times. A month is 30 days, a year 365; each is to the cent."""

    hourly_usd: Decimal
    monthly_usd: Decimal
    yearly_usd: Decimal
    quarter: Quarter


def project(paid_usd: Decimal, window_ms: int, as_of_ms: int) -> Projection | Unknown:
    """Paid dollars over the wall hours of the window, carried forward."""
    if window_ms <= 0:
        return Unknown("the window has no length, so there is no hourly rate")
    hourly = usd(Fraction(paid_usd) * MS_PER_HOUR / window_ms)
    return Projection(
        hourly_usd=hourly,
        monthly_usd=over_days(hourly, DAYS_PER_MONTH),
        yearly_usd=over_days(hourly, DAYS_PER_YEAR),
        quarter=next_quarter(hourly, as_of_ms),
    )


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
    return Quarter(name, first.isoformat(), days, over_days(hourly_usd, days))


def _quarter_start(year: int, quarter: int) -> dt.date:
    """The first day of a quarter counted from 0; 4 is the first of the next year."""
    return dt.date(year + quarter // 4, quarter % 4 * 3 + 1, 1)
