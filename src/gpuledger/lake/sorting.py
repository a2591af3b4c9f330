"""How do rows in any order become days of devices in order of time, in bounded memory?

Rows arrive in batches. Each run of about a million is put in order of (day, device) and kept in memory while little,
spilled to an Arrow file when much. At the end every day is given out in chunks of whole devices: the slices of that
device range are gathered from all runs, joined and put in order of (device, time, owner, pod, content).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from gpuledger.lake.batch import as_dictionary, board_of, content_keys, repeated
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY

RUN_ROWS = 1 << 20
SLICE_ROWS = 1 << 15
CHUNK_ROWS = 1 << 18
MEMORY_BYTES = 192 << 20
# From this many rows of one device and day on, repeated rows are dropped before they pile up.
MANY_ROWS = 1 << 17
ARRIVAL = "_arrival"


@dataclass
class _Slice:
    """Consecutive rows of one run: one day, devices from `first` to `last` (in the order of their names)."""

    day: int
    first: str
    last: str
    rows: int
    table: pa.Table | None
    run: int
    index: int


class DaySorter:
    """Takes tables in any order, gives days of whole devices in order."""

    def __init__(self, spill_dir: Path) -> None:
        self._spill_dir = spill_dir
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._slices: list[_Slice] = []
        self._held: list[_Slice] = []
        self._held_bytes = 0
        self._runs: list[Path] = []
        self._rows_of: dict[tuple[int, str], int] = {}
        self._spoken: set[str] | None = None
        self.arrived = 0
        self.repeats = 0

    def add(self, table: pa.Table, arrival: np.ndarray | None = None) -> None:
        """Take some rows; `arrival` numbers them where their order of coming is not enough."""
        if arrival is None:
            arrival = np.arange(self.arrived, self.arrived + table.num_rows, dtype=np.int64)
        self.arrived += table.num_rows
        full = {name for name in table.column_names if not table[name].null_count}
        self._spoken = full if self._spoken is None else self._spoken & full
        self._waiting.append(table.append_column(ARRIVAL, pa.array(arrival)))
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= RUN_ROWS:
            self._close_run()

    def days(self) -> list[int]:
        """The days seen, as days since 1970, in order. No more rows after this."""
        self._close_run()
        return sorted({s.day for s in self._slices})

    def never_null(self) -> set[str]:
        """The columns that every row so far has filled."""
        return self._spoken or set()

    def chunks(self, day: int) -> Iterator[pa.Table]:
        """One day as tables of whole boards in order, each about CHUNK_ROWS long."""
        devices = sorted(name for d, name in self._rows_of if d == day)
        slices = [s for s in self._slices if s.day == day]
        start = 0
        while start < len(devices):
            end, rows = start, 0
            while end < len(devices) and (
                end == start
                or rows + self._rows_of[day, devices[end]] <= CHUNK_ROWS
                or board_of(devices[end]) == board_of(devices[end - 1])
            ):
                rows += self._rows_of[day, devices[end]]
                end += 1
            yield self._gather(slices, devices[start], devices[end - 1])
            start = end

    def _close_run(self) -> None:
        if not self._waiting:
            return
        table = _joined(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        codes, names = device_codes(table)
        day = table[schema.TIME].to_numpy() // MS_PER_DAY
        first_day = int(day.min())
        key = (day - first_day) * len(names) + codes
        if (np.diff(key) < 0).any():
            small = key.max() < np.iinfo(np.uint16).max  # numpy sorts 16-bit keys by radix
            order = np.argsort(key.astype(np.uint16) if small else key, kind="stable")
            table, key = table.take(pa.array(order)), key[order]
        if len(key) >= MANY_ROWS:
            table, key = self._without_repeats(table, key)
        self._cut(table, key, first_day, names)
        if self._held_bytes > MEMORY_BYTES:
            self._spill()

    def _without_repeats(self, table: pa.Table, key: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """Rows in order of key (device and day), without the repeated rows of keys that have many rows."""
        again = np.zeros(len(key), dtype=bool)
        _, starts, counts = np.unique(key, return_index=True, return_counts=True)
        for first, rows in zip(starts[counts >= MANY_ROWS].tolist(), counts[counts >= MANY_ROWS].tolist(), strict=True):
            piece = table.slice(first, rows)
            again[first : first + rows] = repeated(instants(piece), piece)
        if not again.any():
            return table, key
        self.repeats += int(again.sum())
        return table.filter(pa.array(~again)), key[~again]

    def _cut(self, table: pa.Table, key: np.ndarray, first_day: int, names: list[str]) -> None:
        values, starts, counts = np.unique(key, return_index=True, return_counts=True)
        days, codes = values // len(names) + first_day, values % len(names)
        for d, c, n in zip(days.tolist(), codes.tolist(), counts.tolist(), strict=True):
            self._rows_of[d, names[c]] = self._rows_of.get((d, names[c]), 0) + n
        at = 0
        while at < len(values):
            end, rows = at + 1, int(counts[at])
            while end < len(values) and days[end] == days[at] and rows + counts[end] <= SLICE_ROWS:
                rows += int(counts[end])
                end += 1
            piece = table.slice(int(starts[at]), rows)
            self._held.append(_Slice(int(days[at]), names[codes[at]], names[codes[end - 1]], rows, piece, -1, -1))
            self._slices.append(self._held[-1])
            at = end
        self._held_bytes += table.nbytes

    def _spill(self) -> None:
        """Move what is held in memory to a file, a record batch a slice."""
        path = self._spill_dir / f"run-{len(self._runs)}.arrow"
        options = ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True, use_threads=True)
        whole = pa.concat_tables([s.table for s in self._held], promote_options="default").unify_dictionaries()
        whole = whole.combine_chunks()
        at = 0
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, whole.schema, options=options) as writer:
            for index, piece in enumerate(self._held):
                writer.write_table(whole.slice(at, piece.rows), max_chunksize=max(piece.rows, 1))
                at += piece.rows
                piece.table, piece.run, piece.index = None, len(self._runs), index
        self._runs.append(path)
        self._held, self._held_bytes = [], 0

    def _gather(self, slices: list[_Slice], first: str, last: str) -> pa.Table:
        found: list[pa.Table] = []
        waiting, settled = 0, 0
        readers: dict[int, tuple[pa.OSFile, ipc.RecordBatchFileReader]] = {}
        for s in slices:
            if s.last < first or s.first > last:
                continue
            table = s.table
            if table is None:
                if s.run not in readers:
                    file = pa.OSFile(str(self._runs[s.run]), "rb")
                    readers[s.run] = (file, ipc.open_file(file))
                table = pa.Table.from_batches([readers[s.run][1].get_batch(s.index)])
            found.append(_within(table, first, last) if s.first < first or s.last > last else table)
            waiting += found[-1].num_rows
            if waiting - settled >= max(8 * MANY_ROWS, settled):  # one device with a day's repeated rows in many runs
                found = [self._distinct(found)]
                waiting = settled = found[0].num_rows
        for file, _ in readers.values():
            file.close()
        return in_order(_joined(found))

    def _distinct(self, tables: list[pa.Table]) -> pa.Table:
        table = _joined(tables)
        again = repeated(instants(table), table)
        self.repeats += int(again.sum())
        return table.filter(pa.array(~again))


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()


def instants(table: pa.Table) -> np.ndarray:
    """A number per row, equal where device and instant are equal, for rows in any order."""
    codes, names = device_codes(table)
    at = np.unique(table[schema.TIME].to_numpy(), return_inverse=True)[1]
    ids: np.ndarray = np.unique(at * len(names) + codes, return_inverse=True)[1]
    return ids


def device_names(table: pa.Table) -> pa.DictionaryArray:
    """The device of each row as one name: the board, and the MIG instance where there is one."""
    uuid = as_dictionary(table["gpu_uuid"])
    if "gpu_instance_id" not in table.column_names:
        return uuid
    instance = as_dictionary(table["gpu_instance_id"])
    if instance.null_count == len(instance):
        return uuid
    joined = pc.binary_join_element_wise(
        uuid.dictionary_decode(), pc.coalesce(instance.dictionary_decode(), pa.scalar("")), "/"
    )
    return pc.utf8_rtrim(joined, characters="/").dictionary_encode()


def device_codes(table: pa.Table) -> tuple[np.ndarray, list[str]]:
    """Each row's device as a number that sorts like the device's name, and the names."""
    return ranked(device_names(table))


def ranked(labels: pa.DictionaryArray) -> tuple[np.ndarray, list[str]]:
    """A label column as numbers that sort like its texts (NULL first), and the texts that occur, in that order."""
    texts = [t or "" for t in labels.dictionary.to_pylist()]
    indices = labels.indices.fill_null(len(texts)) if labels.indices.null_count else labels.indices
    codes = indices.to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts) + 1))
    texts.append("")
    names = sorted({texts[i] for i in used})
    position = {name: i for i, name in enumerate(names)}
    rank = np.zeros(len(texts), dtype=np.int64)
    rank[used] = [position[texts[i]] for i in used]
    return rank[codes], names


def series_codes(table: pa.Table) -> np.ndarray | None:
    """Each row's owner, pod and container as a number that sorts like these labels; None where there is one only."""
    total: np.ndarray | None = None
    size = 1
    for column in schema.SERIES:
        if column in table.column_names:
            codes, names = ranked(as_dictionary(table[column]))
            if len(names) > 1:
                if total is not None and size * len(names) >= 1 << 62:
                    total = np.unique(total, return_inverse=True)[1]
                    size = int(total.max()) + 1
                total = codes if total is None else total * len(names) + codes
                size *= len(names)
    return total


