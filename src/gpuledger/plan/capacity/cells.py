"""What do the cells of a table of demand say: numbers, instants, lengths of jobs?

A comma in a number is a decimal comma where the column shows it, a mark of thousands where the column shows that, and
refused where it may be either. Lengths without a unit are seconds only where they can hardly be anything else.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import FileFault, InputError
from gpuledger.times import instant_ms
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S

Rows = Sequence[tuple[int, Mapping[str, str]]]
# Numbers below this are seconds from some start; above it, milliseconds since 1970; beyond the last, nothing.
FIRST_EPOCH_S, FIRST_EPOCH_MS, LAST_EPOCH_MS = 1e8, 1e11, 7.2e12
MOST_HOURS = 24 * 366 * 5
# Bare lengths are seconds where the middle one is at least this: as hours it would be days.
SECONDS_FROM = 60.0
LENGTHS = ("duration", "runtime", "run_time", "elapsed", "length", "walltime")
UNITS_S: dict[str, float] = {
    "s": 1, "sec": 1, "secs": 1, "seconds": 1, "min": 60, "mins": 60, "minutes": 60, "h": 3600, "hr": 3600, "hrs": 3600,
    "hours": 3600, "d": 86400, "days": 86400, "ms": 0.001,
}  # fmt: skip
SAID = {1: "seconds", 60: "minutes", 3600: "hours", 86400: "days", 0.001: "milliseconds"}
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_POINT = re.compile(r"[+-]?\d*\.(?!\d{3}$)\d*")


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column, and how its commas were read ("" where it has none)."""

    values: list[float]
    commas: str = ""


def is_words(text: str) -> bool:
    """Whether a cell is neither empty nor a number, however its commas are meant."""
    try:
        float(text.replace(",", "") or "0")
    except ValueError:
        return True
    return False


def numbers(path: Path, rows: Rows, column: str) -> Numbers:
    """A number from 0 on in each row."""
    commas = _commas(path, [(line, row[column].strip()) for line, row in rows], column)
    return Numbers([_number(path, line, column, row[column].strip(), commas) for line, row in rows], commas)


def _commas(path: Path, cells: Sequence[tuple[int, str]], column: str) -> str:
    """What the commas of a column mark, by the cells in which they can mark one thing only."""
    there = [(line, text) for line, text in cells if "," in text]
    if not there:
        return ""
    decimal = any(_DECIMAL_COMMA.fullmatch(text) and not _THOUSANDS.fullmatch(text) for _, text in there)
    thousands = any(
        _POINT.fullmatch(text) or (_THOUSANDS.fullmatch(text) and not _DECIMAL_COMMA.fullmatch(text))
        for _, text in cells
    )
    if decimal != thousands:
        return "decimals" if decimal else "thousands"
    line, text = there[0]
    raise FileFault(
        path,
        f"line {line}: {column} is {text!r}: its comma may mark decimals or thousands",
        hint="write numbers with a decimal point and no comma, as 1234.5",
    )


def _number(path: Path, line: int, column: str, text: str, commas: str) -> float:
    plain = text.replace(".", "").replace(",", ".") if commas == "decimals" else text.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        hint = "give 0 or more; leave the row out where nothing was measured"
        raise FileFault(path, f"line {line}: {column} is {text!r}", hint=hint)
    return value


def instants(path: Path, rows: Rows, column: str, today_ms: int | None) -> tuple[list[int], bool]:
    """Milliseconds since 1970, and whether the table counts from a start of its own: then it ends now."""
    out, relative = [], False
    for line, row in rows:
        text = row[column].strip()
        try:
            number = float(text)
        except ValueError:
            try:
                out.append(instant_ms(text))
            except InputError as error:
                raise FileFault(path, f"line {line}: {error.message}", hint=error.hint) from error
            continue
        if not 0 <= number < LAST_EPOCH_MS:
            raise FileFault(path, f"line {line}: {column} is {text!r}", hint="give a time such as 2026-01-20T08:00")
        relative |= number < FIRST_EPOCH_S
        out.append(round(number if number >= FIRST_EPOCH_MS else number * MS_PER_S))
    if relative:
        shift = (today_ms or 0) // MS_PER_DAY * MS_PER_DAY - -(-(max(out) + 1) // MS_PER_DAY) * MS_PER_DAY
        out = [t + shift for t in out]
    if (max(out) - min(out)) // MS_PER_HOUR > MOST_HOURS:
        raise FileFault(path, "its times reach over more than five years", hint="leave out what is long past")
    return out, relative


def length_column(there: Sequence[str]) -> str | None:
    """The column with the length of jobs: one of the usual names, with a unit at its end or without."""
    names = [*LENGTHS, *(f"{name}_{unit}" for name in LENGTHS for unit in UNITS_S), "hours"]
    return next((name for name in names if name in there), None)


def lengths(path: Path, rows: Rows, column: str, times: Sequence[int]) -> tuple[list[int], str]:
    """How long each job ran, in milliseconds, and in which unit; one without a length runs to the table's last time."""
    given = [(line, row) for line, row in rows if row[column].strip()]
    found = dict(zip((line for line, _ in given), numbers(path, given, column).values, strict=True))
    unit = _unit_s(path, column, list(found.values()))
    last, out = max(times), []
    for (line, _), start in zip(rows, times, strict=True):
        amount = found.get(line)
        if amount is not None and amount * unit * MS_PER_S > MOST_HOURS * MS_PER_HOUR:
            raise FileFault(
                path,
                f"line {line}: {column} is {amount:g} {SAID[unit]}, more than five years",
                hint="check the unit: it can be at the end of the column's name, as duration_s or duration_h",
            )
        out.append(last - start if amount is None else round(amount * unit * MS_PER_S))
    return out, SAID[unit]


def _unit_s(path: Path, column: str, values: Sequence[float]) -> float:
    """The seconds of one of its numbers, by its name; else seconds where they can hardly be minutes or hours."""
    ending = column.rpartition("_")[2]
    if ending in UNITS_S:
        return UNITS_S[ending]
    known = [v for v in values if v]
    if not known or statistics.median(known) >= SECONDS_FROM:
        return 1
    raise FileFault(
        path,
        f"the unit of the column {column} is not known",
        hint=f"name it {column}_s, {column}_min or {column}_h",
    )
