"""What did a kWh carry in each hour? A dated file of the user's: hour,region,g_per_kwh.

    hour,region,g_per_kwh
    2026-01-20T00:00Z,aws:us-east-1,341.5
    2026-01-20T00:00Z,SE,18

`region` is cloud:region, or a grid as the shipped facts name it (US-VA, SE). An hour holds until the next one begins.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuledger.catalog.files import fold, read_text
from gpuledger.catalog.regions import Place
from gpuledger.errors import FileFault, InputError
from gpuledger.times import instant_ms
from gpuledger.units import MS_PER_HOUR

COLUMNS = ("hour", "region", "g_per_kwh")
HIGHEST_G = 2_000.0  # no grid carries this much; a larger figure is per MWh, or in another unit
_HINT = "write a CSV with the columns hour,region,g_per_kwh: 2026-01-20T00:00Z,aws:us-east-1,341.5"


@dataclass(frozen=True)
class HourlyIntensity:
    """Grams of CO2e per kWh by folded region or grid and by the start of the hour."""

    path: str
    by_place: Mapping[str, Mapping[int, float]]

    def of(self, place: Place) -> Mapping[int, float]:
        """The hours of a place: of its region where the file has it, else of its grid."""
        return self.by_place.get(fold(place.name)) or self.by_place.get(fold(place.grid)) or {}


def read_hourly(file: Path) -> HourlyIntensity:
    """The file, checked whole."""
    rows = csv.DictReader(io.StringIO(read_text(file, "read carbon intensities")))
    with _as_csv(file):
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise FileFault(str(file), f"has no column {', '.join(missing)}", hint=_HINT)
    found: dict[str, dict[int, float]] = {}
    for number, row in _numbered(rows, file):
        hour_ms, grams = _hour(row["hour"] or "", file, number), _grams(row["g_per_kwh"] or "", file, number)
        hours = found.setdefault(fold(row["region"] or ""), {})
        if hours.setdefault(hour_ms, grams) != grams:
            problem = f"row {number}: {row['region']} has two figures for {row['hour']}"
            raise FileFault(str(file), problem, hint="keep one row per hour and region")
    if not found:
        raise FileFault(str(file), "has no rows", hint=_HINT)
    return HourlyIntensity(str(file), found)


def _numbered(rows: csv.DictReader[str], file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    with _as_csv(file):
        yield from enumerate(rows, start=2)


@contextmanager
def _as_csv(file: Path) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise FileFault(str(file), f"cannot be read as CSV: {error}", hint=_HINT) from error


def _hour(text: str, file: Path, number: int) -> int:
    try:
        found = instant_ms(text)
    except InputError as error:
        raise FileFault(str(file), f"row {number}: {error.message}", hint=_HINT) from error
    if found % MS_PER_HOUR:
        raise FileFault(str(file), f"row {number}: {text} is not the start of an hour", hint="write hours as HH:00Z")
    return found


def _grams(text: str, file: Path, number: int) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= HIGHEST_G:
        problem = f"row {number}: {text!r} is not grams of CO2e per kWh"
        raise FileFault(str(file), problem, hint=f"give a number from 0 to {HIGHEST_G:,.0f}; 0.341 kg is 341")
    return found
