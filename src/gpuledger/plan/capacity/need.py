"""How many GPUs does a demand need, month by month, and when do those there run out?

    need = ceil( demand that covers a share of the hours / (part of a GPU that can be used x target) )

The part of a GPU is 1 on the nominal basis; on the realized one it is the share its better GPUs reach.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.methods import NAIVE
from gpuledger.plan.capacity.outlook import Covered, Outlook
from gpuledger.plan.capacity.series import DAY, WEEK, quantile, season_of
from gpuledger.plan.capacity.statement import Basis, DayPoint, GpuRange, PeriodNeed, RunsOut, Tested
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, utc

ROUNDING = 9  # places: 18 / 0.9 is 20 GPUs, not 21


@dataclass(frozen=True)
class Asked:
    """What a plan covers: hours ahead, the share of hours, and the share of GPUs that may be taken then."""

    hours: int
    cover: float
    target: float
    growth_ratio: float | None = None


@dataclass(frozen=True, eq=False)
class Load:
    """A demand on one basis: its outlook and the part of a GPU that can be used for it.

    `upper`: the same with what cannot be rated counted as put to use; then both ends make the range.
    """

    basis: Basis
    outlook: Outlook
    part: float = 1.0
    upper: Outlook | None = None
    upper_part: float = 1.0

    def covered(self, first: int, last: int, asked: Asked) -> Covered:
        """Whole GPUs' worth of demand from one hour ahead to another, over the part that can be used."""
        mine = self.outlook.covered(first, last, asked.cover).over(self.part)
        if self.upper is None:
            return mine
        other = self.upper.covered(first, last, asked.cover).over(self.upper_part)
        return Covered(min(mine.low, other.low), (mine.middle + other.middle) / 2, max(mine.high, other.high))


def gpus_needed(demand: float, target: float) -> int:
    """Whole GPUs for a demand in GPUs of which a share may be taken."""
    return math.ceil(round(demand / target, ROUNDING))


def need_of(covered: Covered, target: float) -> GpuRange:
    """The same with its range."""
    return GpuRange(*(gpus_needed(each, target) for each in (covered.low, covered.middle, covered.high)))


def months_ahead(start_ms: int, hours: int) -> Iterator[tuple[str, int, int]]:
    """The calendar months (UTC) of the hours ahead: name, first and last hour."""
    end_ms, at = start_ms + hours * MS_PER_HOUR, start_ms
    while at < end_ms:
        first = utc(at).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        following = (first + dt.timedelta(days=32)).replace(day=1)
        until = min(end_ms, round(following.timestamp() * 1000))
        yield f"{first:%Y-%m}", (at - start_ms) // MS_PER_HOUR, -(-(until - start_ms) // MS_PER_HOUR)
        at = until


def month_needs(loads: Mapping[Basis, Load | Unknown], start_ms: int, asked: Asked) -> tuple[PeriodNeed, ...]:
    """The need of every month ahead on every basis."""
    out = []
    for name, first, last in months_ahead(start_ms, asked.hours):
        needs: dict[Basis, GpuRange | Unknown] = {}
        for basis, load in loads.items():
            needs[basis] = (
                load if isinstance(load, Unknown) else need_of(load.covered(first, last, asked), asked.target)
            )
        out.append(PeriodNeed(name, start_ms + first * MS_PER_HOUR, (last - first) / DAY, needs))
    return tuple(out)


def most_of(months: Sequence[PeriodNeed]) -> dict[Basis, GpuRange | Unknown]:
    """The most of any month, end by end."""
    out: dict[Basis, GpuRange | Unknown] = {}
    for basis, first in months[0].needs.items():
        each = [m.needs[basis] for m in months]
        known = [n for n in each if not isinstance(n, Unknown)]
        out[basis] = (
            GpuRange(*(max(getattr(n, e) for n in known) for e in ("low", "middle", "high"))) if known else first
        )
    return out


def runs_out(load: Load, gpus: int, start_ms: int, asked: Asked) -> RunsOut:
    """The first week whose need passes the GPUs there are, by the high, the middle and the low end of the range."""
    found: dict[str, str | None] = dict.fromkeys(("high", "middle", "low"))
    for first in range(0, asked.hours, WEEK):
        need = need_of(load.covered(first, min(first + WEEK, asked.hours), asked), asked.target)
        for end, passed in list(found.items()):
            if passed is None and getattr(need, end) > gpus:
                found[end] = f"{utc(start_ms + first * MS_PER_HOUR):%Y-%m-%d}"
    return RunsOut(found["high"], found["middle"], found["low"])


def day_points(load: Load, asked: Asked, history_days: int = 60) -> tuple[DayPoint, ...]:
    """Demand day by day: what was, then what is expected."""
    series = load.outlook.series.recent(history_days)
    out = []
    for first in range(0, len(series.values), DAY):
        values = series.values[first : first + DAY]
        day = f"{utc(series.start_ms + first * MS_PER_HOUR):%Y-%m-%d}"
        if np.isnan(values).all():
            out.append(DayPoint(day, None, None, None, ahead=False))
        else:
            seen = quantile(values, asked.cover)
            out.append(DayPoint(day, seen, seen, seen, ahead=False))
    for first in range(0, asked.hours, DAY):
        found = load.covered(first, min(first + DAY, asked.hours), asked)
        at = series.end_ms + first // DAY * MS_PER_DAY
        out.append(DayPoint(f"{utc(at):%Y-%m-%d}", found.low, found.middle, found.high, ahead=True))
    return tuple(out)


def tested_of(outlook: Outlook) -> Tested:
    """How the back-test of a series came out, in percent."""
    facts, test, values = capacity_facts(), outlook.tested, outlook.series.values
    skill, coverage = test.skill, test.coverage(facts.range_ratio)
    return Tested(
        history_days=len(values) / DAY,
        gaps_pct=100 * float(np.isnan(values).mean()),
        season="week" if season_of(len(values)) > DAY else "day",
        origins=len(test.origins),
        ahead_days=test.ahead_h / DAY,
        skill_pct=skill if isinstance(skill, Unknown) else 100 * skill,
        mase=test.mase(),
        naive_mase=test.mase(NAIVE),
        coverage_pct=coverage if isinstance(coverage, Unknown) else 100 * coverage,
        promised_pct=100 * facts.range_ratio,
        weights_pct={name: 100 * weight for name, weight in sorted(test.weights().items(), key=lambda w: -w[1])},
    )
