"""What is paid for, from when to when, and at which price?

inventory.csv: device,from,to,instance,region,purchase_option,usd_per_h
device is a GPU's UUID, UUID/INSTANCE for one MIG slice, HOST/INDEX, or a host name for all of its GPUs. usd_per_h is
for what the row names: for a host it is the price of the machine, and its GPUs share it. Where it is empty the price
is looked up by instance, region and purchase option. An empty from or to leaves that end open.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from gpuledger.bounds import DOCUMENT_MIB, read_text
from gpuledger.catalog.files import data_dir
from gpuledger.catalog.prices.offers import PRICE_RANGE, plausible_usd_per_h
from gpuledger.cost.inventories.findings import InventoryUse, Source
from gpuledger.errors import FactError, FileFault, map_os_error, nearest
from gpuledger.numerals import Ambiguous, Shown, Unclear, number_in, shown_by
from gpuledger.telemetry.date_order import days_of
from gpuledger.units import MS_PER_S, utc

COLUMNS = ("device", "from", "to", "instance", "region", "purchase_option", "usd_per_h")
PURCHASE_OPTIONS = ("on_demand", "spot", "reserved", "owned")
NEEDED = ("device",)


@dataclass(frozen=True)
class Paid:
    """One row: a device, paid for from one instant to another (None: open). `source`: what its price rests on."""

    row: int
    device: str
    from_ms: int | None
    to_ms: int | None
    instance: str
    region: str
    purchase_option: str
    usd_per_h: Decimal | None
    source: Source = Source.GPU_ROW
    file: str = ""

    def within(self, start_ms: int, end_ms: int) -> tuple[int, int] | None:
        """The part of a window this row pays for."""
        low = start_ms if self.from_ms is None else max(start_ms, self.from_ms)
        high = end_ms if self.to_ms is None else min(end_ms, self.to_ms)
        return (low, high) if low < high else None


@dataclass(frozen=True)
class Inventory:
    """All rows, in the order of the file. `use`: how they were matched with the GPUs of a lake; None before that."""

    path: str
    rows: tuple[Paid, ...]
    use: InventoryUse | None = None

    @cached_property
    def by_device(self) -> Mapping[str, tuple[Paid, ...]]:
        """The rows of each device in order of time."""
        found: dict[str, list[Paid]] = {}
        for row in self.rows:
            found.setdefault(row.device, []).append(row)
        return {d: tuple(sorted(rows, key=_start)) for d, rows in found.items()}


def _start(row: Paid) -> int:
    return -(1 << 62) if row.from_ms is None else row.from_ms


def demo_inventory() -> Inventory:
    """What the demo fleet is paid with: each GPU's share of its instance's on-demand price, as listed 2026-08-22."""
    shipped = read_inventory(data_dir("gpuledger.cost", "data", "demo_inventory.csv"))
    return replace(shipped, path="the demo's own inventory")


def read_inventory(file: str | Path) -> Inventory:
    """A file of paid devices, checked whole; an error names file, row, field and value, and what to do."""
    source = Path(file) if isinstance(file, str) else file
    try:
        text = read_text(source, "utf-8-sig", DOCUMENT_MIB)
    except OSError as error:
        raise map_os_error(error, str(source), "read the inventory") from error
    except UnicodeDecodeError as error:
        raise FileFault(str(source), f"not text: {error.reason}", hint="save the inventory as CSV in UTF-8") from error
    return Inventory(str(source), rows_of_text(str(source), text))


def rows_of_text(path: str, text: str) -> tuple[Paid, ...]:
    """The rows of a CSV file, checked."""
    reader = csv.DictReader(text.splitlines())
    try:
        names = [name.strip() for name in reader.fieldnames or []]
        lines = [(number, line) for number, line in enumerate(reader, start=2) if any(line.values())]
    except csv.Error as error:
        where = f"line {reader.line_num + 1}: cannot be read as CSV: {error}"
        raise FileFault(path, where, hint="shorten the value, or close its quote") from error
    return rows_of_table(path, names, lines, typed=False)


def rows_of_table(
    path: str,
    names: Sequence[str],
    lines: Sequence[tuple[int, Mapping[str, str] | Mapping[str | None, str | None]]],
    *,
    typed: bool = True,
) -> tuple[Paid, ...]:
    """The rows of a table, each with its number, checked; `typed`: its numbers are numbers and not text."""
    _check_header(path, names)
    cells = [(number, _cells(path, number, line)) for number, line in lines]
    prices = shown_by((line.get("usd_per_h", "") for _, line in cells), points=typed)
    rows = tuple(_row(path, number, line, prices) for number, line in cells)
    if not rows:
        raise FileFault(path, "no rows", hint=f"write one line per device under: {','.join(COLUMNS)}")
    check_overlaps(Inventory(path, rows))
    return rows


def _check_header(path: str, names: Iterable[str]) -> None:
    found = list(names)
    for name in found:
        if name not in COLUMNS:
            close = nearest(name, COLUMNS, limit=1)
            hint = f"did you mean {close[0]}?" if close else f"use these columns: {','.join(COLUMNS)}"
            raise FactError(path, "row 1", f"column {name!r} is unknown", hint=hint)
    for name in NEEDED:
        if name not in found:
            raise FactError(path, "row 1", f"column {name!r} is missing", hint=f"begin with: {','.join(COLUMNS)}")


def _cells(path: str, number: int, line: Mapping[str, str] | Mapping[str | None, str | None]) -> dict[str, str]:
    if None in line:
        raise FactError(path, f"row {number}", "more values than columns", hint="quote values that hold a comma")
    return {str(k).strip(): (v or "").strip() for k, v in line.items()}


def _row(path: str, number: int, get: Mapping[str, str], prices: Shown) -> Paid:
    fail = _Fault(path, number, get)
    if not get["device"]:
        raise fail("device", "give the UUID of the GPU, or the name of its host")
    option = get.get("purchase_option") or "on_demand"
    if option not in PURCHASE_OPTIONS:
        raise fail("purchase_option", f"use one of {', '.join(PURCHASE_OPTIONS)}")
    start, end = fail.instant("from"), fail.instant("to")
    if start is not None and end is not None and start >= end:
        raise fail("to", f"make it later than from ({utc(start).isoformat()})")
    price = fail.price("usd_per_h", prices)
    instance = get.get("instance", "")
    if price is None and not instance:
        raise fail("usd_per_h", "give the price, or the instance to look it up by")
    if price is None and option not in {"on_demand", "spot"}:
        raise fail("usd_per_h", f"give the price: {option} prices are not listed")
    return Paid(number, get["device"], start, end, instance, get.get("region", ""), option, price, file=path)


class _Fault:
    """Reads the fields of one row; its errors name file, row and field."""

    def __init__(self, path: str, number: int, values: Mapping[str, str]) -> None:
        self.path, self.number, self.values = path, number, values

    def __call__(self, field: str, hint: str, problem: str = "") -> FactError:
        found = problem or f"found {self.values.get(field, '')!r}"
        return FactError(self.path, f"row {self.number}, {field}", found, hint=hint)

    def instant(self, field: str) -> int | None:
        """A time as milliseconds; without a zone it is UTC."""
        text = self.values.get(field, "")
        if not text:
            return None
        try:
            at = dt.datetime.fromisoformat(text)
        except ValueError:
            days = " or ".join(dict.fromkeys(map(str, days_of(text).values())))
            problem = f"{text!r} can be {days}" if " or " in days else ""
            raise self(field, "write the time as 2026-01-20 or 2026-01-20T08:00:00+00:00", problem) from None
        at = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
        if not 1970 < at.year < 9999:
            raise self(field, "give a year from 1971 to 9998, or leave it empty for an open end")
        return round(at.timestamp() * MS_PER_S)

    def price(self, field: str, column: Shown) -> Decimal | None:
        """Dollars per hour, above zero; `column`: how the prices of the table are written."""
        text = self.values.get(field, "")
        if not text:
            return None
        try:
            price = number_in(text, column)
        except Ambiguous as error:
            raise self(field, error.hint, error.problem) from None
        except Unclear:
            raise self(field, "write the price as a plain number above 0, for example 6.88") from None
        owned = price == 0 and self.values.get("purchase_option") == "owned"
        if not owned and not plausible_usd_per_h(price):
            raise self(field, f"give a price above 0, {PRICE_RANGE}; 0 is for purchase_option owned")
        return price


def check_overlaps(inventory: Inventory) -> None:
    """Refuse two rows for one device at the same time."""
    for device, rows in inventory.by_device.items():
        for one, other in pairwise(rows):
            if one.to_ms is None or (other.from_ms is None or other.from_ms < one.to_ms):
                problem = f"{device} is already paid for by row {one.row} at that time"
                hint = "end the earlier row before the later begins"
                raise FactError(other.file or inventory.path, f"row {other.row}, from", problem, hint=hint)
