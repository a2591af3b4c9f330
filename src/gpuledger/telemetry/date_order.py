"""Which number is the month in dates such as 03/09/2026?

Layouts of this package read such dates month first, a user's map as it says. A file whose dates can only be in the
other order is refused as a whole: those that fit both would be read as days of other months.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import msgspec

from gpuledger.errors import FileFault

_DATE = re.compile(r"\s*(\d{1,2})/(\d{1,2})/\d{2,4}\b")
_WHOLE_DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_MONTHS, _DAYS = 12, 31


class Order(StrEnum):
    """What a date shows of the order it is written in."""

    EITHER = "either"
    MONTH_FIRST = "month first"
    DAY_FIRST = "day first"


_STARTS = {Order.MONTH_FIRST: "%m/%d/", Order.DAY_FIRST: "%d/%m/"}


def assumed(layouts: Iterable[str]) -> Order | None:
    """The order in which layouts read dates; None where they read none, or both."""
    found = {order for layout in layouts for order, start in _STARTS.items() if layout.startswith(start)}
    return found.pop() if len(found) == 1 else None


def order_of(text: str) -> Order | None:
    """The order of a date; None where it is the same in both, or not such a date."""
    found = _DATE.match(text)
    if found is None:
        return None
    first, second = int(found[1]), int(found[2])
    if first <= _MONTHS and second <= _MONTHS:
        return None if first == second else Order.EITHER
    if first <= _MONTHS and second <= _DAYS:
        return Order.MONTH_FIRST
    return Order.DAY_FIRST if first <= _DAYS and second <= _MONTHS else None


@lru_cache(maxsize=1 << 12)
def days_of(text: str) -> Mapping[Order, dt.date]:
    """The days that a date such as 03/09/2026 may be, by the order it is read in; none where it is no such date."""
    found = _WHOLE_DATE.fullmatch(text)
    out: dict[Order, dt.date] = {}
    if found is not None:
        first, second, year = (int(part) for part in found.groups())
        for order, (month, day) in {Order.MONTH_FIRST: (first, second), Order.DAY_FIRST: (second, first)}.items():
            with suppress(ValueError):
                out[order] = dt.date(year, month, day)
    return out


def turned(layouts: Iterable[str], order: Order) -> tuple[str, ...]:
    """The layouts with dates in this order."""
    both = "|".join(_STARTS.values())
    return tuple(re.sub(f"^(?:{both})", _STARTS[order], layout) for layout in layouts)


class Dates(msgspec.Struct, frozen=True):
    """How the dates of a file are read and what they show; `map_file`: the user's map that says so, if any.

    `orders`: by order the first date that shows it.
    """

    layouts: tuple[str, ...] = ()
    map_file: str = ""
    orders: dict[Order, str] = {}

    @property
    def other_order(self) -> Order | None:
        """The order the dates are in, where they are read in another."""
        reads = assumed(self.layouts)
        shown = [order for order in _STARTS if order in self.orders]
        # Where both show, those that the layouts do not read are single wrong cells.
        return shown[0] if reads and len(shown) == 1 and shown[0] is not reads else None

    def notes(self, path: str | Path) -> list[str]:
        """What to report of the dates; a fault where they are in another order than they are read in."""
        if order := self.other_order:
            (right,) = turned(["%m/%d/%Y %H:%M:%S"], order)
            raise FileFault(
                path,
                f"its dates are {order.value} ({self.orders[order]!r}), and would be read {assumed(self.layouts)}",
                hint=f'set formats = ["{right}"] under [time] in {self.map_file}'
                if self.map_file
                else "write a mapping file with gpuledger import --explain FILE --write-map map.toml, then pass"
                " --map map.toml",
            )
        if self.map_file or [*self.orders] != [Order.EITHER]:
            return []
        words = (
            f"its dates are read month first ({self.orders[Order.EITHER]!r}); if the day comes first, pass a mapping"
        )
        return [f'{words} file with formats = ["%d/%m/%Y %H:%M:%S"] under [time]']


def joined(parts: Sequence[Dates]) -> Dates:
    """The dates of all pieces of a file, in order."""
    orders = {order: date for part in reversed(parts) for order, date in part.orders.items()}
    return msgspec.structs.replace(parts[0], orders=orders)
