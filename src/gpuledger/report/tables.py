"""Which tables does the statement fill, and what stands in each cell?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.efficiency.statement import EfficiencyStatement, Range
from gpuledger.errors import UnknownName
from gpuledger.report.written import STYLES, WORDS, sort_key, whole, write
from gpuledger.units import Unknown

SAME_REASON = "not known: same reason"


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column: a field of the row, its heading, how it is written; `below` gives long words their own line,
    `middle` leaves out a range's ends."""

    field: str
    head: str
    style: str
    optional: bool = False
    below: bool = False
    middle: bool = False


class TableKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table as the data file describes it."""

    caption: str
    rows: str
    columns: tuple[Column, ...]
    empty: str
    total: str = ""
    sort: str = ""
    most: int = 0
    note: str = ""


class TablesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole data file."""

    version: int
    tables: dict[str, TableKind]


@dataclass(frozen=True)
class Cell:
    """What a cell says, what it sorts by (None: last), and whether it is a figure we do not know."""

    text: str
    key: float | str | None
    unknown: bool = False
    full: str = ""


@dataclass(frozen=True)
class Pair:
    """One entry of a mapping, as a row."""

    name: str
    share: float


@dataclass(frozen=True)
class Table:
    """A table ready to be drawn."""

    name: str
    caption: str
    heads: tuple[str, ...]
    words: tuple[bool, ...]
    below: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] | None
    note: str
    empty: str


@cache
def table_kinds() -> dict[str, TableKind]:
    """All tables of the data file."""
    kinds = load_toml(data_dir("gpuledger.report", "tables.toml"), TablesFile).tables
    for kind in kinds.values():
        for column in kind.columns:
            if column.style not in STYLES:
                raise UnknownName("style", column.style, STYLES)
    return kinds


def field_of(holder: object, path: str) -> Any:
    """A field by its dotted name."""
    value = holder
    for step in path.split("."):
        value = getattr(value, step)
    return value


def _rows(statement: EfficiencyStatement, path: str) -> list[Any]:
    found = field_of(statement, path)
    if isinstance(found, Mapping):
        return [Pair(str(name), share) for name, share in found.items()]
    return list(found) if isinstance(found, Sequence) else [found]


def _sorted(rows: list[Any], sort: str) -> list[Any]:
    """By the field, largest first after a minus; rows without it stay last."""
    if not sort:
        return rows
    field, down = sort.removeprefix("-"), sort.startswith("-")
    keyed = [(sort_key(field_of(row, field)), row) for row in rows]
    have = sorted((k for k in keyed if k[0] is not None), key=lambda k: k[0], reverse=down)  # type: ignore[arg-type,return-value]
    return [row for _, row in have] + [row for key, row in keyed if key is None]


def _cell(value: object, style: str) -> Cell:
    text = write(value, style)
    full = str(value) if style == "device" else ""
    return Cell(text, sort_key(value), isinstance(value, Unknown), full)


def _once(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """One row; a reason that stands to the left already is not said again."""
    out: list[Cell] = []
    said: set[str] = set()
    for cell in cells:
        again = cell.unknown and cell.text in said
        out.append(Cell(SAME_REASON, None, unknown=True) if again else cell)
        if cell.unknown:
            said.add(cell.text)
    return tuple(out)


def _value(holder: object, column: Column) -> Cell:
    found = field_of(holder, column.field)
    return _cell(found.middle if column.middle and isinstance(found, Range) else found, column.style)


def _total(kind: TableKind, columns: Sequence[Column], statement: EfficiencyStatement) -> tuple[Cell, ...] | None:
    """The last row: the whole fleet, blank where the whole has no such figure."""
    if not kind.total:
        return None
    whole_fleet = field_of(statement, kind.total)
    cells = [Cell("Fleet", None)]
    for column in columns[1:]:
        field = column.field.removeprefix("means.")
        have = hasattr(whole_fleet, field)
        cells.append(_cell(getattr(whole_fleet, field), column.style) if have else Cell("", None))
    return _once(cells)


def build_table(name: str, statement: EfficiencyStatement) -> Table:
    """The table called `name`, filled from the statement."""
    kinds = table_kinds()
    if name not in kinds:
        raise UnknownName("table", name, kinds)
    kind = kinds[name]
    rows = _sorted(_rows(statement, kind.rows), kind.sort)
    columns = [c for c in kind.columns if not c.optional or any(field_of(r, c.field) for r in rows)]
    note = kind.note
    if kind.most and len(rows) > kind.most:
        by = next((c.head.lower() for c in columns if c.field == kind.sort.removeprefix("-")), "as listed")
        cut = f"The first {whole(kind.most)} of {whole(len(rows))} rows, worst first ({by}); report.json has all."
        note = f"{note} {cut}".strip()
        rows = rows[: kind.most]
    return Table(
        name=name,
        caption=kind.caption,
        heads=tuple(c.head for c in columns),
        words=tuple(c.style in WORDS or c.style == "shares" for c in columns),
        below=tuple(c.below for c in columns),
        rows=tuple(_once(_value(row, c) for c in columns) for row in rows),
        total=_total(kind, columns, statement) if len(rows) > 1 else None,
        note=note,
        empty=kind.empty,
    )