def in_order(table: pa.Table) -> pa.Table:
    """The rows in order of device, time, owner, pod and container; rows equal in all of these by their content."""
    codes, _ = device_codes(table)
    at = table[schema.TIME].to_numpy()
    if len(codes) < 2 or _rising(codes, at):
        return table
    if (np.diff(codes) < 0).any():
        small = codes.max() < np.iinfo(np.uint16).max
        order = np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")
        if _rising(codes[order], at[order]):
            return table.take(pa.array(order))
    series = series_codes(table)
    keys = [at, codes] if series is None else [series, at, codes]
    if ARRIVAL in table.column_names:
        keys.insert(0, table[ARRIVAL].to_numpy())
    order = np.lexsort(keys)
    return table.take(pa.array(_by_content(table, order, [at, codes] if series is None else [at, codes, series])))


def _by_content(table: pa.Table, order: np.ndarray, keys: list[np.ndarray]) -> np.ndarray:
    """An order of rows by keys, with the rows that are equal in all of them put in the order of their content."""
    same = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    if not same.any():
        return order
    ids = np.concatenate(([0], np.cumsum(~same)))
    places = np.flatnonzero(np.bincount(ids)[ids] > 1)
    rows = order[places]
    inside = content_keys(table.take(pa.array(rows)))
    order = order.copy()
    order[places] = rows[np.lexsort([np.arange(len(rows)), *inside, ids[places]])]
    return order


def _rising(codes: np.ndarray, at: np.ndarray) -> bool:
    """Whether devices never fall and time rises strictly within each."""
    step = np.diff(codes)
    return bool(((step > 0) | ((step == 0) & (np.diff(at) > 0))).all())


def _within(table: pa.Table, first: str, last: str) -> pa.Table:
    names = device_names(table)
    inside = pa.array([first <= (t or "") <= last for t in names.dictionary.to_pylist()])
    return table.filter(inside.take(names.indices))
