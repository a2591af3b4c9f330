"""What will the rest of a month cost, by the days seen so far?

A day ahead is expected to cost the mean of the days seen; of the days of its weekday, from 14 days on. The range is the
95 % prediction interval of the sum: days scatter around their mean as they did, independently, and the mean itself is
only as sure as the number of days behind it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.money import ZERO, usd
from gpuledger.units import Unknown, count

# From this many days on, each weekday has a mean of its own.
BY_WEEKDAY_FROM = 14
WEEKDAYS = 7
NO_DAYS = "a forecast needs at least one whole day of samples"
NO_SCATTER = "a range needs at least two whole days of samples"
# The 97.5 % quantile of Student's t by degrees of freedom, 1 to 30.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


@dataclass(frozen=True)
class Forecast:
    """Dollars of some days ahead, with their 95 % range, and the days seen that they rest on."""

    usd: Decimal
    low_usd: Decimal | Unknown
    high_usd: Decimal | Unknown
    days: int
    by_weekday: bool

    @property
    def words(self) -> str:
        """The method in one sentence."""
        by = " of its weekday" if self.by_weekday else ""
        return f"each day ahead costs the mean{by} over the last {count(self.days, 'whole day')}"


def forecast(seen: Mapping[dt.date, Decimal], ahead: Sequence[tuple[dt.date, Fraction]]) -> Forecast | Unknown:
    """Dollars of the days ahead, each with the part of it that is still to come."""
    if not ahead:
        return Forecast(ZERO, ZERO, ZERO, len(seen), by_weekday=False)
    if not seen:
        return Unknown(NO_DAYS)
    groups = _groups(seen)
    by_weekday = len(seen) >= BY_WEEKDAY_FROM and all(day.weekday() in groups for day, _ in ahead)
    if not by_weekday:
        together = [Fraction(amount) for amount in seen.values()]
        groups = dict.fromkeys(range(WEEKDAYS), together)
    means = {weekday: sum(amounts, Fraction(0)) / len(amounts) for weekday, amounts in groups.items()}
    total = sum((part * means[day.weekday()] for day, part in ahead), Fraction(0))
    off = _off(seen, groups, means, ahead, by_weekday=by_weekday)
    if isinstance(off, Unknown):
        return Forecast(usd(total), off, off, len(seen), by_weekday)
    return Forecast(usd(total), max(ZERO, usd(total - off)), usd(total + off), len(seen), by_weekday)


def _groups(seen: Mapping[dt.date, Decimal]) -> dict[int, list[Fraction]]:
    out: dict[int, list[Fraction]] = {}
    for day, amount in seen.items():
        out.setdefault(day.weekday(), []).append(Fraction(amount))
    return out


def _off(
    seen: Mapping[dt.date, Decimal],
    groups: Mapping[int, Sequence[Fraction]],
    means: Mapping[int, Fraction],
    ahead: Sequence[tuple[dt.date, Fraction]],
    *,
    by_weekday: bool,
) -> Fraction | Unknown:
    """How far the sum may be off to either side."""
    free = len(seen) - (len(groups) if by_weekday else 1)
    if free < 1:
        return Unknown(NO_SCATTER)
    squares = sum(((Fraction(amount) - means[day.weekday()]) ** 2 for day, amount in seen.items()), Fraction(0))
    same_mean: dict[int, Fraction] = defaultdict(Fraction)
    for day, part in ahead:
        same_mean[day.weekday() if by_weekday else 0] += part
    spread = sum((part**2 for _, part in ahead), Fraction(0))
    spread += sum((part**2 / len(groups[weekday]) for weekday, part in same_mean.items()), Fraction(0))
    t = _T[free - 1] if free <= len(_T) else _NORMAL
    return Fraction(t * math.sqrt(float(squares / free * spread)))
