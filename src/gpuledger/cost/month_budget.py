"""Will the month stay within its budget: what was spent so far, what will the rest cost?"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, Unpack

from gpuledger.arguments import takes
from gpuledger.cost.build import Money, Terms, cost_statement
from gpuledger.cost.forecast import Forecast, forecast
from gpuledger.cost.inventories.findings import InventoryUse
from gpuledger.cost.inventories.settling import inventory_of
from gpuledger.cost.money import ZERO
from gpuledger.cost.statement import CostStatement
from gpuledger.cost.user_settings import NO_TIME, Kind, row_named
from gpuledger.encode import Json, plain
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import end_ms, newest_ms
from gpuledger.numerals import number_given
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, day_start_ms, utc

ALL = "all GPUs"
# Days before the newest sample that a forecast rests on: each weekday four times.
HISTORY_DAYS = 28
Verdict = Literal["over already", "over", "uncertain", "within", "no budget", "unknown"]
_BUDGET = "give dollars per month above 0, for example 20000"
_MONTH = re.compile(r"(\d{4})-(\d{2})")


@dataclass(frozen=True)
class BudgetLine:
    """One budget, or all GPUs. `actual_usd` is what was spent so far, `total_usd` with what is still to come.

    `forecast` is for the rest of the month, and for its days before the first sample where no inventory prices them.
    """

    name: str
    of: Kind | None
    budget_usd: Decimal | None
    actual_usd: Decimal | Unknown
    forecast: Forecast | Unknown
    unpriced_h: float = 0.0

    @property
    def total_usd(self) -> Decimal | Unknown:
        """The whole month."""
        return self._with("usd")

    @property
    def total_low_usd(self) -> Decimal | Unknown:
        """The whole month, at the low end of the forecast."""
        return self._with("low_usd")

    @property
    def total_high_usd(self) -> Decimal | Unknown:
        """The whole month, at the high end of the forecast."""
        return self._with("high_usd")

    def _with(self, name: str) -> Decimal | Unknown:
        if isinstance(self.actual_usd, Unknown):
            return self.actual_usd
        rest = self.forecast if isinstance(self.forecast, Unknown) else getattr(self.forecast, name)
        return rest if isinstance(rest, Unknown) else self.actual_usd + rest

    @property
    def verdict(self) -> Verdict:
        """Whether the month ends over its budget; uncertain where the range holds the budget or is unknown."""
        if self.budget_usd is None:
            return "no budget"
        if not isinstance(self.actual_usd, Unknown) and self.actual_usd > self.budget_usd:
            return "over already"
        if isinstance(self.total_usd, Unknown):
            return "unknown"
        low, high = self.total_low_usd, self.total_high_usd
        if isinstance(low, Unknown) or isinstance(high, Unknown):
            return "uncertain"
        return "over" if low > self.budget_usd else "within" if high <= self.budget_usd else "uncertain"

    @property
    def over_usd(self) -> Decimal | Unknown | None:
        """How far the whole month is over its budget; below zero where it stays within it."""
        total = self.total_usd
        return None if self.budget_usd is None else total if isinstance(total, Unknown) else total - self.budget_usd

    def as_json(self) -> Json:
        """Every figure, and the verdict."""
        figures = ("name", "of", "verdict", "budget_usd", "actual_usd", "total_usd", "total_low_usd", "total_high_usd")
        rest = ("over_usd", "forecast", "unpriced_h")
        return {name: getattr(self, name) for name in (*figures, *rest)}


@dataclass(frozen=True)
class MonthBudget:
    """Budget against actual of one calendar month, as of the newest sample in it.

    `unseen_days` are the days of the month before the first sample: no inventory prices them, so they are forecast.
    `daily`: dollars of each whole day the forecast rests on.
    """

    month: str
    start_ms: int
    end_ms: int
    as_of_ms: int
    days: int
    days_left: float
    unseen_days: float
    lines: tuple[BudgetLine, ...]
    daily: Mapping[str, Decimal]
    assumptions: tuple[str, ...]
    inventory: InventoryUse | None = None

    def as_json(self) -> Json:
        """Days as a table: one row each."""
        found = plain(vars(self))
        found |= {f"{n}_utc": f"{utc(getattr(self, f'{n}_ms')):%Y-%m-%dT%H:%M:%SZ}" for n in ("start", "end", "as_of")}
        return found | {
            "lines": self.lines,
            "daily": [{"day": day, "paid_usd": amount} for day, amount in self.daily.items()],
        }


def budgets_of(budget: Money | Mapping[str, Money]) -> dict[str, Decimal]:
    """Budgets as they are given in Python: dollars for all GPUs, or by team or namespace."""
    found = {}
    for name, amount in (budget if isinstance(budget, Mapping) else {ALL: budget}).items():
        if isinstance(amount, str):
            whose = "the budget" if name == ALL else f"the budget of {name}"
            found[name] = number_given(amount, whose, "budget", _BUDGET, points=False)
            continue
        try:
            found[name] = Decimal(str(amount))
        except InvalidOperation:
            raise _no_budget(name, amount) from None
    return found


def _no_budget(name: str, amount: object) -> InputError:
    whose = "" if name == ALL else f" of {name}"
    return InputError(f"the budget{whose} is {amount}", hint=_BUDGET)


@takes(Terms)
def month_budget(
    lake: Lake, budgets: Mapping[str, Decimal], month: str | None = None, **terms: Unpack[Terms]
) -> MonthBudget:
    """Each budget against what was spent; the ledger must be posted. `budgets`: by team or namespace, `ALL` for all."""
    for name, amount in budgets.items():
        if not amount.is_finite() or amount <= 0:
            raise _no_budget(name, amount)
    newest = newest_ms(lake)
    first = _first_of(str(month)) if month else utc(newest - 1).date().replace(day=1)
    start, end = _ms(first), _ms((first + dt.timedelta(days=31)).replace(day=1))
    as_of = min(end, end_ms(lake))
    if start >= newest:
        hint = f"the newest sample is of {utc(newest - 1):%Y-%m-%d}"
        raise InputError(f"month={first:%Y-%m} is after the last sample", hint=hint)
    stock = inventory_of(lake, terms.get("inventory"))
    terms["inventory"] = stock
    now = cost_statement(lake, Scope(start, as_of), **terms)
    # Without an inventory nothing is known of the time before the first sample.
    unseen_ms = 0 if stock is not None else max(0, now.start_ms - start)
    history = _history(lake, as_of, terms)
    ahead = [*_parts(start, start + unseen_ms), *_parts(as_of, end)]
    names: dict[str, Decimal | None] = {ALL: budgets.get(ALL), **{n: b for n, b in budgets.items() if n != ALL}}
    lines = tuple(_line(name, budget, now, history, ahead) for name, budget in names.items())
    return MonthBudget(
        month=f"{first:%Y-%m}",
        start_ms=start,
        end_ms=end,
        as_of_ms=as_of,
        days=(end - start) // MS_PER_DAY,
        days_left=(end - as_of) / MS_PER_DAY,
        unseen_days=unseen_ms / MS_PER_DAY,
        lines=lines,
        daily={day.isoformat(): made.dollars.paid_usd for day, made in history.items()
               if not isinstance(made.dollars, Unknown)},
        assumptions=tuple(_assumptions(lines, unseen_ms, now)),
        inventory=now.inventory,
    )  # fmt: skip


def _first_of(month: str) -> dt.date:
    found = _MONTH.fullmatch(month.strip())
    try:
        return dt.date(int(found[1]), int(found[2]), 1) if found else dt.date.fromisoformat(month)
    except ValueError:
        raise InputError(f"month={month!r} is not a month", hint="write it as 2026-01") from None


def _ms(day: dt.date) -> int:
    return day_start_ms(day.isoformat())


def _parts(start_ms: int, end_ms: int) -> Iterator[tuple[dt.date, Fraction]]:
    """The days of a period, each with the part of it that falls into the period."""
    at = start_ms
    while at < end_ms:
        upto = min(end_ms, (at // MS_PER_DAY + 1) * MS_PER_DAY)
        yield utc(at).date(), Fraction(upto - at, MS_PER_DAY)
        at = upto


def _history(lake: Lake, as_of_ms: int, terms: Terms) -> dict[dt.date, CostStatement]:
    """The whole days before an instant, each as a statement of its own; adjoining windows add up."""
    last = as_of_ms // MS_PER_DAY * MS_PER_DAY
    out: dict[dt.date, CostStatement] = {}
    for start in range(last - HISTORY_DAYS * MS_PER_DAY, last, MS_PER_DAY):
        try:
            made = cost_statement(lake, Scope(start, start + MS_PER_DAY), **terms)
        except InputError:  # no line of the ledger is of that day
            continue
        # The fleet's first day may have begun before its first sample.
        if made.end_ms - made.start_ms >= MS_PER_DAY - MS_PER_HOUR:
            out[utc(start).date()] = made
    return out


def _line(
    name: str,
    budget: Decimal | None,
    now: CostStatement,
    history: Mapping[dt.date, CostStatement],
    ahead: Sequence[tuple[dt.date, Fraction]],
) -> BudgetLine:
    if name == ALL:
        seen = {day: made.dollars.paid_usd for day, made in history.items() if not isinstance(made.dollars, Unknown)}
        unpriced = sum(row.paid_h for row in now.unpriced)
        return BudgetLine(name, None, budget, now.paid_usd, forecast(seen, ahead), unpriced)
    row, of = row_named(now, name)
    if row is None:
        return BudgetLine(name, None, budget, Unknown(NO_TIME), Unknown(NO_TIME))
    spent = row.dollars if isinstance(row.dollars, Unknown) else row.dollars.paid_usd
    daily = {day: _paid(made, name, of) for day, made in history.items()}
    known = {day: amount for day, amount in daily.items() if not isinstance(amount, Unknown)}
    return BudgetLine(name, of, budget, spent, forecast(known, ahead), row.unpriced_h)


def _paid(made: CostStatement, name: str, of: Kind | None) -> Decimal | Unknown:
    """What a team or namespace paid on a day; nothing on a day without time of its own."""
    row, _ = row_named(made, name, of)
    if row is None:
        return ZERO
    return row.dollars if isinstance(row.dollars, Unknown) else row.dollars.paid_usd


def _assumptions(lines: Sequence[BudgetLine], unseen_ms: int, now: CostStatement) -> Iterator[str]:
    made = next((line.forecast for line in lines if isinstance(line.forecast, Forecast) and line.forecast.days), None)
    if made is not None:
        yield f"forecast: {made.words}; the range is the 95 % prediction interval by their scatter"
        yield "days ahead are taken as independent of each other; a change of the fleet shows only after it was seen"
    if unseen_ms:
        days = unseen_ms / MS_PER_DAY
        yield (
            f"the first {days:.1f} days of the month are before the first sample, and no inventory prices them: they "
            "are forecast, not counted as zero"
        )
    yield "months are calendar months, UTC"
    yield from now.assumptions
