"""How are rows kept while they are put in order, in as few columns as possible?

All labels of a row are one number, its series: a fleet has some thousand of them in millions of rows. Readings that are
the same in a whole batch, as counters of errors mostly are, are kept once; the others in as few bytes as hold them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.batch import as_dictionary, device_name
from gpuledger.lake.names import Names, label_codes
from gpuledger.lake.sorting.order import ARRIVAL
from gpuledger.native.moving import first_rows, follows
from gpuledger.native.number_types import numpy_type
from gpuledger.native.packing import Packing, packed, unpacked
from gpuledger.telemetry import schema

SERIES = "_series"
_KINDS = {SERIES: pa.int32(), ARRIVAL: pa.int64()}
_LOOKED_AT = 64
Constants = dict[str, float | int | None]


@dataclass(frozen=True)
class Narrow:
    """Rows with their series in place of labels, and the readings that are the same in all of them.

    `packings`: how columns are kept that are not as the schema has them.
    """

    constants: Constants
    columns: dict[str, pa.Array]
    packings: dict[str, Packing] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns[schema.TIME])

    def at(self, start: int, rows: int) -> Narrow:
        """Some rows."""
        columns = {name: column.slice(start, rows) for name, column in self.columns.items()}
        return Narrow(self.constants, columns, self.packings)

    def taken(self, order: np.ndarray) -> Narrow:
        """The rows in another order, or some of them."""
        rows = pa.array(order)
        columns = {name: pc.take(column, rows, boundscheck=False) for name, column in self.columns.items()}
        return Narrow(self.constants, columns, self.packings)

    def packed(self, order: np.ndarray | None) -> Narrow:
        """The rows in as few bytes as hold them, in another order if any; each column is let go of here on the way."""
        columns, packings = dict[str, pa.Array](), dict[str, Packing]()
        rows = None if order is None else pa.array(order)
        for name in list(self.columns):
            assert self.columns[name].type == kind_of(name)
            kept, how = packed(self.columns.pop(name))
            if kept.type != kind_of(name):
                packings[name] = how
            columns[name] = kept if rows is None else pc.take(kept, rows, boundscheck=False)
        return Narrow(self.constants, columns, packings)

    def unpacked(self) -> Narrow:
        """The rows as the schema has them."""
        return Narrow(self.constants, {name: self.column(name) for name in self.columns}) if self.packings else self

    def column(self, name: str) -> pa.Array:
        """A column as the schema has it."""
        kept, how = self.columns[name], self.packings.get(name)
        return kept if how is None else unpacked(kept, how, kind_of(name))

    @property
    def series(self) -> np.ndarray:
        """The series of each row."""
        found: np.ndarray = self.columns[SERIES].to_numpy()
        return found

    @property
    def at_ms(self) -> np.ndarray:
        """The instant of each row."""
        found: np.ndarray = self.column(schema.TIME).to_numpy()
        return found


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
        self._ranked: tuple[np.ndarray, np.ndarray, list[str]] | None = None
        self._table = np.zeros((0, len(schema.labels())), dtype=np.int64)

    def narrow(self, given: dict[str, pa.Array]) -> Narrow:
        """Rows of the schema, in fewer columns."""
        constants: Constants = {}
        columns: dict[str, pa.Array] = {}
        labels: dict[str, pa.DictionaryArray] = {}
        for name, column in given.items():
            if name in schema.labels():
                labels[name] = as_dictionary(column).cast(schema.LABEL_TYPE)
            elif name in (schema.TIME, ARRIVAL) or not _same(column):
                columns[name] = column
            else:
                constants[name] = column[0].as_py()
        columns[SERIES] = self._numbered(labels)
        return Narrow(constants, columns)

    def _numbered(self, labels: dict[str, pa.DictionaryArray]) -> pa.Array:
        """The series of each row, from its labels."""
        codes = {name: label_codes(column.indices) for name, column in labels.items()}
        widest = max(labels, key=lambda name: len(labels[name].dictionary))
        size = len(labels[widest].dictionary) + 1
        group = codes[widest] if not labels[widest].null_count else codes[widest] + np.int32(1)
        row = first_rows(group, size)
        for name, code in codes.items():
            if name != widest and not follows(code, group, row):  # most often a device tells all its labels
                wide = len(labels[name].dictionary) + 1
                size, group = _counted(group.astype(np.int64) * wide + code + 1, size * wide)
                row = first_rows(group, size)
        held = np.flatnonzero(row >= 0)
        none = np.full(len(held), -1)
        keys = [
            self._names[name].known(labels[name].dictionary)[codes[name][row[held]]] if name in labels else none
            for name in schema.labels()
        ]
        number = np.zeros(size, dtype=np.int32)
        number[held] = self._numbers_of(np.array(keys).T)
        return pa.array(number).take(pa.array(group))

    def _numbers_of(self, keys: np.ndarray) -> np.ndarray:
        """The numbers of some sets of labels, a row each; batches of one source mostly have those of the one before."""
        if self._before is None or not np.array_equal(keys, self._before[0]):
            found = [self._number.setdefault(tuple(key), len(self._number)) for key in keys.tolist()]
            self._before = keys, np.array(found, dtype=np.int32)
        return self._before[1]

    def devices(self, series: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """By row its device as a number that sorts like the device's name, and the names."""
        held = np.flatnonzero(np.bincount(series, minlength=len(self._number)))
        if self._ranked is None or not np.array_equal(held, self._ranked[0]):  # most runs are of the same devices
            labels, named = self._codes(), {name: [*self._names[name].texts, None] for name in schema.DEVICE}
            boards, instances = ([named[name][c] for c in labels[name][held].tolist()] for name in schema.DEVICE)
            texts = [device_name(board, instance) for board, instance in zip(boards, instances, strict=True)]
            names = sorted(set(texts))
            position = {name: i for i, name in enumerate(names)}
            rank = np.zeros(len(self._number), dtype=np.int32)
            rank[held] = [position[text] for text in texts]
            self._ranked = held, rank, names
        _, rank, names = self._ranked
        return rank.take(series), names

    def _codes(self) -> dict[str, np.ndarray]:
        if len(self._table) < len(self._number):
            self._table = np.array(list(self._number), dtype=np.int64)
        return {name: self._table[:, place] for place, name in enumerate(schema.labels())}

    def wide(self, rows: Narrow) -> pa.Table:
        """The rows in the columns of the schema; labels are dictionaries of what occurs."""
        rows = rows.unpacked()
        series = rows.series
        held = np.flatnonzero(np.bincount(series, minlength=len(self._number)))
        place = np.zeros(len(self._number), dtype=np.int32)
        place[held] = np.arange(len(held))
        of_row, made = pa.array(place.take(series)), dict[bytes, pa.Array]()
        columns = {name: column for name, column in rows.columns.items() if name != SERIES}
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
            key = by_series.tobytes()
            if key not in made:  # labels that change together share their numbers
                whole = pa.array(by_series, mask=by_series < 0 if len(number) < len(mine) else None)
                made[key] = pc.take(whole, of_row, boundscheck=False)
            columns[name] = pa.DictionaryArray.from_arrays(made[key], texts, safe=False)  # numbers of these very texts
        for name, value in rows.constants.items():
            columns[name] = _filled(value, len(series), schema.columns()[name].arrow())
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
    """Rows one after the other, none of them packed. What is the same in each but not in all becomes a column again."""
    assert not any(rows.packings for rows in found)
    if len(found) == 1:
        return found[0]
    same, names = constants_of(found)
    columns = {name: pa.concat_arrays(columns_of(found, name)) for name in names}
    return Narrow(same, columns)


