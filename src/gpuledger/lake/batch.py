"""Where do devices and owners change in rows that are in order, and when are two rows the same?

Whether rows are the same, and how different rows of one key are ordered, follows from what they hold, never from when
they came: the lake is a set of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from gpuledger.telemetry import schema

CODED = pa.dictionary(pa.int32(), pa.string())
# Columns of rows that share an instant or got owners from jobs: the run they were recorded in, and which rows are no
# sample of their own, as another row of the instant counts as it.
RECORDED_RUN = "_recorded_run"
COPY = "_copy"
OWNERSHIP = (*schema.OWNER, "pod", "tensor_precision")


class Batch:
    """Rows in order of device and time, with the places where labels change worked out once.

    `steady`: readings known to be the same in every row, which the table then need not hold. `fixed`: labels known to
    be the same in all rows of each device.
    """

    def __init__(
        self, table: pa.Table, steady: Mapping[str, float] | None = None, fixed: frozenset[str] = frozenset()
    ) -> None:
        self.table = table
        self.steady = steady or {}
        self.fixed = fixed.difference(schema.DEVICE)
        self.n = table.num_rows
        self._names = set(table.column_names)
        self._columns: dict[str, pa.Array | None] = {}
        self._codes: dict[str, np.ndarray | None] = {}
        self._changed: dict[str, np.ndarray] = {}

    def column(self, name: str) -> pa.Array | None:
        """A column as one array; None where the source lacks it or it is NULL throughout."""
        if name not in self._columns:
            found = self.table.column(name) if name in self._names else None
            spoken = found is not None and found.null_count < self.n
            self._columns[name] = one_array(found) if spoken else None
        return self._columns[name]

    def slices(self, rows: int) -> Iterator[tuple[int, Batch]]:
        """The rows in blocks of whole boards, about `rows` long, each with the number of its first row."""
        if self.n <= rows:
            yield 0, self
            return
        start, boards = 0, [board_of(d) for d in self.devices]
        same = [*(a == b for a, b in pairwise(boards)), False]
        for end, goes_on in zip([*self.device_starts[1:].tolist(), self.n], same, strict=True):
            if (end - start >= rows and not goes_on) or end == self.n:
                yield start, Batch(self.table.slice(start, end - start), self.steady, self.fixed)
                start = end

    @cached_property
    def at_ms(self) -> np.ndarray:
        """The instants."""
        out: np.ndarray = self.table[schema.TIME].to_numpy()
        return out

    def codes(self, name: str) -> np.ndarray | None:
        """A label as numbers, equal where the label is, -1 for NULL; None where it is NULL throughout."""
        if name not in self._codes:
            column = self.column(name)
            self._codes[name] = None if column is None else _numbers(as_dictionary(column).indices)
        return self._codes[name]

    @property
    def recorded_runs(self) -> np.ndarray | None:
        """The recording each row is of, as `codes`: what a job table says changes nothing about how it was sampled."""
        return self.codes(RECORDED_RUN if RECORDED_RUN in self._names else "run_id")

    @property
    def copies(self) -> np.ndarray | None:
        """Which rows are no sample of their own, as another holder's row of the instant is it; None where all are."""
        column = self.column(COPY)
        return None if column is None else column.to_numpy(zero_copy_only=False)

    def label(self, name: str, rows: np.ndarray) -> pa.DictionaryArray:
        """A label at some rows, coded by a dictionary."""
        column = self.column(name)
        if column is None:
            return pa.nulls(len(rows), CODED)
        return as_dictionary(column).take(pa.array(rows))

    def text(self, name: str, rows: np.ndarray) -> pa.Array:
        """A label at some rows, as plain text."""
        return self.label(name, rows).cast(pa.string())

    def numbers(self, name: str) -> np.ndarray | None:
        """A reading with NaN for NULL; None where no row has one."""
        column = self.column(name)
        return None if column is None else column.to_numpy(zero_copy_only=False)

    def silent(self, name: str) -> bool:
        """Whether some row lacks the reading."""
        column = self.column(name)
        return column is None or column.null_count > 0

    def changes(self, names: tuple[str, ...]) -> np.ndarray:
        """Where any of these labels differs from the row before; True at the first row. Labels that are fixed are not
        looked at: where one is asked for, every device counts as a change.
        """
        out = np.zeros(self.n, dtype=bool)
        out[:1] = True
        if not self.fixed.isdisjoint(names):
            out[self.device_starts] = True
        for name in names:
            if name in self.fixed:
                continue
            codes = self.codes(name)
            if codes is not None:
                if name not in self._changed:
                    self._changed[name] = codes[1:] != codes[:-1]
                out[1:] |= self._changed[name]
        return out

    @cached_property
    def device_starts(self) -> np.ndarray:
        """The first row of each device."""
        return np.flatnonzero(self.changes(schema.DEVICE))

    def devices_at(self, rows: np.ndarray) -> np.ndarray:
        """The number of the device of some rows."""
        return np.searchsorted(self.device_starts, rows, side="right") - 1

    @cached_property
    def devices(self) -> list[str]:
        """The name of each device: the board, and the MIG instance where there is one."""
        boards, instances = (self.text(c, self.device_starts).to_pylist() for c in schema.DEVICE)
        return [device_name(b, i) for b, i in zip(boards, instances, strict=True)]

    @cached_property
    def owner_changes(self) -> np.ndarray:
        """Where the owner or its tensor precision differs from the row before; True at the first row."""
        return self.changes(OWNERSHIP)

    def owners_at(self, rows: np.ndarray) -> np.ndarray:
        """A number per owner and tensor precision at some rows, equal where they are."""
        total, size = np.zeros(len(rows), dtype=np.int64), 1
        for name in OWNERSHIP:
            codes = self.codes(name)
            if codes is not None:
                wide = codes[rows].astype(np.int64) + 1
                most = int(wide.max()) + 1
                if size * most >= 1 << 62:  # too wide for one number: count up those there are
                    total = np.unique(total, return_inverse=True)[1].reshape(-1)
                    size = int(total.max()) + 1
                total, size = total * most + wide, size * most
        return np.unique(total, return_inverse=True)[1]

    @cached_property
    def same_instant(self) -> np.ndarray:
        """For each row but the first: same device and instant as the row before."""
        same = self.at_ms[1:] == self.at_ms[:-1]
        if same.any():
            same[self.device_starts[1:] - 1] = False
        return same


