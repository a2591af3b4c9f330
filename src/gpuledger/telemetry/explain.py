"""What is a file, and what of it would be read as what, without importing anything?"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping as Readonly
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from gpuledger.errors import FileFault, GpuledgerError, InputError
from gpuledger.telemetry import schema
from gpuledger.telemetry.cells import as_python
from gpuledger.telemetry.convert import Converted, convert
from gpuledger.telemetry.date_order import Dates
from gpuledger.telemetry.formats import Kind, Opened, Recognized, not_telemetry, recognize
from gpuledger.telemetry.mapping import (
    NOTHING_GIVEN,
    Bound,
    Given,
    Mapping,
    bind,
    factor,
    fitted,
    is_not_needed,
    recognized,
)
from gpuledger.telemetry.mapping.own_headers import proposal
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.telemetry.mapping.suggest import Suggestion, suggest
from gpuledger.telemetry.measures import unit_of
from gpuledger.telemetry.passes import passes_of
from gpuledger.telemetry.series.exporters import is_needless
from gpuledger.telemetry.stamps import StampReader, Untimed
from gpuledger.telemetry.stated import Stated, completed

LOOKED_AT = 1_000
SHOWN_ROWS = 3
Role = Literal["time", "label", "reading"]
# How a device is known: by a UUID or other name, by host and index, by an index alone, not at all.
DeviceBy = Literal["name", "host and index", "index", "nothing"]


@dataclass(frozen=True)
class ColumnRead:
    """A column of the file and the schema column it fills; its first cell as written and as read."""

    source: str
    column: str
    role: Role
    unit: str
    factor: str
    cell: str
    read: str | float | int | None


@dataclass(frozen=True)
class Unused:
    """A column or metric of the file that is not read, its first cell, and what it may be.

    `needed`: False for what is known and holds nothing that is read.
    """

    source: str
    cell: str
    suggestion: Suggestion | None
    needed: bool = True


@dataclass(frozen=True)
class Rejected:
    """A row that cannot be used."""

    row: int
    reason: str
    column: str
    value: str


@dataclass(frozen=True)
class Explanation:
    """How a file is read. `problem` is why it cannot be imported, `hint` what to do; both empty where it can.

    `known`: the layout was recognized or given; else the mapping is a proposal by the names of the columns.
    """

    file: str
    bound: Bound
    known: bool
    gpus_per_row: int
    columns: list[ColumnRead]
    unused: list[Unused]
    missing: list[str]
    zone: str
    zoneless: bool
    device_by: DeviceBy
    rows_looked_at: int = 0
    rows: list[dict[str, object]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    hint: str = ""
    dates: Dates = field(default_factory=Dates)
    recognized: Recognized | None = None
    stated: list[Stated] = field(default_factory=list)


@dataclass(frozen=True)
class NotSamples:
    """A file of another kind: what it is, what to do with it, and in a line what it says."""

    file: str
    recognized: Recognized
    what: str
    hint: str
    answer: str = ""


def explain_file(
    path: Path, *, mapping: Mapping | None = None, given: Given = NOTHING_GIVEN, zone: str = "UTC"
) -> Explanation | NotSamples:
    """What a file is, and how it is read alone: with what is stated where the file does not say it."""
    found = recognize(path)
    if mapping is None and found.format.kind not in (Kind.TELEMETRY, Kind.REFUSED):
        fault = not_telemetry(path, found.format)
        return NotSamples(str(path), found, fault.message.removeprefix(f"{path}: "), fault.hint)
    known, stated = completed(path, path.name, mapping, given)
    made = explain(path, mapping=mapping, given=known, zone=zone)
    zoned = [Stated(f"zone {zone}", "--tz NAME")] if made.zoneless else []
    return replace(made, recognized=found, stated=[*stated, *zoned])


def explain(
    path: str | Path, *, mapping: Mapping | None = None, given: Given = NOTHING_GIVEN, zone: str = "UTC"
) -> Explanation:
    """How the columns of a file are read, from its first rows; nothing is imported."""
    opened = open_shaped(path, mapping)
    used, problem, hint = _layout(path, opened, mapping, given)
    cells = _first_cells(opened)
    chosen = used or proposal(Path(path)).mapping
    if used is None and (chosen.wide or chosen.time.join):
        opened = open_shaped(path, chosen)
        cells = _first_cells(opened)
    found = fitted(path, opened.names, chosen, given)
    untimed = Untimed(Path(path), given)
    stamps = StampReader(chosen.time.formats, zone, unit=chosen.time.unit, untimed=untimed)
    stamps.resolve = (lambda: passes_of(Path(path), found.bound, stamps)) if found.bound.time else None
    sample, made = _sample(opened, found.bound, stamps, complete=not found.missing)
    dates = Dates(chosen.time.formats, chosen.file, stamps.orders)
    try:
        dated = dates.notes(path)
    except FileFault as error:
        dated, problem, hint = [], error.message, error.hint
    return Explanation(
        file=str(path),
        bound=found.bound,
        known=used is not None,
        gpus_per_row=opened.per_row,
        columns=_columns(found.bound, cells, sample, made),
        unused=_unused(found.bound, opened, cells),
        missing=[*found.missing, *(a for a in found.asked if a not in found.missing)],
        zone=zone,
        zoneless=stamps.zoneless,
        device_by=_device_by(found.bound, made),
        rows_looked_at=sample.num_rows if sample is not None else 0,
        rows=made.table.slice(0, SHOWN_ROWS).to_pylist() if made else [],
        rejected=[Rejected(f.row // opened.per_row + 1, f.reason, f.column, f.value) for f in made.faults]
        if made
        else [],
        notes=[*dict.fromkeys([*opened.notes, *(made.notes if made else ())]), *dated],
        problem=problem,
        hint=hint,
        dates=dates,
    )


def _unused(bound: Bound, opened: Opened, cells: Readonly[str, str]) -> list[Unused]:
    """What is not read: columns of a table, metrics of a file of series."""
    out = [
        Unused(name, "", None if is_needless(name) else suggest(name), needed=not is_needless(name))
        for name in opened.not_read
    ]
    for name in bound.unused:
        cell, needed = cells.get(name, ""), not is_not_needed(name, bound.mapping)
        out.append(Unused(name, cell, suggest(name, cell) if needed else None, needed=needed))
    return out


def _layout(path: str | Path, opened: Opened, mapping: Mapping | None, given: Given) -> tuple[Mapping | None, str, str]:
    """The layout of the file, and what an import would object to; without objections the last two are empty."""
    used = mapping or opened.mapping or recognized(opened.names)
    try:
        return bind(path, opened.names, used, given).mapping, "", ""
    except InputError as error:
        return used, error.message, error.hint


def _first_cells(opened: Opened) -> dict[str, str]:
    """The first cell of each column that is not blank, among the first rows."""
    try:
        return _cells_of(opened, opened.names)
    except FileFault:  # a column without single values: the others are read one by one
        found: dict[str, str] = {}
        for name in opened.names:
            with contextlib.suppress(FileFault):
                found |= _cells_of(opened, [name])
        return found


def _cells_of(opened: Opened, names: list[str]) -> dict[str, str]:
    batch = next(iter(opened.batches(list(names), ())), None)
    return {} if batch is None else {n: _first(batch.column(n).slice(0, LOOKED_AT)) for n in names}


def _first(column: pa.Array) -> str:
    return next((text for v in as_python(column) if v is not None and (text := str(v).strip())), "")


def _sample(
    opened: Opened, bound: Bound, stamps: StampReader, *, complete: bool
) -> tuple[pa.RecordBatch | None, Converted | None]:
    """The first rows as the file has them and as they are read; None where they cannot be."""
    if not complete or not bound.values:
        return None, None
    labels = (*bound.label_columns(), *((bound.time,) if opened.text and bound.time else ()))
    try:
        batch = next(iter(opened.batches(bound.source_columns(), labels)), None)
    except GpuledgerError:
        return None, None
    if batch is None:
        return None, None
    head = batch.slice(0, LOOKED_AT - LOOKED_AT % opened.per_row or opened.per_row)
    return head, convert(head, bound, stamps)


def _columns(
    bound: Bound, cells: Readonly[str, str], sample: pa.RecordBatch | None, made: Converted | None
) -> list[ColumnRead]:
    """Every column that is read, each with the first cell that holds something."""
    roles: list[tuple[str, str, Role]] = [(bound.time, schema.TIME, "time")] if bound.time else []
    roles += [(source, column, "label") for column, sources in bound.labels.items() for source in sources]
    roles += [(source, column, "reading") for column, source, _ in bound.readings()]
    return [_column(bound, cells, sample, made, *one) for one in roles]


def _column(
    bound: Bound, cells: Readonly[str, str], sample: pa.RecordBatch | None, made: Converted | None,
    source: str, column: str, role: Role,
) -> ColumnRead:  # fmt: skip
    rule = next((r for c, s, r in bound.readings() if (c, s) == (column, source)), None) if role == "reading" else None
    about = schema.columns()[column]
    unit = (rule.unit or rule.parse or unit_of(factor(rule), column)) if rule else ""
    scale = str(factor(rule)) if rule else ""
    cell, read = cells.get(source, ""), None
    if sample is not None and made is not None and column in made.table.column_names:
        values = made.table[column].slice(0, LOOKED_AT).to_pylist()
        given = as_python(sample.column(source).take(pa.array(np.arange(sample.num_rows)[made.kept][: len(values)])))
        # A label of several columns comes from one of them in each row.
        alone = role != "label" or len(bound.labels[column]) == 1
        both = ((v, g) for v, g in zip(values, given, strict=True) if v is not None and g is not None)
        fits = ((v, g) for v, g in both if alone or str(g).strip() == v)
        read, found = next(fits, (None, None))
        cell = cell if read is None else str(found)
    return ColumnRead(source, about.name, role, unit, scale, cell.strip(), read)


def _device_by(bound: Bound, made: Converted | None) -> DeviceBy:
    if "gpu_uuid" not in {*bound.labels, *bound.constants}:
        return "nothing"
    if made is None or not made.table.num_rows:
        return "name"
    row = made.table.slice(0, 1).to_pylist()[0]
    if row.get("gpu_index") is None:
        return "name"
    if row["gpu_uuid"] == str(row["gpu_index"]):
        return "index"
    return "host and index" if str(row["gpu_uuid"]).endswith(f":gpu{row['gpu_index']}") else "name"
