"""How are the tables of a day written: a piece at a time, aside, and all there or none?"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.ledger import fleet_hours, gpu_hours, lines
from gpuledger.ledger.book_files import GROUP_ROWS, LASTING, TEMPORARY, Writer, write_small, write_to
from gpuledger.ledger.daily import fold_days

if TYPE_CHECKING:
    from gpuledger.ledger.store import Ledger

# In the names of files that are being written: what follows is the writer's own.
ASIDE = "~"
TABLES = ("lines", "spells", "pods")
DAYS = "days"
HOURS = "hours"
GPU_HOURS = "gpu-hours"
_WRITTEN = (*TABLES, DAYS, GPU_HOURS)


class DayWriter:
    """Writes the tables of one day a piece at a time, so that a day never has to be in memory whole."""

    def __init__(
        self,
        ledger: Ledger,
        day: str,
        generation: int,
        piece: int = 0,
        without: frozenset[str] = frozenset(),
        *,
        lasting: bool = True,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        """`without`: columns of lines that are zero throughout; readers take what a file lacks as zero.

        `lasting`: whether the books outlive this run, so that their files must be safe on the disk. `left_out`: tables
        that will not be read.
        """
        self._without, self._store, own = without, ledger.lake.store, secrets.token_hex(8)
        self._lasting, self._left_out = lasting, left_out
        kind = LASTING if lasting else TEMPORARY
        self._places = {name: ledger.file(day, generation, name, piece, kind) for name in (*_WRITTEN, HOURS)}
        # Written aside: where a task runs twice, each has files of its own, and the last to be whole stays.
        asides = {name: self._store.aside(place) for name, place in self._places.items()}
        self._files = {n: f.with_name(f.name.replace(".", f"{ASIDE}{own}.", 1)) for n, f in asides.items()}
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in _WRITTEN}
        self._writers: dict[str, Writer] = {}
        self._hours: list[pa.Table] = []
        self._of_hours: list[pa.Table] | None = None
        self.samples = 0

    def __enter__(self) -> DayWriter:
        next(iter(self._files.values())).parent.mkdir(parents=True, exist_ok=True)
        return self

    def add(self, name: str, table: pa.Table) -> None:
        """Take some rows; they come in order of device."""
        if name == "lines":
            table = lines.coded(table)
            self.samples += int(pc.sum(table["samples"]).as_py() or 0)
            self.add(DAYS, fold_days(table))
            self.add(GPU_HOURS, gpu_hours.of_lines(table))
            self._of_hours = [*(self._of_hours or ()), table]
            if sum(t.num_rows for t in self._of_hours) >= GROUP_ROWS:
                self._add_hours()
        if name in self._left_out:
            return
        waiting = self._waiting[name]
        waiting.append(table)
        if name not in self._writers or sum(t.num_rows for t in waiting) >= GROUP_ROWS:
            self._flush(name)

    def _add_hours(self) -> None:
        """Add lines up by hour."""
        if self._of_hours:
            self._hours.append(fleet_hours.of_lines(pa.concat_tables(self._of_hours)))
            self._of_hours = []

    def _flush(self, name: str) -> None:
        tables = self._waiting[name]
        rests = name not in self._writers and sum(t.num_rows for t in tables) < GROUP_ROWS
        if name in ("lines", DAYS, GPU_HOURS):
            tables = [lines.as_written(t, self._without) for t in tables]
        table = pa.concat_tables(tables).unify_dictionaries()
        if name not in self._writers:
            self._writers[name] = write_to(self._files[name], table.schema, noted=("hour_ms", "start_ms", "gpu_uuid"))
            if rests:
                return  # opened so that even an empty table has a file; its rows wait for more
        self._writers[name].write_table(table)
        self._waiting[name] = []

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._finish(whole=kind is None)
        finally:
            for file in self._files.values():
                file.unlink(missing_ok=True)

    def _finish(self, *, whole: bool) -> None:
        """Write what waits, and give the files their names; without `whole` only let go of them."""
        if not whole:
            self._writers.clear()
            return
        for name, writer in self._writers.items():
            if any(t.num_rows for t in self._waiting[name]):
                self._flush(name)
            writer.close()
        made = list(self._writers)
        if self._of_hours is not None:
            self._add_hours()
            found = fleet_hours.together(pa.concat_tables(self._hours))
            write_small(self._files[HOURS], fleet_hours.as_written(found))
            made.append(HOURS)
        if self._lasting:
            self._store.add([(self._files[name], self._places[name]) for name in made])
            return
        for name in made:
            self._files[name].replace(self._places[name])
