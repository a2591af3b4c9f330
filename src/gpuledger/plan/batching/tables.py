"""How does a table of jobs or pools become rows by our names? A file, or a list of dictionaries in Python."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gpuledger.cost.inventories.content import Content
from gpuledger.errors import FileFault, InputError, map_os_error, nearest
from gpuledger.numerals import has_decimal_comma
from gpuledger.plan.batching.cells import Column, Line, each, names
from gpuledger.telemetry.formats.columns import snake

Given = Path | Sequence[Mapping[str, Any]]
Rows = list[tuple[int, Mapping[str, str]]]
MOST_ROWS = 1_000_000
_NUMBERS = ("gpus", "work", "weight", "price", "speed", "overhead_pct")


def lines_of(given: Given, ours: Mapping[str, Sequence[str]], what: str) -> list[Line]:
    """The rows of a table by our names of its columns.

    `given`: a file (CSV, JSON, JSON lines, Parquet, a spreadsheet), or a list with a dictionary per row.
    """
    path = str(given) if isinstance(given, Path) else what
    rows = _file_rows(given, what) if isinstance(given, Path) else _listed_rows(given, what)
    header = list(dict.fromkeys(name for _, row in rows[:1000] for name in row))
    columns = bound(header, ours)
    ignored = tuple(h for h in header if h not in {c.theirs for c in columns.values()})
    return [
        Line(path, number, {c.ours: str(row.get(c.theirs) or "") for c in columns.values()}, columns, ignored)
        for number, row in rows
    ]


def _file_rows(path: Path, what: str) -> Rows:
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except OSError as error:
        raise map_os_error(error, path, f"read the {what}") from error
    if not size:
        raise FileFault(path, "the file is empty", hint=f"give a table of {what} with a header")
    try:
        rows = list(islice(Content(str(path)).table, MOST_ROWS + 1))
    except FileFault as error:
        error.hint = f"save the {what} as CSV in UTF-8, JSON or Parquet"
        raise
    if len(rows) > MOST_ROWS:
        raise FileFault(path, f"more than {MOST_ROWS:,} rows", hint=f"plan with a part of the {what}")
    if not rows:
        raise FileFault(path, "no rows below a header", hint=f"give one row for each of the {what}")
    return rows


def _listed_rows(given: Sequence[Mapping[str, Any]], what: str) -> Rows:
    if not given:
        raise InputError(f"the list of {what} is empty", hint=f"give a dictionary for each of the {what}")
    return [(at, {snake(str(k)): _text(v) for k, v in row.items()}) for at, row in enumerate(given, 1)]


def _text(value: Any) -> str:
    """A value as a file would have it."""
    if value is None:
        return ""
    if isinstance(value, dt.date):
        return value.isoformat()
    return ",".join(map(str, value)) if isinstance(value, list | tuple | set) else str(value)


def bound(header: Sequence[str], ours: Mapping[str, Sequence[str]]) -> dict[str, Column]:
    """Our columns that a header has; a unit may follow a name (duration_s)."""
    found: dict[str, Column] = {}
    taken: set[str] = set()
    units = names().units_s
    for name, spellings in ours.items():
        for spelling in spellings:
            exact = [h for h in header if h == spelling]
            with_unit = [h for h in header if h.startswith(f"{spelling}_") and h.removeprefix(f"{spelling}_") in units]
            theirs = next((h for h in (*exact, *with_unit) if h not in taken), None)
            if theirs is not None:
                unit = units.get(theirs.removeprefix(f"{spelling}_")) if theirs != spelling else None
                found[name] = Column(name, theirs, unit if theirs != spelling else units.get(spelling))
                taken.add(theirs)
                break
    return found


def missing(path: str, ours: str, spellings: Sequence[str], header: Sequence[str], what: str) -> FileFault:
    """The fault of a file without a column it must have."""
    close = [h for s in spellings for h in nearest(s, header, 1)][:1]
    near = f"; the nearest in the file is {close[0]!r}" if close else ""
    return FileFault(path, f"as a table of {what} it has no column {ours!r}{near}", hint=f"name it {spellings[0]!r}")


def read_words(lines: Sequence[Line], said: Mapping[str, str]) -> list[str]:
    """What was read as what, column by column, and what was not read; `said`: our names in words."""
    columns = {c.theirs: c.ours for line in lines for c in line.columns.values()}
    out = [f"{theirs} as {said.get(ours, ours)}" for theirs, ours in columns.items()]
    if any(has_decimal_comma(line.text(ours)) for line in lines for ours in _NUMBERS):
        out.append("commas in numbers as decimal points")
    if lines[0].ignored:
        out.append(f"not used: {each(_quoted(lines[0].ignored), 12)}")
    return out


def _quoted(names_: Iterable[str]) -> list[str]:
    return [f"column {name}" for name in names_]