def _numbers(indices: pa.Array) -> np.ndarray:
    whole = indices.fill_null(-1) if indices.null_count else indices
    out: np.ndarray = whole.to_numpy(zero_copy_only=False)
    return out


def device_name(board: str | None, instance: str | None) -> str:
    """The board, and the MIG instance where there is one."""
    return f"{board}/{instance}" if instance else str(board)


def board_of(device: str) -> str:
    """The board of a device by its name."""
    return device.split("/", maxsplit=1)[0]


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column without chunks."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def as_dictionary(column: pa.ChunkedArray | pa.Array) -> pa.DictionaryArray:
    """A label column as one dictionary array."""
    whole = one_array(column)
    return whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()


_PRIME = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)
# The index says nothing of what a device did. A file imported before it was read must not contradict itself when it is
# imported again.
_NO_CONTENT = frozenset({"gpu_index"})
# Rows of one key stand in the order of their counters, which only grow; then by the readings every source has.
_CONTENT = (*schema.counters(), "gpu_util_ratio", "power_w")


def row_hashes(table: pa.Table) -> np.ndarray:
    """64 bits per row over all columns but the index; equal rows have equal hashes whatever their dictionaries."""
    total = np.zeros(table.num_rows, dtype=np.uint64)
    for name in schema.columns():
        if name in _NO_CONTENT:
            continue
        hashed = _column_hash(table[name]) if name in table.column_names else np.full(table.num_rows, _NULL)
        total = (total ^ hashed) * _PRIME
        total ^= total >> np.uint64(29)
    return total


def content_keys(table: pa.Table) -> list[np.ndarray]:
    """Sort keys that put rows of one key in an order of their own, the last key first as `numpy.lexsort` wants it."""
    keys = [row_hashes(table)]
    for name in reversed(_CONTENT):
        if name in table.column_names and table[name].null_count < table.num_rows:
            values = one_array(table[name]).cast(pa.float64(), safe=False)
            keys.append(values.fill_null(-1.0).to_numpy(zero_copy_only=False))
    return keys


def repeated(ids: np.ndarray, table: pa.Table) -> np.ndarray:
    """Mask of the rows equal in every column to an earlier row of the same id."""
    again = np.zeros(table.num_rows, dtype=bool)
    many = np.flatnonzero(np.bincount(ids)[ids] > 1)
    if len(many):
        hashes = row_hashes(table.take(pa.array(many)))
        order = np.lexsort((many, hashes, ids[many]))
        same = (np.diff(ids[many][order]) == 0) & (np.diff(hashes[order]) == 0)
        again[many[order[1:][same]]] = True
    return again


def _column_hash(column: pa.ChunkedArray) -> np.ndarray:
    array = one_array(column)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(array.type):
        words = [_text_hash(t) for t in array.dictionary.to_pylist()]
        table = np.array([*words, int(_NULL)], dtype=np.uint64)
        return table[array.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)]
    wide = pa.int64() if pa.types.is_integer(array.type) else pa.float64()
    bits = array.cast(wide).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return np.where(nulls, _NULL, (bits ^ (bits >> np.uint64(31))) * _PRIME)


def _text_hash(text: str | None) -> int:
    """FNV-1a: the same on every machine, unlike Python's own hash."""
    if text is None:
        return int(_NULL)
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