def constants_of(found: Sequence[Narrow]) -> tuple[Constants, list[str]]:
    """What is the same in all rows, and the names of all else."""
    names = {name: None for rows in found for name in (*rows.columns, *rows.constants)}
    same: Constants = {}
    for name in names:
        values = {rows.constants[name] for rows in found if name in rows.constants}
        if len(values) == 1 and all(name in rows.constants for rows in found):
            same[name] = values.pop()
    return same, [name for name in names if name not in same]


def columns_of(found: Sequence[Narrow], name: str) -> list[pa.Array]:
    """One column of each; NULL where a source lacks it. What is the same in all rows becomes a column there."""
    for rows in (r for r in found if name not in r.columns):
        rows.columns[name] = _filled(rows.constants.get(name), len(rows), kind_of(name))
    return [rows.columns[name] for rows in found]


def kind_of(name: str) -> pa.DataType:
    """What the numbers of a column are."""
    return _KINDS.get(name) or schema.columns()[name].arrow()


def _filled(value: float | None, rows: int, kind: pa.DataType) -> pa.Array:
    """A column that holds the same in all rows; in a fifth of the time that Arrow's `repeat` takes."""
    return pa.nulls(rows, kind) if value is None else pa.array(np.full(rows, value, numpy_type(kind)), kind)


def _same(column: pa.Array) -> bool:
    """Whether all rows hold the same, or all nothing."""
    if column.null_count:
        return bool(column.null_count == len(column))
    values = column.to_numpy()
    return not (values[:: len(values) // _LOOKED_AT + 1] != values[0]).any() and bool((values == values[0]).all())


def _counted(code: np.ndarray, width: int) -> tuple[int, np.ndarray]:
    """How many different numbers there are, and each row's place among them."""
    if width > 4 * len(code) + 1024:
        held, place = np.unique(code, return_inverse=True)
        return len(held), place.reshape(-1).astype(np.int32)
    there = np.zeros(width, dtype=bool)
    there[code] = True
    place = (np.cumsum(there) - 1).astype(np.int32)
    return int(there.sum()), place[code]
