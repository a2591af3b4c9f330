"""How do metric series (a name, labels, points in time) become rows of one device at one instant?

exporters   which metric of which exporter fills which column, in what unit
labels      whose labels are these: the workload's, or those of the exporter that was scraped
pivot       from series to rows
"""

from array import array
from collections.abc import Mapping

import numpy as np

# No instant is as far from 1970 as this, by a hundred thousand years; beyond it a time is another number.
FARTHEST_MS = 1 << 52


class Points:
    """Series by their labels, and their points in the order they came: 20 bytes a point."""

    def __init__(self) -> None:
        self.labels: list[dict[str, str]] = []
        self._known: dict[frozenset[tuple[str, str]], int] = {}
        self._series, self._at_ms, self._values = array("i"), array("q"), array("d")
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._series) + sum(len(at) for _, at, _ in self._blocks)

    def series(self, labels: Mapping[str, str]) -> int:
        """The number of the series with these labels, the metric's name among them; empty labels are none."""
        key = frozenset((name, text) for name, text in labels.items() if text)
        if key not in self._known:
            self._known[key] = len(self.labels)
            self.labels.append(dict(key))
        return self._known[key]

    def add(self, series: int, at_ms: int, value: float) -> None:
        """One point."""
        self._series.append(series)
        self._at_ms.append(at_ms)
        self._values.append(value)

    def add_block(self, series: int, at_ms: np.ndarray, values: np.ndarray) -> None:
        """Many points of one series."""
        self._blocks.append((np.full(len(at_ms), series, np.int32), at_ms, values))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The series, the instant in ms and the value of every point."""
        lines = (
            np.frombuffer(self._series, np.int32),
            np.frombuffer(self._at_ms, np.int64),
            np.frombuffer(self._values, np.float64),
        )
        series, at_ms, values = (np.concatenate(parts) for parts in zip(lines, *self._blocks, strict=True))
        return series, at_ms, values
