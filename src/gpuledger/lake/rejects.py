"""Which rows could not be taken, from where, and why?"""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.errors import FileFault
from gpuledger.lake.clocks import Ahead
from gpuledger.lake.layout import Lake
from gpuledger.lake.rows import groups
from gpuledger.lake.sorting.order import ARRIVAL, device_codes, series_codes
from gpuledger.plain_text import csv_cell
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import NOT_A_NUMBER, WRONG_TIME
from gpuledger.telemetry.mapping.checks import START_A_MAP
from gpuledger.units import utc

FIELDS = ("file", "row", "reason", "column", "value")
CONFLICT = "conflicts_with_another_row"
CLOSED_DAY = "day_is_closed"
AHEAD = "later_than_now"
OVER_POWER = "power_over_twice_the_board"
WRONG_CELLS = "wrong_number_of_cells"
_LOGGED = 10_000
_DECIMAL_COMMA = re.compile(r"'-?\d+,\d+'")
# From this many on, rejected rows are counted by reason and no longer listed: a small file may hold very many.
LISTED = 1_000_000


Rejected = tuple[str, int, str, str, str]


class RejectLog:
    """Rejected rows as they are found, kept in a file until all rows are read: file, row, reason, column, value.

    `more`: by reason how many came when it was full.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self.more: Counter[str] = Counter()
        self._rows: list[Rejected] = []

    @property
    def room(self) -> int:
        """How many rows it still takes."""
        return max(LISTED - self.counts.total() + self.more.total(), 0)

    def count(self, more: Counter[str]) -> None:
        """Note rows by their reason only."""
        self.counts += more
        self.more += more

    def add(self, row: Rejected) -> None:
        """Note one row."""
        self.counts[row[2]] += 1
        self._rows.append(row)
        if len(self._rows) >= _LOGGED:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._rows:
            with self.file.open("ab") as out:
                out.write(msgspec.json.encode(self._rows) + b"\n")
            self._rows = []


def logged(file: str) -> Iterator[Rejected]:
    """The rows of a log, in the order they were found."""
    with contextlib.suppress(FileNotFoundError), Path(file).open("rb") as log:
        for line in log:
            yield from msgspec.json.decode(line, type=list[Rejected])


class Rejects:
    """Counts rejected rows by reason and lists them in a CSV file, written only if there is one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.listed = 0
        self._rows: list[tuple[str, int, str, str, str]] = []
        self._started = False

    @property
    def total(self) -> int:
        """How many rows in all."""
        return sum(self.counts.values())

    def add(self, source: str, row: int, reason: str, column: str, value: str) -> None:
        """Note one row; `row` counts from 1 below the header."""
        self.counts[reason] += 1
        self.examples.setdefault(
            reason, f"{source} row {row}: {column} = {value!r}" if column else f"{source} row {row}"
        )
        if self.listed >= LISTED:
            return
        self.listed += 1
        self._rows.append((source, row, reason, column, value))
        if len(self._rows) >= _LOGGED:
            self.flush()

    def keep(self, lake: Lake, number: int) -> str | None:
        """Keep the list in the lake, under this number or the next that is free; where it lies."""
        if not self.total:
            return None
        target = lake.root / "rejects" / f"rejects-{number:08d}.csv"
        while target.exists():
            number += 1
            target = target.with_name(f"rejects-{number:08d}.csv")
        lake.store.add([(self.file, target)])
        return str(target)

    def flush(self) -> None:
        """Write what is waiting."""
        if not self._rows:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            if not self._started:
                writer.writerow(FIELDS)
                self._started = True
            writer.writerows([csv_cell(value) for value in row] for row in self._rows)
        self._rows = []


Place = tuple[str, int]


def explained_conflicts(
    chunk: pa.Table, conflicts: pa.Table, place_of: Callable[[int], Place]
) -> Iterator[tuple[Place, str]]:
    """For each row that contradicts another: its file and row, and in words what it contradicts and why that may be.

    `chunk`: all rows of these devices in this import. `place_of`: the file and row of an arrival number.
    """
    if not conflicts.num_rows:
        return
    went_back = _turned_back_at(chunk)
    at = conflicts[schema.TIME].to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(groups(conflicts))) + 1).tolist(), conflicts.num_rows]
    arrivals, devices = conflicts[ARRIVAL].to_numpy(), conflicts["gpu_uuid"]
    for first, last in pairwise(edges):
        group = sorted(arrivals[first:last].tolist())
        where = f"{devices[first].as_py()} at {utc(int(at[first])):%Y-%m-%dT%H:%M:%SZ}"
        back = len({went_back[a] for a in group}) > 1
        for arrival in group:
            other = next((a for a in group if a != arrival), None)
            words = "a row of an earlier import" if other is None else "row {1} of {0}".format(*place_of(other))
            why = "; between them the clock was set back, or the period is written twice" if back else ""
            yield place_of(arrival), f"{where}: {words} has other readings{why}"


def _turned_back_at(chunk: pa.Table) -> dict[int, int]:
    """By arrival number: how often the time of the row's series had gone back by then, in the order of arrival."""
    codes, _ = device_codes(chunk)
    series = series_codes(chunk)
    arrival = chunk[ARRIVAL].to_numpy()
    order = np.lexsort((arrival, codes) if series is None else (arrival, series, codes))
    back = np.diff(chunk[schema.TIME].to_numpy()[order], prepend=0) < 0
    return dict(zip(arrival[order].tolist(), np.cumsum(back).tolist(), strict=True))


def no_usable_row(path: str, rejects: Rejects, before: Counter[str], ahead: Sequence[Ahead]) -> FileFault:
    """The fault of a file whose rows were all rejected; `before`: the rejected rows of the files before it."""
    found = rejects.counts - before
    if set(found) == {AHEAD}:
        hint = f"check the clock of {ahead[0].host or 'its host'}, or --tz if the file has local times"
        last = f"{utc(max(a.last_ms for a in ahead)):%Y-%m-%d %H:%M} UTC"
        return FileFault(path, f"all its rows are later than now, up to {last} (of {ahead[0].words})", hint=hint)
    if set(found) == {CLOSED_DAY}:
        return FileFault(path, "all its rows are of days that are closed", hint="import into another lake: --lake DIR")
    text = ", ".join(f"{n} x {reason}" for reason, n in found.most_common(3)) or "no rows"
    example = next((rejects.examples.get(reason, "") for reason in found if reason not in before), "")
    more = f"; to name how times are written, {START_A_MAP}" if set(found) == {WRONG_TIME} else ""
    if set(found) == {NOT_A_NUMBER} and _DECIMAL_COMMA.search(example):
        more = "; write decimals with a point: pandas.read_csv(FILE, sep=None, decimal=',').to_csv('points.csv')"
    hint = f"look at {example}{more}" if example else "check the export"
    return FileFault(path, f"not one usable row ({text})", hint=hint)
