"""How are rows kept while they are put in order, in as few columns as possible?

All labels of a row are one number, its series: a fleet has some thousand of them in millions of rows. Readings that are
the same in a whole batch, as counters of errors mostly are, are kept once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.batch import as_dictionary, device_name
from gpuledger.lake.names import Names
from gpuledger.lake.sorting.order import ARRIVAL
from gpuledger.telemetry import schema

SERIES = "_series"
Constants = dict[str, float | int | None]


class Narrow(NamedTuple):
    """Rows with their series in place of labels, and the readings that are the same in all of them."""

    constants: Constants
    table: pa.Table


class SeriesNote(msgspec.Struct, frozen=True):
    """The labels of all series met so far: by label its texts, and by series the number of its text (-1: none)."""

    texts: dict[str, list[str | None]]
    codes: dict[str, list[int]]


class Series:
    """Numbers the distinct sets of labels."""

    def __init__(self) -> None:
        self._names: dict[str, Names] = defaultdict(Names)
        self._number: dict[tuple[int, ...], int] = {}
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def narrow(self, table: pa.Table) -> Narrow:
        """Rows of the schema, in fewer columns."""
        constants: Constants = {}
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        codes: dict[str, np.ndarray] = {}
        for name in table.column_names:
            column = table[name]
            if name in schema.labels():
                coded = pa.chunked_array([as_dictionary(column).cast(schema.LABEL_TYPE)])
                codes[name] = self._names[name].numbered(coded)
            elif name in (schema.TIME, ARRIVAL) or not _same(column):
                columns[name] = column
            else:
                constants[name] = column[0].as_py()
        columns[SERIES] = pa.array(self._numbered(codes))
        return Narrow(constants, pa.table(columns))

    def _numbered(self, codes: dict[str, np.ndarray]) -> np.ndarray:
        """The series of each row, from the numbers of its labels."""
        whole = [codes.get(name) for name in schema.labels()]
        there = [c for c in whole if c is not None]
        group = np.zeros(len(there[0]), dtype=np.int64)
        size = 1
        for code in sorted(there, key=lambda c: -int(c.max())):
            first = np.full(size, -2, dtype=np.int64)
            first[group] = code
            if (first[group] == code).all():  # follows from the labels before
                continue
            wide = int(code.max()) + 2
            size, group = _counted(group * wide + code + 1, size * wide)
        rows = np.zeros(size, dtype=np.int64)
        rows[group] = np.arange(len(group))
        return self._numbers_of(np.array([np.full(size, -1) if c is None else c[rows] for c in whole]).T)[group]

    def _numbers_of(self, keys: np.ndarray) -> np.ndarray:
        """The numbers of some sets of labels, a row each; batches of one source mostly have those of the one before."""
        if self._before is None or not np.array_equal(keys, self._before[0]):
            found = [self._number.setdefault(tuple(key), len(self._number)) for key in keys.tolist()]
            self._before = keys, np.array(found, dtype=np.int32)
        return self._before[1]

    def devices(self, series: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """By row its device as a number that sorts like the device's name, and the names."""
        held = np.flatnonzero(np.bincount(series, minlength=len(self._number)))
        labels, named = self._codes(), {name: [*self._names[name].texts, None] for name in schema.DEVICE}
        boards, instances = ([named[name][c] for c in labels[name][held].tolist()] for name in schema.DEVICE)
        texts = [device_name(board, instance) for board, instance in zip(boards, instances, strict=True)]
        names = sorted(set(texts))
        position = {name: i for i, name in enumerate(names)}
        rank = np.zeros(len(self._number), dtype=np.int64)
        rank[held] = [position[text] for text in texts]
        return rank[series], names

    def _codes(self) -> dict[str, np.ndarray]:
        table = np.array(list(self._number), dtype=np.int64).reshape(len(self._number), len(schema.labels()))
        return {name: table[:, place] for place, name in enumerate(schema.labels())}

    def wide(self, rows: Narrow) -> pa.Table:
        """The rows in the columns of the schema; labels are dictionaries of what occurs."""
        series = rows.table[SERIES].to_numpy()
        held = np.flatnonzero(np.bincount(series, minlength=len(self._number)))
        place = np.zeros(len(self._number), dtype=np.int32)
        place[held] = np.arange(len(held))
        of_row = place[series]
        columns = {name: rows.table[name] for name in rows.table.column_names if name != SERIES}
        for name, codes in self._codes().items():
            mine = codes[held]
            if (mine < 0).all():
                if name in self._names:
                    columns[name] = pa.nulls(len(series), schema.LABEL_TYPE)
                continue
            words, number = np.unique(mine[mine >= 0], return_inverse=True)
            by_series = np.full(len(mine), -1, dtype=np.int32)
            by_series[mine >= 0] = number
            texts = pa.array([self._names[name].texts[w] for w in words.tolist()], pa.string())
            found = by_series[of_row]
            indices = pa.array(found, mask=found < 0 if len(number) < len(mine) else None)
            columns[name] = pa.DictionaryArray.from_arrays(indices, texts, safe=False)  # numbers of these very texts
        for name, value in rows.constants.items():
            columns[name] = pa.repeat(pa.scalar(value, schema.columns()[name].arrow()), len(series))
        order = [name for name in (*schema.columns(), ARRIVAL) if name in columns]
        return pa.table({name: columns[name] for name in order})

    def note(self) -> SeriesNote:
        """All series, for another to know them by."""
        texts = {name: list(names.texts) for name, names in self._names.items()}
        return SeriesNote(texts, {name: codes.tolist() for name, codes in self._codes().items()})

    def numbers(self, note: SeriesNote) -> np.ndarray:
        """By number in a note the number here."""
        columns = []
        for name in schema.labels():
            known = [-1]
            if name in note.texts:
                names = self._names[name]
                known = [*(names.number(t) for t in note.texts[name]), -1]
            columns.append(np.array(known)[note.codes[name]].tolist())
        found = [self._number.setdefault(key, len(self._number)) for key in zip(*columns, strict=True)]
        return np.array(found, dtype=np.int32)


