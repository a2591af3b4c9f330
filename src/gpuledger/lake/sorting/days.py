"""How do rows in any order become days of devices in order of time, in bounded memory?

Rows arrive in batches. Each run of some hundred thousand is put in order of (day, device) and kept in memory while
little, spilled to an Arrow file when much. At the end every day is given out in chunks of whole devices: the slices of
that device range are gathered from all runs, joined and put in order of (device, time, owner, pod, content).

Within, rows are narrow (`lake.sorting.narrow`): all labels are one number, and readings that never change are left out.
Several processes may fill a sorter each; one then takes over what the others have spilled.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from gpuledger.lake.batch import repeated
from gpuledger.lake.sorting.narrow import SERIES, Narrow, Series, SeriesNote, joined
from gpuledger.lake.sorting.order import ARRIVAL, in_order, instants
from gpuledger.lake.sorting.runs import Handed, Piece, Run, Slice, shares_of
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY

RUN_ROWS = 1 << 18
SLICE_ROWS = 1 << 13
CHUNK_ROWS = 1 << 18
MEMORY_BYTES = 64 << 20
# From this many rows of one device and day on, repeated rows are dropped before they pile up.
MANY_ROWS = 1 << 17


class DaySorter:
    """Takes tables in any order, gives days of whole devices in order."""

    def __init__(self, spill_dir: Path, *, by_day: bool = False) -> None:
        """`by_day`: no file has rows of two days, so that a machine that wants one day fetches nothing else."""
        self._spill_dir, self._by_day = spill_dir, by_day
        self._series = Series()
        self._waiting: list[Narrow] = []
        self._waiting_rows = 0
        self._held: list[tuple[Slice, pa.Table]] = []
        self._held_bytes = 0
        self._runs: list[Run] = []
        self._spoken: set[str] | None = None
        self._any: set[str] = set()
        self._notes: list[SeriesNote] = []
        self._renumbered: dict[int, np.ndarray] = {}
        self.arrived = 0
        self.repeats = 0

    def add(self, table: pa.Table, arrival: np.ndarray | None = None) -> None:
        """Take some rows; `arrival` numbers them where their order of coming is not enough."""
        if not table.num_rows:
            return
        if arrival is None:
            arrival = np.arange(self.arrived, self.arrived + table.num_rows, dtype=np.int64)
        self.arrived += table.num_rows
        full = {name for name in table.column_names if not table[name].null_count}
        self._any |= {name for name in table.column_names if table[name].null_count < table.num_rows}
        self._spoken = full if self._spoken is None else self._spoken & full
        self._waiting.append(self._series.narrow(table.append_column(ARRIVAL, pa.array(arrival))))
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= RUN_ROWS:
            self._close_run()

    def hand_over(self) -> Handed:
        """Spill all rows; no more may come."""
        self._close_run()
        self._spill()
        self._notes.append(self._series.note())
        own = len(self._notes) - 1
        self._runs = [run if run.note >= 0 else msgspec.structs.replace(run, note=own) for run in self._runs]
        return self._some(self._runs)

    def _some(self, runs: list[Run]) -> Handed:
        full = sorted(self.never_null())
        return Handed([r for r in runs if r.slices], self._notes, full, sorted(self._any), self.repeats)

    def take_over(self, handed: Handed) -> None:
        """Go on with what another sorter has spilled."""
        self._runs += [msgspec.structs.replace(r, note=r.note + len(self._notes)) for r in handed.runs]
        self._notes += handed.notes
        self.repeats += handed.repeats
        self._any |= set(handed.spoken)
        self._spoken = set(handed.full) if self._spoken is None else self._spoken & set(handed.full)

    def of_days(self, days: Sequence[int]) -> Handed:
        """What was spilled of some days."""
        runs = [Run(r.file, [s for s in r.slices if s.day in days], r.note) for r in self._runs]
        return msgspec.structs.replace(self._some(runs), repeats=0)

    def days(self) -> list[int]:
        """The days seen, as days since 1970, in order. No more rows after this."""
        self._close_run()
        return sorted({p.slice.day for p in self._pieces()})

    def rows_of_days(self) -> dict[int, int]:
        """How many rows each day has."""
        found: dict[int, int] = defaultdict(int)
        for piece in self._pieces():
            found[piece.slice.day] += sum(piece.slice.counts)
        return found

    def never_null(self) -> set[str]:
        """The columns that every row so far has filled."""
        return self._spoken or set()

    def spoken(self) -> set[str]:
        """The columns that some row has filled."""
        return self._any

    def chunks(self, day: int) -> Iterator[pa.Table]:
        """One day as tables of whole boards in order, each about CHUNK_ROWS long."""
        pieces = [p for p in self._pieces() if p.slice.day == day]
        for devices in shares_of(pieces, CHUNK_ROWS):
            yield self._gather(pieces, devices)

    def devices(self, shares: int) -> list[tuple[str, str]]:
        """The devices in `shares` shares of about equal rows, by the first and last of each; boards stay whole."""
        pieces = self._pieces()
        rows = sum(sum(p.slice.counts) for p in pieces)
        return [(some[0], some[-1]) for some in shares_of(pieces, rows // shares + 1)]

    def of_devices(self, first: str, last: str) -> Handed:
        """What was spilled of some devices; slices that hold others too come along."""
        runs = [
            Run(r.file, [s for s in r.slices if s.devices[0] <= last and s.devices[-1] >= first], r.note)
            for r in self._runs
        ]
        return msgspec.structs.replace(self._some(runs), repeats=0)

    def histories(self, first: str, last: str, rows: int) -> Iterator[list[tuple[int, pa.Table]]]:
        """Some devices, about `rows` rows at a time: all their days, the last day first, each in order."""
        pieces, by_day = self._pieces(), defaultdict[int, list[Piece]](list)
        for piece in pieces:
            by_day[piece.slice.day].append(piece)
        for devices in shares_of(pieces, rows, first, last):
            found = [(day, self._gather(by_day[day], devices)) for day in sorted(by_day, reverse=True)]
            yield [(day, table) for day, table in found if table.num_rows]

    def _pieces(self) -> list[Piece]:
        spilled = [Piece(s, None, number) for number, run in enumerate(self._runs) for s in run.slices]
        return [*spilled, *(Piece(s, table, -1) for s, table in self._held)]

    def _close_run(self) -> None:
        if not self._waiting:
            return
        constants, table = joined(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        codes, names = self._series.devices(table[SERIES].to_numpy())
        day = table[schema.TIME].to_numpy() // MS_PER_DAY
        first_day = int(day.min())
        key = (day - first_day) * len(names) + codes
        if (np.diff(key) < 0).any():
            small = key.max() < np.iinfo(np.uint16).max  # numpy sorts 16-bit keys by radix
            order = np.argsort(key.astype(np.uint16) if small else key, kind="stable")
            table, key = pc.take(table, pa.array(order.astype(np.int32)), boundscheck=False), key[order]
        if len(key) >= MANY_ROWS:
            table, key = self._without_repeats(table, key, constants)
        self._cut(table, key, first_day, names, constants)
        if self._held_bytes > MEMORY_BYTES:
            self._spill()

    def _without_repeats(
        self, table: pa.Table, key: np.ndarray, constants: dict[str, float | int | None]
    ) -> tuple[pa.Table, np.ndarray]:
        """Rows in order of key (device and day), without the repeated rows of keys that have many rows."""
        again = np.zeros(len(key), dtype=bool)
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        counts = np.diff(starts, append=len(key))
        for first, rows in zip(starts[counts >= MANY_ROWS].tolist(), counts[counts >= MANY_ROWS].tolist(), strict=True):
            piece = self._series.wide(Narrow(constants, table.slice(first, rows)))
            again[first : first + rows] = repeated(instants(piece), piece)
        if not again.any():
            return table, key
        self.repeats += int(again.sum())
        return table.filter(pa.array(~again)), key[~again]

    def _cut(
        self,
        table: pa.Table,
        key: np.ndarray,
        first_day: int,
        names: list[str],
        constants: dict[str, float | int | None],
    ) -> None:
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        values, rows_of, at = key[starts], np.diff(starts, append=len(key)).tolist(), 0
        days, codes = (values // len(names) + first_day).tolist(), (values % len(names)).tolist()
        while at < len(rows_of):
            end, rows = at + 1, rows_of[at]
            while end < len(rows_of) and days[end] == days[at] and rows + rows_of[end] <= SLICE_ROWS:
                rows += rows_of[end]
                end += 1
            note = Slice(days[at], [names[c] for c in codes[at:end]], rows_of[at:end], -1, constants)
            self._held.append((note, table.slice(int(starts[at]), rows)))
            at = end
        self._held_bytes += table.nbytes

    def _spill(self) -> None:
        """Move what is held in memory to files, a record batch a slice; a file for each set of columns."""
        files: dict[tuple[int, tuple[str, ...]], list[tuple[Slice, pa.Table]]] = defaultdict(list)
        for note, table in self._held:
            files[note.day if self._by_day else 0, tuple(table.column_names)].append((note, table))
        for held in files.values():
            path = self._spill_dir / f"run-{len(self._runs)}.arrow"
            # Not packed: it is mapped into memory to be read, and only the rows wanted are touched.
            with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, held[0][1].schema) as writer:
                for _, table in held:
                    writer.write_table(table, max_chunksize=max(table.num_rows, 1))
            slices = [msgspec.structs.replace(note, index=index) for index, (note, _) in enumerate(held)]
            self._runs.append(Run(str(path), slices))
        self._held, self._held_bytes = [], 0

    def _gather(self, pieces: list[Piece], devices: list[str]) -> pa.Table:
        """The rows of some devices, in order."""
        # Mapped for this chunk only: what was touched would count as memory in use.
        files: dict[int, ipc.RecordBatchFileReader] = {}
        found: list[Narrow] = []
        place, ranked = {name: i for i, name in enumerate(devices)}, list[np.ndarray]()
        waiting, settled = 0, 0
        for piece in pieces:
            note = piece.slice
            low, high = bisect_left(note.devices, devices[0]), bisect_right(note.devices, devices[-1])
            if low == high:
                continue
            table = piece.table
            if table is None:
                if piece.run not in files:
                    files[piece.run] = ipc.open_file(pa.memory_map(self._runs[piece.run].file))
                table = pa.Table.from_batches([files[piece.run].get_batch(note.index)])
            counts = note.counts[low:high]
            table = table.slice(sum(note.counts[:low]), sum(counts))
            found.append(Narrow(note.constants, self._known(table, piece.run)))
            ranked.append(np.repeat([place[d] for d in note.devices[low:high]], counts))
            waiting += table.num_rows
            if waiting - settled >= max(8 * MANY_ROWS, settled):  # one device with a day's repeated rows in many runs
                found = [self._distinct(found)]
                codes, names = self._series.devices(found[0].table[SERIES].to_numpy())
                ranked = [np.array([place[name] for name in names], dtype=np.int64)[codes]]
                waiting = settled = found[0].table.num_rows
        if not found:
            return pa.table({})
        constants, table = joined(found)
        ranks = np.concatenate(ranked)
        if (np.diff(ranks) < 0).any():
            small = len(devices) < np.iinfo(np.uint16).max
            order = np.argsort(ranks.astype(np.uint16) if small else ranks, kind="stable")
            table = pc.take(table, pa.array(order.astype(np.int32)), boundscheck=False)
        return in_order(self._series.wide(Narrow(constants, table)))

    def _known(self, table: pa.Table, number: int) -> pa.Table:
        """Rows of a run with the numbers its labels have here."""
        note = self._runs[number].note if number >= 0 else -1
        if note < 0:  # numbered here
            return table
        if note not in self._renumbered:
            self._renumbered[note] = self._series.numbers(self._notes[note])
        codes = self._renumbered[note][table[SERIES].to_numpy()]
        return table.set_column(table.column_names.index(SERIES), SERIES, pa.array(codes))

    def _distinct(self, found: list[Narrow]) -> Narrow:
        whole = joined(found)
        wide = self._series.wide(whole)
        again = repeated(instants(wide), wide)
        self.repeats += int(again.sum())
        return Narrow(whole.constants, whole.table.filter(pa.array(~again)))
