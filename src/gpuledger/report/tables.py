"""Which tables does a statement fill, and what does each cell show?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec

from gpuledger.cost.money import ZERO
from gpuledger.efficiency.naming import Placed, gpu_name, sort_name
from gpuledger.encode import iso, plain
from gpuledger.report.adding import add_up_columns, places_for, shares_adding_up
from gpuledger.report.written import WORDS, sort_key, usd, whole, write
from gpuledger.units import Bounds, Range, Unknown

SAME_REASON = "not known: same reason"
UNKNOWN = "unknown"


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column: a field of the row, its heading, how it is written.

    `below` gives long words their own line, `middle` leaves out a range's ends, `wide` shows the column only if there
    is room, `bar` draws the share as a bar too, `blank` leaves an unknown figure empty and `short` writes one word
    where the table says why. `adds` makes dollars add up to the total: as a part, or as the whole of all parts.
    """

    field: str
    head: str
    style: str
    optional: bool = False
    below: bool = False
    middle: bool = False
    wide: bool = False
    bar: bool = False
    blank: bool = False
    short: bool = False
    adds: Literal["", "part", "whole"] = ""


class TableKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table as the data file describes it."""

    caption: str
    rows: str
    columns: tuple[Column, ...]
    empty: str
    total: str = ""
    total_name: str = "Fleet"
    sort: str = ""
    most: int = 0
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, what it sorts by (None: last), whether it is an unknown figure; `bar`: a share to draw."""

    text: str
    key: float | str | None = None
    unknown: bool = False
    full: str = ""
    bar: float | None = None


@dataclass(frozen=True)
class Table:
    """A table ready to be drawn.

    `below`: the columns whose words get a line of their own; `wide`: those shown only where there is room.
    """

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    heads: tuple[str, ...]
    words: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    below: Collection[int] = ()
    wide: Collection[int] = ()
    total: tuple[Cell, ...] | None = None
    note: str = ""
    empty: str = ""
    screen_rows: int = 12


def cell(text: str, key: object = None) -> Cell:
    """A cell that sorts by its own text, or by a figure; an unknown figure is marked as one."""
    if isinstance(key, Unknown):
        return Cell(text, None, unknown=True)
    return Cell(text, float(key) if isinstance(key, Decimal | float | int) else str(key or text))


Row = list[Cell | str]


def whole_usd(value: Decimal | Unknown) -> Cell:
    """Dollars without cents."""
    return figure(value, lambda amount: usd(amount, 0))


def figure(value: object, form: Callable[[Any], str]) -> Cell:
    """A cell with a figure in its form, or `unknown`."""
    return cell(UNKNOWN if isinstance(value, Unknown) else form(value), value)


def styled(value: object, style: str, bar: bool = False) -> Cell:
    """A cell with a figure in one of the styles, drawn as a `bar` too; an unknown figure is marked as one."""
    text, key = write(value, style), sort_key(value)
    full = str(value) if style == "device" else ""
    return Cell(text, key, isinstance(value, Unknown), full, key if bar and isinstance(key, float) else None)


def make_table(
    name: str, caption: str, heads: Sequence[str], words: str, rows: Iterable[Sequence[Cell | str]], **more: Any
) -> Table:
    """A table from rows; `words` has a w for each column of words, an n for numbers, and capitals for wide columns."""
    made = tuple(tuple(c if isinstance(c, Cell) else cell(c) for c in row) for row in rows)
    left, wide = tuple(w in "wW" for w in words), [i for i, w in enumerate(words) if w.isupper()]
    return Table(name, caption, tuple(heads), left, made, wide=wide, **more)


def field_of(holder: object, path: str) -> Any:
    """A field by its dotted name, of an object or a mapping; what is unknown has no fields, and stays unknown."""
    value = holder
    for step in path.split("."):
        if value is None or isinstance(value, Unknown):
            return value
        value = value[step] if isinstance(value, Mapping) else getattr(value, step)
    return value


def csv_table(columns: Mapping[str, str], rows: Iterable[object]) -> list[list[Any]]:
    """A CSV file: its column names, then a line for each row. `columns`: where each is in a row.

    A cell is empty where the figure is unknown; dollars are unrounded.
    """
    return [list(columns), *([_csv_cell(c, field_of(row, path)) for c, path in columns.items()] for row in rows)]


