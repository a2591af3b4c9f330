"""How is the log of a tool read: lines cut into cells, and the layout that says what the cells mean?

A layout is a mapping in telemetry/maps/tools. Its sources name a column and its unit as the tool prints them
(`power.draw [W]`), so that a column in another unit is not taken for it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.telemetry.mapping import Mapping
from gpuledger.telemetry.sources import Opened

BATCH_ROWS = 1 << 16
SHOWN_CHARS = 80
# The names of times in ISO 8601.
TIMES = ("time", "timestamp")


class Wrong(msgspec.Struct, frozen=True):
    """A line that has not the cells it should have."""

    line: int
    text: str


Rows = Iterator[list[str] | Wrong]


@cache
def layout(name: str) -> Mapping:
    """What the columns of a tool's log mean."""
    return load_toml(data_dir(__package__, f"maps/tools/{name}.toml"), Mapping)


def without_asking(mapping: Mapping, *never: str) -> Mapping:
    """The layout where some of what it asks for is known or not needed."""
    return msgspec.structs.replace(mapping, asks=tuple(a for a in mapping.asks if a not in never))


def of_log(path: Path, names: list[str], rows: Callable[[Path], Rows], mapping: Mapping) -> Opened:
    """A log as an opened file: its rows are cut anew each time they are asked for."""
    wrong: list[tuple[int, str]] = []

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        wrong.clear()
        places = [names.index(c) for c in columns]
        good = _numbered(rows(path), wrong)
        while chunk := list(islice(good, BATCH_ROWS)):
            cells = list(zip(*chunk, strict=True))
            arrays = [pa.array(cells[place], pa.string()) for place in places]
            yield pa.record_batch([read(c, a, labels) for c, a in zip(columns, arrays, strict=True)], columns)

    return Opened(names, batches, None, wrong, text=True, mapping=mapping)


def read(name: str, cells: pa.Array, labels: tuple[str, ...]) -> pa.Array:
    """The cells of a column as the rest of the room reads them fastest: times as instants, labels as dictionaries."""
    if name in TIMES:
        try:
            return cells.cast(pa.timestamp("us"))
        except pa.ArrowInvalid:  # one that is not a time; which one shows when they are read as text
            pass
    return cells.dictionary_encode() if name in labels else cells


def csv_cells(line: str) -> list[str]:
    """The cells of one line of CSV without the blanks around them; none where it cannot be cut."""
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:  # a cell of more than 128 KiB
        return []


def _numbered(rows: Rows, wrong: list[tuple[int, str]]) -> Iterator[list[str]]:
    for number, row in enumerate(rows, 1):
        if isinstance(row, Wrong):
            wrong.append((number, f"line {row.line}: {row.text}"[:SHOWN_CHARS]))
        else:
            yield row
