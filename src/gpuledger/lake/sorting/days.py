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
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.lake.batch import one_array, repeated
from gpuledger.lake.sorting.gathering import Sorted, rising, together
from gpuledger.lake.sorting.keeping import Kept
from gpuledger.lake.sorting.narrow import SERIES, Narrow, Series, SeriesNote, joined
from gpuledger.lake.sorting.order import ARRIVAL, in_order, instants
from gpuledger.lake.sorting.runs import Handed, Piece, Run, pieces_of, shares_of
from gpuledger.lake.sorting.spilling import Files, read_back
from gpuledger.native.moving import order_by
from gpuledger.units import MS_PER_DAY

RUN_ROWS = 1 << 18
SLICE_ROWS = 1 << 13
CHUNK_ROWS = 1 << 18
MEMORY_BYTES = 64 << 20
# Above this many days x devices in a run, keys are compared rather than counted.
_MANY_KEYS = 1 << 22
# From this many rows of one device and day on, repeated rows are dropped before they pile up.
MANY_ROWS = 1 << 17


class DaySorter:
    """Takes tables in any order, gives days of whole devices in order."""

    def __init__(
        self, spill_dir: Path, *, by_day: bool = False, memory_bytes: int | None = None, numbered: bool = True
    ) -> None:
        """`by_day`: no file has rows of two days, so that a machine that wants one day fetches nothing else;
        `memory_bytes`: how much is held before it is spilled; `numbered`: whether rows keep their number of arrival.
        """
        self._kept, self.numbered = Kept(spill_dir, memory_bytes or MEMORY_BYTES, by_day=by_day), numbered
        self._series = Series()
        self._waiting: list[Narrow] = []
        self._waiting_rows, self._newest_ms = 0, 0
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
        columns = {name: one_array(column) for name, column in zip(table.column_names, table.columns, strict=True)}
        full = {name for name, column in columns.items() if not column.null_count}
        self._any |= {name for name, column in columns.items() if column.null_count < table.num_rows}
        self._spoken = full if self._spoken is None else self._spoken & full
        if self.numbered:
            coming = np.arange(self.arrived, self.arrived + table.num_rows) if arrival is None else arrival
            columns[ARRIVAL] = pa.array(coming)
        self.arrived += table.num_rows
        rows = self._series.narrow(columns)
        if self._waiting_rows >= (SLICE_ROWS if rows.at_ms[0] < self._newest_ms else RUN_ROWS):
            self._close_run()  # a run should rise in time
        self._newest_ms = int(rows.at_ms[-1])
        self._waiting.append(rows)
        self._waiting_rows += table.num_rows

    def settle(self) -> None:
        """Put in order what waits, if it is much; best called once the tables added are let go of."""
        if self._waiting_rows >= RUN_ROWS - RUN_ROWS // 8:  # nearly as many are enough: joining them takes time too
            self._close_run()

    def hand_over(self) -> Handed:
        """Spill all rows; no more may come."""
        self._close_run()
        self._kept.spill()
        self._notes.append(self._series.note())
        own = len(self._notes) - 1
        runs = [run if run.note >= 0 else msgspec.structs.replace(run, note=own) for run in self._kept.runs]
        self._kept.runs = runs
        return self._some(runs)

    def _some(self, runs: list[Run]) -> Handed:
        full = sorted(self.never_null())
        return Handed([r for r in runs if r.slices], self._notes, full, sorted(self._any), self.repeats)

    def take_over(self, handed: Handed) -> None:
        """Go on with what another sorter has spilled."""
        self._kept.runs += [msgspec.structs.replace(r, note=r.note + len(self._notes)) for r in handed.runs]
        self._notes += handed.notes
        self.repeats += handed.repeats
        self._any |= set(handed.spoken)
        self._spoken = set(handed.full) if self._spoken is None else self._spoken & set(handed.full)

    def given(self, day: int) -> Handed:
        """The rows of a day, spilled, for another sorter to take over; they stay here too."""
        self._close_run()
        self._kept.spill({piece.slice.day for piece in self._kept.held} - {day})
        assert not self._notes
        runs = [Run(run.file, [s for s in run.slices if s.day == day], 0) for run in self._kept.runs]
        full, spoken = sorted(self.never_null()), sorted(self._any)
        return Handed([run for run in runs if run.slices], [self._series.note()], full, spoken)

    def of_days(self, days: Sequence[int]) -> Handed:
        """What was spilled of some days."""
        runs = [Run(r.file, [s for s in r.slices if s.day in days], r.note) for r in self._kept.runs]
        return msgspec.structs.replace(self._some(runs), repeats=0)

    def drop(self, *days: int) -> None:
        """Let go of the rows of some days."""
        for day in days:
            self._kept.drop(day)

    def put_aside(self, kept: Collection[int]) -> None:
        """Spill all days but those that are kept, where they are much."""
        self._kept.spill_much(kept, MEMORY_BYTES // 4)

    def days(self) -> list[int]:
        """The days seen, as days since 1970, in order. No more rows after this."""
        self._close_run()
        return sorted({p.slice.day for p in self._kept.pieces()})

    def holds(self, day: int) -> bool:
        """Whether there is a row of a day."""
        self._close_run()
        return any(piece.slice.day == day for piece in self._kept.pieces())

    def devices_on(self, day: int) -> set[str]:
        """The devices that have rows of a day."""
        self._close_run()
        return {device for piece in self._kept.pieces() if piece.slice.day == day for device in piece.slice.devices}

    def rows_of_days(self) -> dict[int, int]:
        """How many rows each day has."""
        found: dict[int, int] = defaultdict(int)
        for piece in self._kept.pieces():
            found[piece.slice.day] += sum(piece.slice.counts)
        return found

    def never_null(self) -> set[str]:
        """The columns that every row so far has filled."""
        return self._spoken or set()

    def spoken(self) -> set[str]:
        """The columns that some row has filled."""
        return self._any

    def labels_met(self, *names: str) -> set[tuple[str | None, ...]]:
        """Some labels of all rows so far: the different sets of them."""
        found: set[tuple[str | None, ...]] = set()
        for note in (*self._notes, self._series.note()):
            texts = [[*note.texts.get(name, ()), None] for name in names]  # a row without one has code -1
            codes = zip(*(note.codes[name] for name in names), strict=True)
            found |= {tuple(words[code] for words, code in zip(texts, row, strict=True)) for row in codes}
        return found

    def chunks(self, day: int) -> Iterator[pa.Table]:
        """One day as tables of whole boards in order, each about CHUNK_ROWS long. Let go of one before the next: they
        are large.
        """
        self._close_run()
        pieces = [p for p in self._kept.pieces() if p.slice.day == day]
        for devices in shares_of(pieces, CHUNK_ROWS):
            yield self._gather(pieces, devices)

    def devices(self, shares: int) -> list[tuple[str, str]]:
        """The devices in `shares` shares of about equal rows, by the first and last of each; boards stay whole."""
        pieces = self._kept.pieces()
        rows = sum(sum(p.slice.counts) for p in pieces)
        return [(some[0], some[-1]) for some in shares_of(pieces, rows // shares + 1)]

    def of_devices(self, first: str, last: str) -> Handed:
        """What was spilled of some devices; slices that hold others too come along."""
        runs = [
            Run(r.file, [s for s in r.slices if s.devices[0] <= last and s.devices[-1] >= first], r.note)
            for r in self._kept.runs
        ]
        return msgspec.structs.replace(self._some(runs), repeats=0)

    def histories(self, first: str, last: str, rows: int) -> Iterator[list[tuple[int, pa.Table]]]:
        """Some devices, about `rows` rows at a time: all their days, the last day first, each in order."""
        pieces, by_day = self._kept.pieces(), defaultdict[int, list[Piece]](list)
        for piece in pieces:
            by_day[piece.slice.day].append(piece)
        for devices in shares_of(pieces, rows, first, last):
            found = [(day, self._gather(by_day[day], devices)) for day in sorted(by_day, reverse=True)]
            yield [(day, table) for day, table in found if table.num_rows]

    def _close_run(self) -> None:
        if not self._waiting:
            return
        rows = joined(sorted(self._waiting, key=lambda some: int(some.at_ms[0])))
        self._waiting, self._waiting_rows = [], 0
        codes, names = self._series.devices(rows.series)
        at_ms = rows.at_ms
        first_ms, order = int(at_ms.min()), None
        first_day = first_ms // MS_PER_DAY
        days = int(at_ms.max()) // MS_PER_DAY - first_day + 1
        key = codes if days == 1 else (at_ms // MS_PER_DAY - first_day) * len(names) + codes
        del at_ms
        if (key[1:] < key[:-1]).any():
            keys = days * len(names)
            order = order_by(key, keys) if keys < _MANY_KEYS else np.argsort(key, kind="stable")
            key = key.take(order)
        rows = rows.packed(order)
        if len(key) >= MANY_ROWS:
            rows, key = self._without_repeats(rows, key)
        self._kept.add(pieces_of(rows, key, first_ms, names, SLICE_ROWS))

    def _without_repeats(self, rows: Narrow, key: np.ndarray) -> tuple[Narrow, np.ndarray]:
        """Rows in order of key (device and day), without the repeated rows of keys that have many rows."""
        again = np.zeros(len(key), dtype=bool)
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        counts = np.diff(starts, append=len(key))
        many = counts >= MANY_ROWS
        for first, count in zip(starts[many].tolist(), counts[many].tolist(), strict=True):
            piece = self._series.wide(rows.at(first, count))
            again[first : first + count] = repeated(instants(piece), piece)
        self.repeats += int(again.sum())
        return (rows.taken(np.flatnonzero(~again)), key[~again]) if again.any() else (rows, key)

    def _gather(self, pieces: list[Piece], devices: list[str]) -> pa.Table:
        """The rows of some devices, in order."""
        # Mapped for this chunk only: what was touched would count as memory in use.
        files: Files = {}
        place, found = {name: i for i, name in enumerate(devices)}, dict[int, Sorted]()
        waiting, settled = 0, 0
        for piece in sorted(pieces, key=lambda p: p.slice.first_ms):
            note = piece.slice
            low, high = bisect_left(note.devices, devices[0]), bisect_right(note.devices, devices[-1])
            if low == high:
                continue
            counts, rows = note.counts[low:high], self._own(piece, files) if piece.rows is None else piece.rows
            starts = list(accumulate(counts[:-1], initial=piece.start + sum(note.counts[:low])))
            run = found.setdefault(id(rows), Sorted(rows, [], [], []))  # slices of a run in memory are of the same rows
            run.places.extend([place[d] for d in note.devices[low:high]])
            run.starts.extend(starts)
            run.counts.extend(counts)
            waiting += sum(counts)
            if waiting - settled >= max(8 * MANY_ROWS, settled):  # one device with a day's repeated rows in many runs
                one = self._distinct(together(list(found.values()))[0], place)
                found, waiting = {id(one.rows): one}, len(one.rows)
                settled = waiting
        if not found:
            return pa.table({})
        rows, first = together(list(found.values()))
        table = self._series.wide(rows)
        return table if rising(first, rows.at_ms) else in_order(table)

    def _own(self, piece: Piece, files: Files) -> Narrow:
        """The rows of a slice that was spilled, with the numbers its labels have here; `files`: those that are open."""
        run = self._kept.runs[piece.run]
        rows = read_back(run.file, piece.slice, files)
        if run.note >= 0:  # numbered elsewhere
            if run.note not in self._renumbered:
                self._renumbered[run.note] = self._series.numbers(self._notes[run.note])
            rows.columns[SERIES] = pa.array(self._renumbered[run.note][rows.series])
        return rows

    def _distinct(self, whole: Narrow, place: dict[str, int]) -> Sorted:
        """Distinct rows in order of device; `place`: of each device."""
        wide = self._series.wide(whole)
        again = repeated(instants(wide), wide)
        self.repeats += int(again.sum())
        whole = whole.taken(np.flatnonzero(~again))
        codes, names = self._series.devices(whole.series)
        counts = np.bincount(codes, minlength=len(names)).tolist()
        starts = list(accumulate(counts[:-1], initial=0))
        return Sorted(whole.taken(order_by(codes, len(names))), [place[name] for name in names], starts, counts)
