"""How are the series of a file handed to the import?"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.not_read import metrics_note
from gpuledger.telemetry.requests import RECORD
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.exporters import NAME, exporters, is_needless
from gpuledger.telemetry.series.pivot import Pivot
from gpuledger.telemetry.shares import note as shares_unknown
from gpuledger.units import some, utc

BATCH_ROWS = 1 << 18
MOST_WRONG_LINES = 1_000_000
SHOWN_CHARS = 80
# What the name of a metric begins with: whose it is.
_START = re.compile(r"[^_:]*[_:]?")
# Clocks of hosts and of this machine may differ by this much before it is worth a word.
SKEW_MS = 300_000


# The file read last, until its rows were taken: an import opens a file several times.
_last: dict[tuple[Path, int, int], Opened] = {}


def read_once(path: Path, read: Callable[[Path], Opened]) -> Opened:
    """The file as it was read just before, where it is still the same, else read now."""
    try:
        found = path.stat()
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    key = (path, found.st_mtime_ns, found.st_size)
    if key not in _last:
        _last.clear()
        _last[key] = read(path)
    return _last[key]


def opened(path: Path, made: Pivot, wrong: list[tuple[int, str]], what: str = "a file of metrics") -> Opened:
    """The rows of a pivot as the import takes them. `what`: the kind of file, for one that has no reading of a GPU."""
    if not made.columns:
        raise _no_reading(path, made.points, what)
    notes = [*made.notes, *_future(made), *metrics_note(n for n in made.not_read if not is_needless(n))]

    def batches(columns: list[str], _labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for rows in made.batches():
            yield from pa.Table.from_batches([rows]).select(columns).to_batches(BATCH_ROWS)
        _last.clear()
        if made.contradictions:
            notes.append(
                f"{made.contradictions} readings came twice with different values at one instant and are left out"
            )
        notes.extend(shares_unknown(name) for name in sorted(made.unclear))

    found = Opened(made.names, batches, None, wrong, text=made.times is not None, mapping=made.mapping(), notes=notes)
    found.not_read = made.not_read
    return found


def _future(made: Pivot) -> list[str]:
    """A note on times that have not come yet: a clock is wrong."""
    if not made.timed or made.times is not None or not len(made.points):
        return []
    _, at_ms, _ = made.points.arrays()
    late = at_ms[(at_ms > time.time() * 1000 + SKEW_MS) & (at_ms <= schema.columns()[schema.TIME].max)]
    if not len(late):
        return []
    return [f"{len(late)} points are later than now, up to {utc(int(late.max())):%Y-%m-%dT%H:%MZ}: check the clocks"]


def _no_reading(path: Path, points: Points, what: str) -> FileFault:
    names = sorted({labels[NAME] for labels in points.labels if NAME in labels}, key=lambda n: (is_needless(n), n))
    if not names:
        return FileFault(path, "it has no metric with a value", hint="check the page or the query that wrote it")
    starts = list(dict.fromkeys(_START.match(name)[0] + "*" for name in names))  # type: ignore[index]
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    why = f"it is {what} ({some(starts)}): none of its metrics ({shown}) is a reading of a GPU"
    return FileFault(path, why, hint=f"record samples: {RECORD}; or save a page of {', '.join(exporters())}")


__all__ = ["MOST_WRONG_LINES", "SHOWN_CHARS", "opened", "read_once"]
