"""What are the columns of a file called, whatever kind of table it is, and which names has its JSON?

A table of text, JSON rows or lines, Parquet, a spreadsheet: formats that are known by the names of their columns ask
here. Column names are folded to one spelling, so that lineItem/ResourceId, line_item_resource_id and "Line Item
Resource ID" are the same; nested objects become columns joined with an underscore.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from gpuledger.errors import InputError
from gpuledger.telemetry.formats import Head

SHEET = b"PK\x03\x04"
_SEPARATORS = "|\t;,"
_MOST_ROWS = 1000
_MOST_NAMES = 5000
_DEEPEST = 12
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")


def snake(name: str) -> str:
    """A column name in the one spelling: line_item_resource_id."""
    return _BETWEEN.sub("_", _WORD.sub("_", name.strip())).strip("_").casefold()


def leaves(value: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The columns of an object with their values, those of nested objects too, down to some depth."""
    for name, inner in value.items():
        key = f"{before}_{snake(str(name))}" if before else snake(str(name))
        if isinstance(inner, dict) and depth < _DEEPEST:
            yield from leaves(inner, key, depth + 1)
        else:
            yield key, inner


def is_json(head: Head) -> bool:
    """Whether the file starts as JSON does."""
    return next((line.lstrip() for line in head.lines if line.strip()), "").startswith(("{", "["))


@lru_cache(maxsize=4)
def names(head: Head) -> frozenset[str]:
    """The columns that a file has, as far as its first rows show them, in the one spelling."""
    if head.parquet:
        return frozenset(_parquet(head))
    if head.first.startswith(SHEET):
        return frozenset(map(snake, _sheet(head)))
    if is_json(head):
        return frozenset(key for row in objects(head) for key, _ in leaves(row))
    return frozenset(map(snake, header(head)))


@lru_cache(maxsize=4)
def header(head: Head) -> list[str]:
    """The cells of the first line of text that is not a comment, or the names of the first JSON rows."""
    if is_json(head):
        return list(dict.fromkeys(key for row in objects(head) for key in row))
    lines = head.lines
    place = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if place is None:
        return []
    # A long line of names may go on beyond the first bytes.
    line = head.page.splitlines()[place] if place == len(lines) - 1 else lines[place]
    separator = max(_SEPARATORS, key=line.count)
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))[:_MOST_NAMES]]
    except csv.Error:
        return []


@lru_cache(maxsize=4)
def objects(head: Head) -> list[dict[str, Any]]:
    """The first JSON objects: of a list, one per line, or the document itself where it is small enough."""
    text, decoder, found = head.page, json.JSONDecoder(), list[dict[str, Any]]()
    place = _next_sign(text, 0)
    place = _next_sign(text, place + 1) if text[place : place + 1] == "[" else place
    while text[place : place + 1] == "{" and len(found) < _MOST_ROWS:
        try:
            one, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):  # cut off here, or not JSON
            break
        found.append(one)
        place = _next_sign(text, end)
    return found


def _next_sign(text: str, place: int) -> int:
    """Where the next sign stands that is neither a space nor a comma."""
    found = re.compile(r"[^\s,]").search(text, place)
    return found.start() if found else len(text)


def _parquet(head: Head) -> list[str]:
    """The columns in the footer, those of structs joined; none where there is no footer to be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(head.path)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return []
    return [snake(name) for field in schema for name in _fields(field)]


def _fields(field: Any) -> Iterator[str]:
    """The names of a column: its own, or those of the parts of a struct."""
    import pyarrow as pa

    if not pa.types.is_struct(field.type):
        yield field.name
        return
    for part in field.type:
        yield from (f"{field.name}_{name}" for name in _fields(part))


def _sheet(head: Head) -> list[str]:
    """The first row of a spreadsheet; none where it cannot be read."""
    from gpuledger.telemetry.spreadsheet import sheet_rows

    try:
        return sheet_rows(str(head.path), most=1)[0]
    except InputError:
        return []
