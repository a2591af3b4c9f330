"""How does a statement become spreadsheet tables: one CSV file, or a workbook with a sheet for each table?

The tables are the lists in the statement's JSON, whole and unrounded, under the same names: `by_owner`, `give_back`.
A CSV file holds the document's main table. In a workbook dollars are numbers and instants are dates; text is written as
text, so that no label can become a formula.
"""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuledger.answers import flat
from gpuledger.errors import InputError, MissingExtra
from gpuledger.plain_text import csv_text, json_text, visible
from gpuledger.report.document import Document
from gpuledger.report.write import write_whole

SUFFIXES = (".csv", ".xlsx")
OTHER_FILES = frozenset((
    ".pdf", ".html", ".htm", ".md", ".json", ".txt", ".tsv", ".xls", ".ods", ".docx", ".parquet", ".png", ".svg",
))  # fmt: skip
SUMMARY = "summary"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\']")
LONGEST_NAME, LONGEST_TEXT, MOST_ROWS = 31, 32_767, 1_048_575
Rows = list[dict[str, Any]]


def is_one_file(path: Path) -> bool:
    """Whether a place to write to is one spreadsheet file, by the end of its name, and not a folder.

    A name that ends as a file of another kind is refused: a folder of that name is not what its user wants.
    """
    kind = path.suffix.lower()
    if kind in OTHER_FILES and not path.is_dir():
        hint = f"name a folder, such as {path.stem}, for the page, its Markdown and JSON; or a file .csv or .xlsx"
        raise InputError(f"{path}: a {kind} file cannot be written", hint=hint)
    return kind in SUFFIXES and not path.is_dir()


def write_sheets(document: Document, path: Path) -> Path:
    """The document's tables as the kind of file its name ends in."""
    content: str | bytes = as_xlsx(document) if path.suffix.lower() == ".xlsx" else as_csv(document)
    return write_whole(path, content)


def tables_of(data: Mapping[str, Any]) -> dict[str, Rows]:
    """Every list of rows in a statement's JSON, nested figures as columns named a.b; parts are named part.table."""
    out: dict[str, Rows] = {}
    for name, value in data.items():
        if isinstance(value, Mapping) and "statement" in value:
            out |= {f"{name}.{inner}": rows for inner, rows in tables_of(value).items()}
        elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            out[name] = [flat(dict(row)) for row in value]
    return out


def columns_of(rows: Rows) -> list[str]:
    """All columns, in the order they are first met."""
    return list(dict.fromkeys(column for row in rows for column in row))


def as_csv(document: Document) -> str:
    """The main table; an empty one has no rows and no columns."""
    tables = tables_of(document.data())
    wanted = document.main_table
    rows = tables.get(wanted) or next((r for name, r in tables.items() if name.endswith(f".{wanted}")), [])
    if not wanted:
        rows = next(iter(tables.values()), [])
    if not tables and not wanted:
        hint = "write the whole document instead: give a folder"
        raise InputError(f"{document.kind.lower()} has no table for a CSV file", hint=hint)
    columns = columns_of(rows)
    return csv_text([columns, *([_text(row.get(c)) for c in columns] for row in rows)])


def as_xlsx(document: Document) -> bytes:
    """A workbook: the summary first, then every table."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise MissingExtra("an XLSX file", "xlsx") from error
    file, data = io.BytesIO(), document.data()
    with xlsxwriter.Workbook(file, {"in_memory": True, "default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        bold, used = book.add_format({"bold": True}), set[str]()
        for name, rows in ((SUMMARY, list(_summary(document, data))), *_sheets(tables_of(data))):
            sheet = book.add_worksheet(_sheet_name(name, used))
            sheet.freeze_panes(1, 0)
            for y, row in enumerate(rows):
                for x, (column, value) in enumerate(zip(rows[0], row, strict=True)):
                    _put(sheet, y, x, value if y == 0 else _typed(str(column), value), bold if y == 0 else None)
    return file.getvalue()


def _summary(document: Document, data: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    yield "figure", "value"
    yield document.kind, document.headline
    for name, value in flat({n: v for n, v in data.items() if not isinstance(v, list)}).items():
        yield name, value if not isinstance(value, list) else _text(value)


def _sheets(tables: Mapping[str, Rows]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    for name, rows in tables.items():
        columns = columns_of(rows)
        yield name, [columns, *([row.get(c) for c in columns] for row in rows[:MOST_ROWS])]


def _sheet_name(name: str, used: set[str]) -> str:
    """A name a workbook takes, and that no other sheet has."""
    plain = _NOT_IN_A_NAME.sub(" ", name)[:LONGEST_NAME] or "table"
    found, number = plain, 2
    while found.casefold() in used:
        found, number = f"{plain[: LONGEST_NAME - 4]} {number}", number + 1
    used.add(found.casefold())
    return found


def _typed(column: str, value: Any) -> Any:
    """Dollars, which JSON has as text, as numbers; instants and days as dates; all else as it is."""
    if isinstance(value, list | Mapping):
        return _text(value)
    if not isinstance(value, str):
        return value
    if ("usd" in column or column.startswith("buckets.")) and _NUMBER.fullmatch(value):
        return float(value)
    if column.endswith("_utc") and _INSTANT.fullmatch(value):
        return dt.datetime.fromisoformat(value).replace(tzinfo=None)
    return dt.date.fromisoformat(value) if column in {"day", "today"} and _DAY.fullmatch(value) else value


def _text(value: Any) -> Any:
    """A list as one cell: its words, or its JSON where it holds more than words."""
    if not isinstance(value, list | Mapping):
        return value
    if isinstance(value, list) and not any(isinstance(item, list | Mapping) for item in value):
        return "; ".join(str(item) for item in value)
    return json_text(value)


def _put(sheet: Any, y: int, x: int, value: Any, form: Any) -> None:
    """One cell; only numbers and dates are anything but text."""
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(y, x, value, form)
    elif isinstance(value, int | float):
        sheet.write_number(y, x, value, form)
    elif isinstance(value, dt.datetime | dt.date):
        sheet.write_datetime(y, x, value, form)
        sheet.set_column(x, x, 20)
    else:
        sheet.write_string(y, x, visible(str(value))[:LONGEST_TEXT], form)
