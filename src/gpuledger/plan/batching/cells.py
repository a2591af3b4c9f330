"""What does a cell of a file of jobs or pools say: a count, dollars, a length, an instant, a yes or a no?

Every fault names the file, the row, the column, what was found and what to write instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.prices.offers import MOST_USD_PER_H
from gpuledger.errors import FactError, InputError
from gpuledger.numerals import Ambiguous, plain_number
from gpuledger.telemetry.stamps import Fault, StampReader
from gpuledger.units import MS_PER_DAY, MS_PER_S

MOST_MS = 3660 * MS_PER_DAY
# A plain number below this is counted from the start of the plan; from here on it is an epoch time.
LEAST_EPOCH = 100_000_000.0
HOURS_PER_YEAR = 8760
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d)(?:\.\d+)?)?")
_LENGTHS = re.compile(r"\+?\s*((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Column names, units and words as the data file lists them."""

    version: int
    jobs: dict[str, tuple[str, ...]]
    pools: dict[str, tuple[str, ...]]
    units_s: dict[str, float]
    words: dict[str, tuple[str, ...]]


@cache
def names() -> Names:
    """The shipped list."""
    return load_toml(data_dir("gpuledger.plan.batching", "columns.toml"), Names)


@dataclass(frozen=True)
class Column:
    """A column of the file that fills one of ours; `unit_s`: seconds of one of its numbers, where its name says so."""

    ours: str
    theirs: str
    unit_s: float | None = None


@dataclass(frozen=True)
class Line:
    """One row by our names; `ignored`: columns of the file that are none of ours."""

    path: str
    number: int
    cells: Mapping[str, str]
    columns: Mapping[str, Column]
    ignored: tuple[str, ...] = ()

    def text(self, ours: str) -> str:
        """The cell, "" where it is blank or the file has no such column."""
        found = self.cells.get(ours, "").strip()
        return "" if found.casefold() in names().words["blank"] else found

    def fault(self, ours: str, hint: str, problem: str = "") -> FactError:
        """An error about one cell."""
        column = self.columns[ours].theirs if ours in self.columns else ours
        return FactError(self.path, f"row {self.number}, {column}", problem or f"found {self.text(ours)!r}", hint=hint)

    def digits(self, ours: str, *, whole: bool = False) -> str:
        """The cell as Python writes numbers."""
        try:
            return plain_number(self.text(ours), whole=whole)
        except Ambiguous as error:
            raise self.fault(ours, error.hint, error.problem) from None

    def number_of(
        self, ours: str, *, least: float = 0.0, over: bool = False, whole: bool = False, hint: str
    ) -> float | None:
        """A finite number from `least` on (`over`: above it); None where the cell is blank."""
        text = self.digits(ours, whole=whole)
        if not text:
            # A cell that spells out not-a-number is not a blank one.
            if self.cells.get(ours, "").strip().casefold() == "nan":
                raise self.fault(ours, hint, "found 'nan'")
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or found < least or (over and found == least):
            raise self.fault(ours, hint)
        return found

    def whole(self, ours: str, hint: str) -> int | None:
        """A whole number from 1 on."""
        found = self.number_of(ours, least=1.0, whole=True, hint=hint)
        if found is not None and (found != int(found) or found > 1e9):
            raise self.fault(ours, hint)
        return None if found is None else int(found)

    def dollars(self, ours: str) -> Decimal | None:
        """Dollars per GPU-hour, from 0 on."""
        text, hint = self.digits(ours), "give dollars per GPU-hour, such as 2.49"
        if not text:
            return None
        try:
            found = Decimal(text)
        except InvalidOperation:
            found = Decimal("NaN")
        if not found.is_finite() or not 0 <= found <= MOST_USD_PER_H:
            raise self.fault(ours, hint)
        return found

    def yes(self, ours: str) -> bool:
        """A yes or a no; blank is no."""
        text = self.text(ours).casefold()
        if text not in (*names().words["yes"], *names().words["no"]):
            raise self.fault(ours, "write yes or no")
        return text in names().words["yes"]


def length_ms(line: Line, ours: str, unit_s: float | None, hint: str) -> int | None:
    """A length above 0: a number in `unit_s`, 1h30m, or 01:30:00 as Slurm writes it; None where blank."""
    text = line.text(ours)
    found = _text_length(text)
    if found is None:
        if unit_s is None and text:
            line.number_of(ours, hint=hint)
        number = line.number_of(ours, over=True, hint=hint)
        if number is None:
            return None
        found = number * (unit_s or 1.0) * MS_PER_S
    if not 0 < found <= MOST_MS:
        raise line.fault(ours, hint)
    return max(1, round(found))


def _text_length(text: str) -> float | None:
    """1h30m, 90 min, 2-03:00:00 or 01:30 in milliseconds; None where it is none of them."""
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * MS_PER_S
    if not _LENGTHS.fullmatch(text):
        return None
    parts = _PART.findall(text)
    units = names().units_s
    if any(unit.casefold() not in units for _, unit in parts):
        return None
    return sum(float(amount) * units[unit.casefold()] for amount, unit in parts) * MS_PER_S


def is_plain(line: Line, ours: str) -> bool:
    """Whether a cell is a bare number."""
    try:
        float(line.digits(ours))
    except ValueError:
        return False
    return True


class Instants:
    """Reads the instants of a file: ISO text, epoch numbers, or a length after the start of the plan."""

    def __init__(self, zone: str, lines: Sequence[Line], columns: Sequence[str]) -> None:
        self.unit_s = _unit_s([float(line.digits(c)) for line in lines for c in columns if is_plain(line, c)])
        self._stamps = StampReader(("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y"), zone)
        self.relative = self.zoneless = False

    def read(self, line: Line, ours: str) -> int | float | None:
        """Milliseconds since 1970 as an int, or milliseconds after the start as a float; None where blank."""
        import pyarrow as pa

        text = line.text(ours)
        hint = "write 2026-11-20T08:30Z, an epoch time, or hours after the start such as 12 or 12h"
        if not text:
            return None
        column, number = line.columns[ours], is_plain(line, ours)
        value = float(line.digits(ours)) if number else 0.0
        if number and not (math.isfinite(value) and value >= 0):
            raise line.fault(ours, hint)
        after = (
            value * (column.unit_s or self.unit_s) * MS_PER_S if number and value < LEAST_EPOCH else _text_length(text)
        )
        if after is not None:
            self.relative = True
            if after > MOST_MS:
                raise line.fault(ours, hint)
            return float(after)
        at, fault = self._stamps.read(pa.array([text]))
        self.zoneless |= self._stamps.zoneless
        if fault[0] != Fault.NONE or not 0 < int(at[0]) < 7_258_118_400_000:
            raise line.fault(ours, hint)
        return int(at[0])


def _unit_s(numbers: Sequence[float]) -> float:
    """Small numbers are hours after the start; where they go beyond a year of hours, they are seconds after it."""
    small = [n for n in numbers if n < LEAST_EPOCH]
    return 1.0 if small and max(small) > HOURS_PER_YEAR else 3600.0


def positive(name: str, value: float, *, most: float = math.inf) -> float:
    """An option that must be a number above 0."""
    if not math.isfinite(value) or not 0 < value <= most:
        raise InputError(
            f"{name} is {value:g}", hint=f"give a number above 0{'' if most == math.inf else f' and up to {most:g}'}"
        )
    return value


def each(values: Iterator[str] | Sequence[str], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    listed = list(values)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
