"""How is the log of a tool read: lines cut into cells, and a table that says what the cells mean?

A layout names the columns as the tool prints them, with their unit (`power.draw [W]`), so that a column in another unit
is not taken for it. What cuts lines itself yields rows in the columns of `LONG`, and needs no layout of its own.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa

from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.mapping.rules import PARSE_KINDS, TimeRule, ValueRule
from gpuledger.telemetry.mapping.rules import Mapping as Layout
from gpuledger.telemetry.unpacking import text_lines

BATCH_ROWS = 1 << 16
SHOWN_CHARS = 80
# The names of times in ISO 8601.
TIMES = ("time", "timestamp")
ASKED = ("time", "every", "host", "gpu_model")


class Wrong(msgspec.Struct, frozen=True):
    """A line that has not the cells it should have."""

    line: int
    text: str


Rows = Iterator[list[str] | Wrong]
# A row by the names of its columns; what is not said is left out.
Row = Mapping[str, str]


def layout(
    title: str,
    values: Mapping[str, tuple[str, ...]],
    labels: Mapping[str, tuple[str, ...]],
    *,
    time: TimeRule = TimeRule(("time", "timestamp")),  # noqa: B008  (frozen)
    required: tuple[str, ...] = ("time", "gpu_index"),
    asks: tuple[str, ...] = ASKED,
    every: str = "",
    ignored: tuple[str, ...] = (),
    blank: tuple[str, ...] = ("", "N/A", "[N/A]"),
    blank_from: float = float("inf"),
    kept: tuple[str, ...] = (),
) -> Layout:
    """What the columns of a tool's log mean. `values`: by reading, and the unit of bare numbers behind it
    (`fb_used_bytes MiB`, or `throttle_bits hex`), the columns it may stand in. `kept`: what a GPU never changes.
    """
    return Layout(
        name=title, title=title, required=required, time=time, labels=dict(labels), ignored=ignored, asks=asks,
        values=tuple(_rule(*name.partition(" ")[::2], sources) for name, sources in values.items()),
        every=every, blank_text=blank, blank_from=blank_from, kept=kept,
    )  # fmt: skip


def _rule(column: str, unit: str, sources: tuple[str, ...]) -> ValueRule:
    return ValueRule(column, sources, parse=unit) if unit in PARSE_KINDS else ValueRule(column, sources, unit=unit)


# The columns of rows that a format cuts itself. `gpu` is the index of a GPU on its host.
LONG = layout(
    "samples",
    {
        "gpu_util_ratio": ("util [%]",),
        "mem_copy_util_ratio": ("copy util [%]",),
        "enc_util_ratio": ("encoder [%]",),
        "dec_util_ratio": ("decoder [%]",),
        "power_w": ("power [W]",),
        "power_limit_w": ("power limit [W]",),
        "sm_clock_mhz": ("sm clock [MHz]",),
        "mem_clock_mhz": ("memory clock [MHz]",),
        "gpu_temp_c": ("temperature [C]",),
        "mem_temp_c": ("memory temperature [C]",),
        "fb_used_bytes": ("memory used [MiB]", "memory used [B]", "memory used [MB]"),
        "fb_free_bytes": ("memory free [MiB]", "memory free [B]", "memory free [MB]"),
    },
    {"gpu_uuid": ("uuid",), "gpu_index": ("gpu",), "gpu_model": ("model",), "host": ("host",)},
    time=TimeRule(("time",), clock=("clock",)),
    ignored=("memory total [MiB]", "memory total [B]"),
    kept=("model", "memory total [MiB]", "memory total [B]"),
)


def of_rows(path: Path, title: str, rows: Callable[[Path], Iterable[Row | Wrong]], *notes: str) -> Opened:
    """A log whose rows are in the columns of `LONG`, those that the file has; `title`: what wrote it."""
    first = [row for row in islice(rows(path), BATCH_ROWS) if not isinstance(row, Wrong)]
    names = list(dict.fromkeys(name for row in first for name in row))
    gpus = [row.get("uuid") or row.get("gpu", "") for row in first]
    once = ("every",) if len(set(gpus)) == len(gpus) or "time" in names else ()
    known = ("host",) if "uuid" in names or "host" in names else ()
    named = msgspec.structs.replace(without_asking(LONG, *once, *known), title=title, required=("time", "gpu_uuid"))

    def cells(path: Path) -> Rows:
        for row in rows(path):
            yield row if isinstance(row, Wrong) else [row.get(name, "") for name in names]

    opened = of_log(path, names, cells, named)
    opened.notes += notes
    return opened


def without_asking(mapping: Layout, *never: str) -> Layout:
    """The layout where some of what it asks for is known or not needed."""
    return msgspec.structs.replace(mapping, asks=tuple(a for a in mapping.asks if a not in never))


def of_log(path: Path, names: list[str], rows: Callable[[Path], Rows], mapping: Layout) -> Opened:
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


def first_of(path: Path, count: int) -> list[str]:
    """The first lines of a text."""
    return list(islice(text_lines(path), count))


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


def mig_note(boards: int, slices: int | None, instances: Sequence[str] = ()) -> list[str]:
    """What boards that are cut into slices do not report; nothing where there is none. `slices`: None where the file
    does not list them; `instances`: their IDs.
    """
    if not boards:
        return []
    named = f" (GPU instances {', '.join(instances)})" if boards == 1 and instances else ""
    cut = "" if slices is None else f", in {slices} slice{'s' * (slices != 1)}{named}"
    on = f"MIG is on for {boards} of the GPUs{cut}: such a board reports no utilization"
    return [f"{on}; nvidia-smi dmon --gpm-metrics and dcgm-exporter have that of each slice"]
