"""How are the series of a file handed to the import?"""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.exporters import NAME, exporters
from gpuledger.telemetry.series.pivot import Pivot
from gpuledger.telemetry.sources import Opened
from gpuledger.telemetry.unpacking import not_utf8
from gpuledger.units import utc

GZIP = b"\x1f\x8b"
BATCH_ROWS = 1 << 18
MOST_WRONG_LINES = 1_000_000
SHOWN_CHARS = 80
# Clocks of hosts and of this machine may differ by this much before it is worth a word.
SKEW_MS = 300_000


def open_bytes(path: Path) -> IO[bytes]:
    """The file, unpacked where it is gzipped."""
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == GZIP
        return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        raise map_os_error(error, path, "read") from error


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file; a fault where it is not UTF-8 or cannot be unpacked."""
    try:
        with open_bytes(path) as file:
            for line in file:
                yield line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    except (OSError, EOFError, zlib.error) as error:
        raise FileFault(path, f"cannot be read: {error}", hint="copy or export the file again") from error


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


def opened(path: Path, made: Pivot, wrong: list[tuple[int, str]]) -> Opened:
    """The rows of a pivot as the import takes them."""
    if not made.columns:
        raise _no_reading(path, made.points)
    notes = [*made.notes, *_future(made)]

    def batches(columns: list[str], _labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for rows in made.batches():
            yield from pa.Table.from_batches([rows]).select(columns).to_batches(BATCH_ROWS)
        _last.clear()
        if made.contradictions:
            notes.append(
                f"{made.contradictions} readings came twice with different values at one instant and are left out"
            )

    return Opened(made.names, batches, None, wrong, text=made.times is not None, mapping=made.mapping(), notes=notes)


def _future(made: Pivot) -> list[str]:
    """A note on times that have not come yet: a clock is wrong."""
    if not made.timed or made.times is not None or not len(made.points):
        return []
    _, at_ms, _ = made.points.arrays()
    late = at_ms > time.time() * 1000 + SKEW_MS
    if not late.any():
        return []
    return [
        f"{int(late.sum())} points are later than now, up to {utc(int(at_ms.max())):%Y-%m-%dT%H:%MZ}: check the clocks"
    ]


def _no_reading(path: Path, points: Points) -> FileFault:
    names = sorted({labels[NAME] for labels in points.labels if NAME in labels})
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    known = ", ".join(exporters())
    if names:
        why, hint = f"none of its metrics ({shown}) is a reading of a GPU", f"export the metrics of {known}"
    else:
        why, hint = "it has no metric with a value", "check the page or the query that wrote it"
    return FileFault(path, why, hint=hint)


__all__ = ["MOST_WRONG_LINES", "SHOWN_CHARS", "open_bytes", "opened", "read_once", "text_lines"]
