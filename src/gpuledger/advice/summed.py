"""What do many stretches add up to? Their sums are kept by column: a row of them is looked up, not stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpuledger.ledger.read.adding import exact_total


class Summed:
    """Whole numbers by column, a row for each stretch; of columns in `most` -1 is unknown, and the largest counts."""

    def __init__(self, columns: Mapping[str, np.ndarray], most: Collection[str]) -> None:
        self.columns, self.most = columns, frozenset(most)
        self._figures = {name: values.data for name, values in columns.items()}  # gives Python's own numbers
        self._zero = frozenset(name for name, values in columns.items() if not values.any())

    def of(self, row: int, name: str) -> int | None:
        """One figure."""
        found: int = self._figures[name][row]
        return None if found < 0 and name in self.most else found

    def added(self, rows: Sequence[int]) -> dict[str, Any]:
        """Some rows added up; of what is a maximum, the largest."""
        some, out = np.array(rows, dtype=np.int64), dict[str, Any]()
        for name, values in self.columns.items():
            if name in self.most:
                largest = int(values[some].max(initial=-1))
                out[name] = None if largest < 0 else largest
            else:
                out[name] = 0 if name in self._zero else exact_total(values[some])
        return out


class SumsRow(Mapping[str, Any]):
    """The sums of one stretch."""

    __slots__ = ("row", "table")

    def __init__(self, table: Summed, row: int) -> None:
        self.table, self.row = table, row

    def __getitem__(self, name: str) -> int | None:
        return self.table.of(self.row, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.columns)

    def __len__(self) -> int:
        return len(self.table.columns)
