"""How do real processes hold a fake GPU?

A process holds the GPU while a file named after its number lies in a folder: `hold(folder)` puts it there. As with a
real driver, a process that has ended holds nothing, even before anybody has collected its exit code.

    Board(script, pids=Holding(folder))
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gpuledger.devices.attribution import status

_ENDED = frozenset("ZX")


def hold(folder: str | Path, memory_bytes: int | None = None) -> Path:
    """This process holds the GPU from now on, until the file is removed or the process ends."""
    file = Path(folder) / str(os.getpid())
    file.write_text("" if memory_bytes is None else str(memory_bytes))
    return file


class Holding:
    """Who holds the GPU of a folder now, with its memory where that is known."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def __call__(self) -> dict[int, int | None]:
        found: dict[int, int | None] = {}
        for file in sorted(self._folder.iterdir()):
            here = status(int(file.name))
            if here is not None and here.state not in _ENDED:
                with contextlib.suppress(FileNotFoundError):  # let go just now
                    text = file.read_text()
                    found[here.pid] = int(text) if text else None
        return found
