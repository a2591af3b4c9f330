"""What unit is a figure in, and what do we say when it is not known?"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from gpuledger.errors import InputError

MS_PER_S = 1_000
MS_PER_MIN = 60_000
MS_PER_HOUR = 3_600_000
MS_PER_DAY = 86_400_000
PPM = 1_000_000
MIB = 1 << 20
GIB = 1 << 30

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A figure that is not known, and why. Never zero, never another device's figure."""

    why: str

    def __str__(self) -> str:
        return f"not known: {self.why}"

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Range:
    """A figure with the range it may lie in, and what it rests on ("counted", "counters", "power")."""

    low: float
    middle: float
    high: float
    evidence: str
    note: str = ""

    @property
    def point(self) -> float | Unknown:
        """The figure to quote."""
        return self.middle


@dataclass(frozen=True)
class Bounds(Range):
    """A range in which no figure is more likely than another. `middle` serves only to add up and to sort."""

    @property
    def point(self) -> float | Unknown:
        """None that could be relied on."""
        return Unknown(NO_POINT)

    def as_json(self) -> dict[str, object]:
        """As any range, without a middle."""
        ends = {"low": self.low, "middle": self.point, "high": self.high}
        return {**ends, "evidence": self.evidence, "note": self.note}


NO_POINT = "the counters give a range only, see its note"


def point_of(value: Range | Unknown) -> float | Unknown:
    """The middle of a range, unknown where it has none to rely on."""
    return value if isinstance(value, Unknown) else value.point


def known(value: T | Unknown) -> T | None:
    """The value itself, or None where it is not known."""
    return None if isinstance(value, Unknown) else value


def ratio(part: float | int, whole: float | int, why: str) -> float | Unknown:
    """part / whole, or unknown where the whole is 0."""
    return part / whole if whole else Unknown(why)


def count(number: int, one: str, many: str = "") -> str:
    """ "1 GPU", "1,200 GPUs"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(names: Sequence[str], most: int = 3, of: int | None = None) -> str:
    """The first names, and how many more there are; `of`: how many there are, where not all are given."""
    total = len(names) if of is None else of
    more = f" and {total - most} more" if total > most else ""
    return ", ".join(names[:most]) + more


def size(in_bytes: int) -> str:
    """Bytes in the unit that keeps the number short."""
    amount, units = float(in_bytes), ["TB", "GB", "MB", "kB", "B"]
    while amount >= 1000 and len(units) > 1:
        amount, _ = amount / 1000, units.pop()
    return f"{amount:,.{0 if units[-1] == 'B' else 1}f} {units[-1]}"


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def size_bytes(text: str | int) -> int:
    """A size such as 2GiB, 500MB or 1.5T in bytes; units with an i count in 1,024, others in 1,000."""
    found = _SIZE.fullmatch(str(text).strip())
    power = " kmgt".index(found[2].lower() or " ") if found else 0
    amount = float(found[1]) * (1024 if found[3] else 1000) ** power if found else 0.0
    if not 1 <= amount < 1 << 60:
        raise InputError(f"{text!r} is not a size", hint="write a number and a unit: 2GiB, 500MB")
    return int(amount)


def utc(at_ms: int) -> dt.datetime:
    """A stored instant as a UTC datetime."""
    return dt.datetime.fromtimestamp(at_ms / MS_PER_S, tz=dt.UTC)


def utc_day(at_ms: int) -> str:
    """The UTC day an instant falls on, as YYYY-MM-DD."""
    return utc(at_ms).strftime("%Y-%m-%d")


def day_start_ms(day: str) -> int:
    """The first instant of a UTC day written YYYY-MM-DD."""
    return int(dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC).timestamp()) * MS_PER_S
