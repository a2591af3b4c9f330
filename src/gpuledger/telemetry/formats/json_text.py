"""How is the JSON of a tool read that prints a document per round, and other lines between them at times?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.formats.logs import BATCH_ROWS, Row, Rows, Wrong, of_log, of_rows, without_asking
from gpuledger.telemetry.mapping.rules import Mapping as Layout
from gpuledger.telemetry.unpacking import text_lines

ReadRows = Callable[[Path], Iterable[Row | Wrong]]
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MOST_LINES = 1_000_000  # of a document
# A value that the next line follows without a comma.
_NO_COMMA = re.compile(r'(["\]}\w])(\s*\n\s*["{])')


def documents(path: Path) -> Iterator[Any | Wrong]:
    """The documents of a file, one after the other; one that is cut off is a wrong row."""
    lines, depth, number = list[str](), 0, 0
    for number, line in enumerate(text_lines(path), 1):
        if not lines and not line.lstrip().startswith(("{", "[")):
            continue
        if len(lines) < _MOST_LINES:
            lines.append(line)
        bare = _STRING.sub("", line)
        depth += sum(bare.count(sign) for sign in "{[") - sum(bare.count(sign) for sign in "}]")
        if depth <= 0:
            yield _parsed(lines, number)
            lines, depth = [], 0
    if lines:
        yield Wrong(number, lines[0])


def _parsed(lines: list[str], number: int) -> Any | Wrong:
    text = "\n".join(lines)
    for words in (text, _NO_COMMA.sub(r"\1,\2", text)):
        try:
            return json.loads(words)
        except (ValueError, RecursionError):
            continue
    return Wrong(number, lines[0])


def json_rows(path: Path, title: str, rows: ReadRows, *notes: str) -> Opened:
    """A log of JSON as `of_rows` opens it; a fault where it has not one GPU."""
    _first(path, title, rows)
    return of_rows(path, title, rows, *notes)


def laid_out(path: Path, title: str, rows: ReadRows, layout_of: Callable[[Sequence[Row]], Layout]) -> Opened:
    """A log of JSON whose rows are in the columns of a tool's own layout."""
    first = _first(path, title, rows)
    layout = layout_of(first)
    values = chain.from_iterable(rule.sources for rule in layout.values)
    columns = dict.fromkeys(chain(layout.time.sources, chain.from_iterable(layout.labels.values()), values))
    names = [name for name in columns if any(name in row for row in first)]
    (index,) = layout.labels["gpu_index"]
    once = bool({*layout.time.sources} & {*names}) or len({row[index] for row in first}) == len(first)
    with_id = bool({*layout.labels.get("gpu_uuid", ())} & {*names})

    def cells(path: Path) -> Rows:
        for row in rows(path):
            yield row if isinstance(row, Wrong) else [row.get(name, "") for name in names]

    known = [*(["every"] if once else []), *(["host"] if with_id else [])]
    return of_log(path, names, cells, without_asking(layout, *known))


def _first(path: Path, title: str, rows: ReadRows) -> list[Row]:
    """The first rows; a fault where there is no GPU."""
    first = [row for row in islice(rows(path), BATCH_ROWS) if not isinstance(row, Wrong)]
    if not first:
        raise FileFault(path, f"it is JSON of {title} without a whole GPU", hint=f"run {title} again")
    return first


def plain(value: object) -> str:
    """A reading as text without its unit ("73%", 117, {"value": 2, "unit": "%"}); empty where there is none."""
    if isinstance(value, dict):
        value = value.get("value")
    found = re.fullmatch(r"\(?(-?\d+(?:\.\d+)?) *(?:[A-Za-z%]+)?\)?", str(value).strip())
    return found[1] if found else ""
