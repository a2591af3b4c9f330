"""When was a row read, where the file does not say it in full?

A file without any times: its first round is of the instant the user names, and each further round of a GPU comes one
interval later. A file with the time of day only: the user names the day of its first row, and the next one starts
where the clock goes back past midnight.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import NotSaid
from gpuledger.telemetry.mapping import Given
from gpuledger.units import MS_PER_DAY, MS_PER_S

_S_PER_DAY = MS_PER_DAY // MS_PER_S


class Untimed:
    """Gives the rows of one file, in their order, the times that the user's words mean."""

    def __init__(self, path: Path, given: Given) -> None:
        self._path = path
        self._at_ms = given.at_ms or 0
        self._every_ms = given.every_ms
        self._seen: dict[tuple[str | None, ...], int] = {}
        self._day = dt.datetime.fromtimestamp(self._at_ms / MS_PER_S, dt.UTC).date()
        self._last_s = -1

    def rounds(self, labels: list[pa.Array]) -> np.ndarray:
        """The instants of rows, in ms: as many intervals after the first as the GPU had rows before this one."""
        rows = zip(*(column.to_pylist() for column in labels), strict=True)
        count = np.empty(len(labels[0]), dtype=np.int64)
        for place, row in enumerate(rows):
            count[place] = before = self._seen.get(row, 0)
            self._seen[row] = before + 1
        if self._every_ms is None and count.any():
            raise NotSaid(
                self._path,
                "it has several rows of one GPU and no times",
                hint="say how far its rows are apart: add --every LENGTH, for example --every 1s",
            )
        return self._at_ms + count * (self._every_ms or 0)

    def dated(self, clock: pa.Array) -> pa.Array:
        """The times of day as times; a cell that is not one stays as it is."""
        words = clock.cast(pa.string()) if not pa.types.is_string(clock.type) else clock
        seconds = pc.fill_null(pc.cast(_seconds(words), pa.int64()), -1).to_numpy(zero_copy_only=False)
        known = np.flatnonzero(seconds >= 0)
        days = np.zeros(len(seconds), dtype=np.int64)
        if len(known):
            series = np.concatenate([[self._last_s if self._last_s >= 0 else seconds[known[0]]], seconds[known]])
            days[known] = np.cumsum(np.diff(series) < -_S_PER_DAY // 2)
            self._last_s = int(series[-1])
        texts = [(self._day + dt.timedelta(days=d)).isoformat() for d in range(int(days.max(initial=0)) + 1)]
        self._day += dt.timedelta(days=len(texts) - 1)
        return pc.binary_join_element_wise(pa.array(texts).take(pa.array(days)), words, " ")


def _seconds(clock: pa.Array) -> pa.Array:
    """Seconds since midnight of `23:59:58`, with or without a fraction; NULL for anything else."""
    parts = pc.extract_regex(pc.utf8_trim_whitespace(clock), r"^(?P<h>\d{1,2}):(?P<m>\d{2}):(?P<s>\d{2})(?:\.\d+)?$")
    hours, minutes, seconds = (pc.struct_field(parts, name).cast(pa.int64()) for name in "hms")
    return pc.add(pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60)), seconds)
