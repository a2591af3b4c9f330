"""Source: `*.watts` files, one line `2026-01-20T00:00:00Z GPU-1 412` per reading."""

from collections.abc import Iterator
from pathlib import Path

from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Seen, sure
from gpuledger.telemetry.formats.logs import Row, Wrong, of_rows
from gpuledger.telemetry.unpacking import text_lines


def score(head: Head) -> Seen:
    """By its suffix."""
    return sure("its name ends in .watts" if head.path.suffix == ".watts" else None)


def rows(path: Path) -> Iterator[Row | Wrong]:
    """A row per line, its columns with their units; a line without three words is reported by its number."""
    for number, line in enumerate(text_lines(path), 1):
        words = line.split()
        yield dict(zip(("time", "uuid", "power [W]"), words, strict=True)) if len(words) == 3 else Wrong(number, line)


FORMATS.register("watts_log")(Format("watts log", Kind.TELEMETRY, score, lambda path: of_rows(path, "watts log", rows)))