def _csv_cell(column: str, value: Any) -> Any:
    if column.endswith("_utc"):
        return iso(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "; ".join(map(str, value))
    return float(value) if column.endswith("_pct") and isinstance(value, Decimal) else plain(value)


def _rows(statement: object, path: str) -> list[Any]:
    found = field_of(statement, path)
    if found is None or isinstance(found, Unknown):
        return []
    if isinstance(found, Mapping):
        parts = shares_adding_up(found) if path.endswith("_pct") else found
        return [{"name": str(name), "share": share} for name, share in parts.items()]
    return list(found) if isinstance(found, Sequence) else [found]


def _sorted(rows: list[Any], sort: str) -> list[Any]:
    """By the field, largest first after a minus; rows without it stay last."""
    if not sort:
        return rows
    field, down = sort.removeprefix("-"), sort.startswith("-")
    keyed = [(sort_key(field_of(row, field)), row) for row in rows]
    have = sorted((k for k in keyed if k[0] is not None), key=lambda k: k[0], reverse=down)  # type: ignore[arg-type,return-value]
    return [row for _, row in have] + [row for key, row in keyed if key is None]


def _once(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """One row; a reason that stands to the left already is not said again."""
    out: list[Cell] = []
    said: set[str] = set()
    for cell in cells:
        again = cell.unknown and cell.text in said and cell.text != UNKNOWN
        out.append(Cell(SAME_REASON, None, unknown=True) if again else cell)
        if cell.unknown:
            said.add(cell.text)
    return tuple(out)


def _value(holder: object, column: Column) -> Cell:
    found = field_of(holder, column.field)
    if column.style == "device" and isinstance(holder, Placed):
        return Cell(gpu_name(holder), sort_name(holder), full=holder.gpu_uuid)
    if isinstance(found, Unknown) and (column.blank or column.short):
        return Cell(UNKNOWN, None, unknown=True) if column.short else Cell("")
    bare = column.middle and isinstance(found, Range) and not isinstance(found, Bounds)
    return styled(found.middle if bare else found, column.style, column.bar)


def _total(kind: TableKind, columns: Sequence[Column], statement: object) -> list[Cell] | None:
    """The last row: the whole fleet, blank where the whole has no such figure."""
    if not kind.total:
        return None
    whole_fleet = field_of(statement, kind.total)
    cells = [Cell(kind.total_name, None)]
    for column in columns[1:]:
        try:
            found = field_of(whole_fleet, column.field.removeprefix("means."))
        except AttributeError:
            cells.append(Cell("", None))
        else:
            short = column.short and isinstance(found, Unknown)
            cells.append(Cell(UNKNOWN, None, unknown=True) if short else styled(found, column.style))
    return cells


Dollars = Mapping[int, Sequence[Decimal | None]]


def _dollars(
    columns: Sequence[Column], rows: Sequence[Any], places: int | None
) -> tuple[Dollars, Mapping[int, Decimal], int]:
    """The columns of dollars, rounded to add up, their totals, and the places both are rounded to.

    Cells without a figure add nothing.
    """
    adding = [i for i, c in enumerate(columns) if c.adds]
    found = {i: [field_of(row, columns[i].field) for row in rows] for i in adding}
    exact = {i: [v if isinstance(v, Decimal) else None for v in values] for i, values in found.items()}
    sums = [sum((v for v in c if v is not None), ZERO) for c in exact.values()]
    over = next((i for i in adding if columns[i].adds == "whole"), None)
    places = places_for(max(map(abs, sums), default=ZERO)) if places is None else places
    return *add_up_columns(exact, over, places), places


def _cut(kind: TableKind, columns: Sequence[Column], rows: int) -> str:
    by = next((c.head.lower() for c in columns if c.field == kind.sort.removeprefix("-")), "")
    order = f"worst first by {by}" if by else "worst first"
    return f"The first {whole(kind.most)} of {whole(rows)} rows, {order}; the JSON file has all."


def _filled(row: Any, columns: Sequence[Column], dollars: Mapping[int, Decimal | None], text: Any) -> tuple[Cell, ...]:
    """The cells of a row, its dollars as they add up."""
    cells = [_value(row, c) for c in columns]
    for place, value in dollars.items():
        if value is not None:
            cells[place] = Cell(text(value), cells[place].key)
    return _once(cells)


def build_table(name: str, kind: TableKind, statement: object, places: int | None = None) -> Table:
    """A table filled from a statement with the fields its kind names.

    `places` after the point for dollars that add up; without it cents, more for small bills.
    """
    rows = _sorted(_rows(statement, kind.rows), kind.sort)
    columns = [c for c in kind.columns if not c.optional or any(field_of(r, c.field) for r in rows)]
    dollars, totals, places = _dollars(columns, rows, places)
    text, unit = partial(usd, places=places), Decimal(1).scaleb(-places)
    shown = rows[: kind.most] if kind.most else rows
    filled = [_filled(row, columns, {c: v[i] for c, v in dollars.items()}, text) for i, row in enumerate(shown)]
    note = kind.note
    if len(shown) < len(rows):
        note = f"{note} {_cut(kind, columns, len(rows))}".strip()
        if dollars:  # what the rows left out come to, so that the columns still add up
            rest = [Cell(f"{whole(len(rows) - len(shown))} more"), *[Cell("")] * (len(columns) - 1)]
            for place, values in dollars.items():
                rest[place] = Cell(text(sum((v for v in values[len(shown) :] if v is not None), ZERO)))
            filled.append(tuple(rest))
    total = _total(kind, columns, statement) if len(rows) > 1 else None
    if total is not None:
        whole_row = field_of(statement, kind.total)
        for place, value in totals.items():
            if not total[place].unknown:
                # The known cells may be a part of the whole only; where they are all of it, they add up to it.
                own = field_of(whole_row, columns[place].field) if None in dollars[place] else value
                part = isinstance(own, Decimal) and abs(own - value) > unit
                total[place] = Cell(text(own if part else value))
    return Table(
        name=name,
        caption=kind.caption,
        heads=tuple(c.head for c in columns),
        words=tuple(c.style in WORDS or c.style == "shares" for c in columns),
        below=[i for i, c in enumerate(columns) if c.below],
        wide=[i for i, c in enumerate(columns) if c.wide],
        rows=tuple(filled),
        total=None if total is None else _once(total),
        note=note,
        empty=kind.empty,
    )
