"""What do the fields of one row of a bill hold: dollars, times, hours, a type of machine with GPUs?

An error names file, row, field and value.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache

from gpuledger.catalog.prices.offers import load_offers
from gpuledger.cost.inventories.content import Content, Row
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import Found, Spent
from gpuledger.errors import FactError, FileFault, InputError
from gpuledger.numerals import Ambiguous, Unclear
from gpuledger.telemetry.date_order import Order, days_of
from gpuledger.units import MS_PER_DAY, MS_PER_S

USD = "USD"
# Between dots the day comes first everywhere.
_SPELLINGS = ("%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M:%S.%f UTC", "%d.%m.%Y")
MOST_USD, _ZERO = Decimal("1e12"), Decimal(0)
_PLAIN_AMOUNT = "export the bill again: an amount is a plain number such as 55.04"


@dataclass(frozen=True, slots=True)
class Fields:
    """One row."""

    content: Content
    number: int
    values: Row

    @property
    def path(self) -> str:
        """The file it is in."""
        return self.content.path

    def text(self, *names: str) -> str:
        """The first of these columns that has a value."""
        get = self.values.get
        for name in names:
            if value := get(name):
                return value
        return ""

    def fault(self, field: str, hint: str, problem: str = "") -> FactError:
        """An error about one field."""
        found = problem or f"found {self.values.get(field, '')!r}"
        return FactError(self.path, f"row {self.number}, {field}", found, hint=hint)

    def number_of(self, *names: str) -> Decimal | None:
        """An amount; None where every one of the columns is empty."""
        get = self.values.get
        for name in names:
            if text := get(name):
                break
        else:
            return None
        try:
            found = Decimal(text) if self.content.written.points else self._looked_up(name, text)
        except InvalidOperation:
            found = self._looked_up(name, text)
        if not found.is_finite() or abs(found) > MOST_USD:
            raise self.fault(name, _PLAIN_AMOUNT)
        return found

    def _looked_up(self, name: str, text: str) -> Decimal:
        """An amount whose column may have to say how it is written."""
        try:
            return self.content.written.number(name, text)
        except Ambiguous as error:
            raise self.fault(name, f"{error.hint}, or export the bill again", error.problem) from None
        except Unclear:
            raise self.fault(name, _PLAIN_AMOUNT) from None

    def instant(self, *names: str, alike: Collection[str] = (), month_first: bool = False) -> int | None:
        """A time in milliseconds; without a zone it is UTC. None where every one of the columns is empty.

        Days such as 02/09/2026 are read by what the columns `alike` show, or by the format where it says the order.
        """
        name = next((name for name in names if self.values.get(name)), None)
        if name is None:
            return None
        text = self.values[name]
        if "/" in text:
            day = self._day(name, text, (*names, *alike), month_first=month_first)
            at = None if day is None else _time(day.isoformat())
        else:
            at = _time(text)
        if at is None:
            raise self.fault(name, "write the time as 2026-01-20 or 2026-01-20T08:00:00Z")
        return at

    def _day(self, name: str, text: str, columns: Sequence[str], *, month_first: bool) -> dt.date | None:
        if month_first:
            return days_of(text).get(Order.MONTH_FIRST)
        try:
            return self.content.written.day(columns, text)
        except Unclear as error:
            raise self.fault(name, error.hint, error.problem) from None

    def period(
        self, starts: Collection[str], ends: Collection[str], length_ms: int = MS_PER_DAY, *, month_first: bool = False
    ) -> tuple[int, int]:
        """From when to when the row counts; without an end it is this long."""
        start = self.instant(*starts, alike=ends, month_first=month_first)
        end = self.instant(*ends, alike=starts, month_first=month_first)
        if start is None:
            raise self.fault(next(iter(starts)), "export the bill with the start of each charge")
        end = start + length_ms if end is None or end == start else end
        if end < start:
            raise self.fault(next(iter(ends)), "make it later than the start")
        return start, end

    def object_in(self, name: str) -> dict[str, object]:
        """The JSON object that a column holds; empty where it holds none."""
        try:
            found = json.loads(self.values.get(name) or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def dollars(self, amount: Decimal, currency: str) -> Decimal:
        """The amount, which must be in US dollars."""
        if currency and currency.upper() != USD:
            hint = "export the bill in USD (or a column with dollars); amounts are not converted by a guessed rate"
            raise FactError(self.path, f"row {self.number}", f"the bill is in {currency}, not in USD", hint=hint)
        return amount


def _time(text: str) -> int | None:
    at: dt.datetime | None = None
    try:
        at = dt.datetime.fromisoformat(text)
    except ValueError:
        for spelling in _SPELLINGS:
            try:
                at = dt.datetime.strptime(text, spelling)
                break
            except ValueError:
                continue
    if at is None:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    return round(at.timestamp() * MS_PER_S) if 1970 < at.year < 2200 else None


def rows_of(content: Content, needed: Collection[str] = ()) -> Iterator[Fields]:
    """The rows of a table; a fault where a column is missing or there are none."""
    missing = sorted(set(needed) - content.columns)
    if missing:
        raise FileFault(content.path, f"no column {missing[0]}", hint=f"export it with: {', '.join(sorted(needed))}")
    found = False
    for number, values in content.table:
        found = True
        yield Fields(content, number, values)
    if not found:
        raise FileFault(content.path, "no rows", hint="is the export complete? write it again")


def billed(
    content: Content,
    kind: str,
    needed: Collection[str],
    judged: Callable[[Fields], Spent | Skipped],
    cost: Callable[[Fields], Decimal | None],
) -> Found:
    """A bill row by row: what each was spent on, or why it does not count and what it cost."""
    spent, passed = list[Spent](), PassedOver(cost)
    for row in rows_of(content, needed):
        found = judged(row)
        if isinstance(found, Spent):
            spent.append(found)
            continue
        passed.add(row, found)
    rows = len(spent) + passed.rows.total()
    return Found(
        content.path, kind, rows, spent=tuple(spent), skipped=passed.rows, skipped_usd=passed.dollars,
        skipped_unread=passed.unread,
    )  # fmt: skip


class PassedOver:
    """Rows that do not count, by reason, and what they cost; no reason to refuse the bill where that cannot be read."""

    def __init__(self, cost: Callable[[Fields], Decimal | None]) -> None:
        self._cost = cost
        self.rows, self.unread = Counter[Skipped](), Counter[Skipped]()
        self.dollars: dict[Skipped, Decimal] = {}

    def add(self, row: Fields, why: Skipped) -> None:
        """One more row."""
        self.rows[why] += 1
        try:
            paid = self._cost(row)
        except InputError:
            self.unread[why] += 1
            return
        if paid:
            self.dollars[why] = self.dollars.get(why, _ZERO) + paid


# Families with GPUs as the clouds name them; types of other families have none.
_WITH = re.compile(r"(p\d|g\d|gr\d)\w*(-\w+)?\.\w+|(standard_)?n[cdgpv]\w*|a\d-\w+-\w+|g\d-\w+-\w+", re.IGNORECASE)
_TYPE = re.compile(r"[a-z][\w-]*\.[\w-]+|(standard|basic)_\w+|[a-z]\d\w*-\w+(-\w+)?", re.IGNORECASE)


@cache
def _counts() -> dict[str, int | None]:
    """GPUs by type of machine, None where a type is offered with several counts."""
    found: dict[str, set[int]] = {}
    for offer in load_offers():
        if offer.instance and isinstance(offer.gpu, str):
            found.setdefault(offer.instance.casefold(), set()).add(int(offer.gpus))
    return {name: counts.pop() if len(counts) == 1 else None for name, counts in found.items()}


def gpus_in(instance: str) -> int | None:
    """How many GPUs a type of machine has by the price list; None where that is unknown."""
    return _counts().get(instance.casefold())


def has_gpus(instance: str) -> bool | None:
    """Whether a type of machine has GPUs; None where its name does not say."""
    if not instance:
        return None
    if instance.casefold() in _counts() or _WITH.fullmatch(instance):
        return True
    return False if _TYPE.fullmatch(instance) else None
