"""Which rows could not be taken, from where, and why?"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from gpuledger.telemetry.convert import Faults

FIELDS = ("file", "row", "reason", "column", "value")
CONFLICT = "conflicts_with_another_row"
CLOSED_DAY = "day_is_closed"
OVER_POWER = "power_over_twice_the_board"
WRONG_CELLS = "wrong_number_of_cells"


class Rejects:
    """Counts rejected rows by reason and keeps each in a CSV file, written only if there is one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
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
        self._rows.append((source, row, reason, column, value))
        if len(self._rows) >= 10_000:
            self.flush()

    def add_faults(self, source: str, offset: int, faults: Faults) -> None:
        """Note the faults of one batch whose first row is number `offset`."""
        for row, reason, column, value in zip(faults.row, faults.reason, faults.column, faults.value, strict=True):
            self.add(source, offset + row + 1, reason, column, value)

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
            writer.writerows(self._rows)
        self._rows = []
