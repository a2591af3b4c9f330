"""Is a folder on a share that should be mounted and is not?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# What should be mounted, and what is.
TABLE, MOUNTED = Path("/etc/fstab"), Path("/proc/self/mountinfo")
_IN_TABLE, _IN_MOUNTED = 1, 4
_ESCAPED = re.compile(r"\\([0-7]{3})")


def not_mounted(folder: Path) -> Path | None:
    """The mount point that a folder lies below by the table of file systems, where nothing is mounted there now."""
    place = folder.resolve()
    due = [point for point in _points(TABLE, _IN_TABLE) if point != Path("/") and place.is_relative_to(point)]
    deepest = max(due, key=lambda point: len(point.parts), default=None)
    mounted = set(_points(MOUNTED, _IN_MOUNTED))
    return None if deepest is None or not mounted or deepest in mounted else deepest


def _points(file: Path, field: int) -> Iterator[Path]:
    """The mount points in a table; none where the table cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > field and not fields[0].startswith("#"):
            point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[field])
            if point.startswith("/"):
                yield Path(point).resolve()
