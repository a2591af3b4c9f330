"""How do the columns of a file get the shape a sample has: one time, one GPU per row?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import FileFault, nearest
from gpuledger.telemetry.formats import Opened, open_source
from gpuledger.telemetry.mapping import recognized
from gpuledger.telemetry.mapping.own_headers import proposal
from gpuledger.telemetry.mapping.rules import Mapping
from gpuledger.telemetry.mapping.wide import WidePlan, plan_wide
from gpuledger.telemetry.unnamed_gpus import told_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    Batches = Callable[[list[str], tuple[str, ...]], Iterator[pa.RecordBatch]]

LONG_ROWS = 1 << 18


def open_shaped(
    path: str | Path, mapping: Mapping | None, part: int = 0, parts: int = 1, groups: range | None = None
) -> Opened:
    """The file with its wide rows made long and its date and time joined, as the mapping says; or a part of it.

    `groups`: only these groups of its rows.
    """
    opened = open_source(path)
    if groups is not None and opened.groups is not None:
        opened = opened.groups.open(groups)
    elif parts > 1 and opened.cut is not None:
        opened = opened.cut(parts)[part]
    if len(set(opened.names)) < len(opened.names):
        twice = next(n for n in opened.names if opened.names.count(n) > 1)
        raise FileFault(path, f"two columns are called {twice!r}", hint="rename one of them")
    rules = mapping or opened.mapping or recognized(opened.names)
    if rules is None:
        found = proposal(Path(path))
        if found.why_not:
            return opened
        rules = opened.mapping = found.mapping
        opened.notes += found.notes if part == 0 and (groups is None or groups.start == 0) else []
    if rules.time.join:
        opened = _joined(path, opened, rules)
    if rules.wide:
        plan = plan_wide(path, opened.names, rules.wide.pattern)
        rows = opened.rows_expected
        opened = replace(
            opened,
            names=plan.names,
            batches=_long(opened.batches, plan),
            by_column=None,
            rows_expected=None if rows is None else rows * len(plan.gpus),
            per_row=len(plan.gpus),
        )
    return told_apart(Path(path), opened, rules)


def melted(opened: Opened, plan: WidePlan, mapping: Mapping) -> Opened:
    """The table with a row per GPU; a GPU without any reading in a row has none."""
    long = _long(opened.batches, plan)

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for batch in long(columns, labels):
            known = [_known(batch.column(c)) for c in columns if c in plan.readings]
            yield batch.filter(reduce(pc.or_, known)) if known else batch

    return Opened(plan.names, batches, None, opened.wrong_rows, opened.text, mapping, notes=opened.notes)


def _known(cells: pa.Array) -> pa.Array:
    empty = pc.equal(cells, "") if pa.types.is_string(cells.type) else pc.is_null(cells, nan_is_null=True)
    return pc.invert(pc.fill_null(empty, True))


def _joined(path: str | Path, opened: Opened, rules: Mapping) -> Opened:
    """The file with one more column: the texts of several, with a blank between them."""
    parts, name = rules.time.join, rules.time.joined
    absent = [p for p in parts if p not in opened.names]
    if absent:
        if any(s in opened.names for s in rules.time.sources):
            return opened
        close = nearest(absent[0], opened.names, 1)
        where = f" (nearest in the file: {close[0]!r})" if close else ""
        problem = f"the map joins the time of {', '.join(map(repr, parts))}, and the file lacks {absent[0]!r}{where}"
        raise FileFault(path, problem, hint="fix join under [time]")
    inner = opened.batches

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        wanted = [c for c in columns if c != name]
        asked = list(dict.fromkeys([*wanted, *(parts if name in columns else ())]))
        for batch in inner(asked, tuple(c for c in labels if c != name)):
            made = {c: batch.column(c) for c in wanted}
            if name in columns:
                made[name] = pc.binary_join_element_wise(*(_text(batch.column(p)) for p in parts), " ")
            yield pa.record_batch({c: made[c] for c in columns})

    return replace(opened, names=[*opened.names, name], batches=batches, by_column=None)


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def _long(inner: Batches, plan: WidePlan) -> Batches:
    """Batches in which every row of the file is one row per GPU, in the order of the file."""

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        asked, coded = list(_sources(plan, columns)), tuple(_sources(plan, labels))
        if not asked:  # the rows must be counted even where only the names of the columns matter
            asked = [next(iter(plan.gpus[next(iter(plan.gpus))].values()))]
        step = max(1, LONG_ROWS // len(plan.gpus))
        for batch in inner(asked, coded):
            for start in range(0, batch.num_rows, step):
                yield _longer(batch.slice(start, step), plan, columns)

    return batches


def _sources(plan: WidePlan, columns: list[str] | tuple[str, ...]) -> dict[str, None]:
    """The source columns that some long columns are made of."""
    found: dict[str, None] = {}
    for name in columns:
        if name in plan.shared:
            found[name] = None
        for sources in plan.gpus.values():
            if name in sources:
                found[sources[name]] = None
    return found


def _longer(batch: pa.RecordBatch, plan: WidePlan, columns: list[str]) -> pa.RecordBatch:
    rows, count = batch.num_rows, len(plan.gpus)
    each = pa.array(np.repeat(np.arange(rows), count))
    by_row = pa.array(np.arange(rows * count).reshape(count, rows).T.ravel())
    made: dict[str, pa.Array] = {}
    for name in columns:
        if name in plan.shared:
            made[name] = batch.column(name).take(each)
        elif name in plan.labels:
            words = pa.array([gpu[plan.labels.index(name)] for gpu in plan.gpus], pa.string())
            codes = pa.array(np.tile(np.arange(count, dtype=np.int32), rows))
            made[name] = words.take(codes).dictionary_encode()
        else:
            cells = [batch.column(sources[name]) if name in sources else None for sources in plan.gpus.values()]
            made[name] = _stacked(cells, rows).take(by_row)
    return pa.record_batch(made)


def _stacked(cells: list[pa.Array | None], rows: int) -> pa.Array:
    """The cells of all GPUs one GPU after the other, in a type that holds them all; NULL where a GPU has no column."""
    plain = [c.dictionary_decode() if c is not None and pa.types.is_dictionary(c.type) else c for c in cells]
    kinds = {c.type for c in plain if c is not None and not pa.types.is_null(c.type)}
    if len(kinds) == 1:
        kind = kinds.pop()
    elif kinds and all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds):
        kind = pa.int64() if all(pa.types.is_integer(k) for k in kinds) else pa.float64()
    else:
        kind = pa.string()
    return pa.concat_arrays([pa.nulls(rows, kind) if c is None else c.cast(kind, safe=False) for c in plain])