def joined(found: Sequence[Narrow]) -> Narrow:
    """Rows one after the other. What is the same in each but not in all becomes a column again."""
    names = {name: None for rows in found for name in (*rows.table.column_names, *rows.constants)}
    same: Constants = {}
    for name in names:
        values = {rows.constants[name] for rows in found if name in rows.constants}
        if len(values) == 1 and all(name in rows.constants for rows in found):
            same[name] = values.pop()
    tables = []
    for rows in found:
        table = rows.table
        for name, value in rows.constants.items():
            if name not in same:
                column = pa.repeat(pa.scalar(value, schema.columns()[name].arrow()), table.num_rows)
                table = table.append_column(name, column)
        tables.append(table)
    kept = [name for name in names if name not in same]
    tables = [t if t.column_names == kept or len(tables) == 1 else _in_columns(t, kept) for t in tables]
    return Narrow(same, pa.concat_tables(tables, promote_options="default").combine_chunks())


def _in_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns in one order; what a source lacks stays out and becomes NULL where others have it."""
    held = set(table.column_names)
    return table.select([name for name in names if name in held])


def _same(column: pa.ChunkedArray) -> bool:
    """Whether all rows hold the same, or all nothing."""
    if column.null_count:
        return bool(column.null_count == len(column))
    if column[0] != column[-1]:
        return False
    ends = pc.min_max(column)
    return bool(ends["min"] == ends["max"])


def _counted(code: np.ndarray, width: int) -> tuple[int, np.ndarray]:
    """How many different numbers there are, and each row's place among them."""
    if width > 4 * len(code) + 1024:
        held, place = np.unique(code, return_inverse=True)
        return len(held), place.reshape(-1)
    there = np.zeros(width, dtype=bool)
    there[code] = True
    place = np.cumsum(there) - 1
    return int(there.sum()), place[code]
