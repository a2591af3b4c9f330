"""How do the columns of a table write numbers and days, where a value of them does not tell?

384,125 and 02/09/2026 have two readings each. The other values of the column decide; where none tells, the table is
refused with both readings. A point before three digits stands before decimals, unless the table has decimal commas or
is one of those that spreadsheets write with them: between semicolons or tabs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal

from gpuledger.numerals import Mark, Shown, Unclear, number_in, shown_by
from gpuledger.telemetry.date_order import Order, days_of, order_of

Values = Callable[[Collection[str]], Iterable[str]]


class Written:
    """Looks through a column for a value that tells, once, and only where one does not tell by itself.

    `points`: whether a point stands before decimals where its column does not show otherwise. `dates`: days that were
    read in the one order a format has, to be looked at when all are read.
    """

    def __init__(self, values: Values, *, typed: bool, points: bool) -> None:
        self._values, self._typed, self.points = values, typed, points
        self.dates: set[str] = set()
        self._shown: dict[str, Shown] = {}
        self._orders: dict[tuple[str, ...], tuple[Order, str] | None] = {}

    def number(self, column: str, text: str) -> Decimal:
        """A number of this column; an `Unclear` where it has two readings, or none."""
        if column not in self._shown:
            found = self._shown[column] = shown_by(self._values((column,)), points=self._typed)
            if found.mark is Mark.COMMA and not self._typed:
                self.points = False
        return number_in(text, self._shown[column], points=self.points)

    def day(self, columns: Sequence[str], text: str) -> dt.date | None:
        """The day of a date such as 02/09/2026 in these columns, which are written alike; None where it is none."""
        days = days_of(text)
        if not days or order_of(text) is None:
            return next(iter(days.values()), None)
        key = tuple(sorted(columns))
        if key not in self._orders:
            self._orders[key] = order_in(self._values(key))
        found = self._orders[key]
        if found is None:
            one, other = days.values()
            raise Unclear(f"{text!r} can be {one} or {other}", "write dates as 2026-01-20")
        order, shows = found
        if order not in days:
            raise Unclear(f"{text!r} and {shows!r} have the day in other places", "write dates as 2026-01-20")
        return days[order]


def order_in(dates: Iterable[str]) -> tuple[Order, str] | None:
    """The order that dates are in, with the first date that shows it; None where none does."""
    return next(((o, text) for text in dates if (o := order_of(text)) and o is not Order.EITHER), None)
