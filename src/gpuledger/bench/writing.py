"""How are results written so that a crash loses nothing that was answered?

The header goes first, each line is appended whole and reaches the disk within a second. At the end a line of kind end
is appended, then the file is replaced by the same one with a completed header: at every instant it can be read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from gpuledger.bench.record_fields import line_of
from gpuledger.bench.records import VERSION, Request
from gpuledger.errors import FileFault, map_os_error
from gpuledger.lake.layout import write_atomically

SYNC_EVERY_S = 1.0


class ResultWriter:
    """One file of results being written."""

    def __init__(self, path: str | Path, header: Mapping[str, Any], *, sync_s: float = SYNC_EVERY_S) -> None:
        self.path = Path(path)
        self._header = {"v": VERSION, "kind": "run", **header, "wall_s": None}
        self._sync_s, self._synced_s = sync_s, time.monotonic()
        self.lines = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        except FileExistsError as error:
            hint = "name another file with --out, or move this one away: results are never overwritten"
            raise FileFault(path, "it exists already", hint=hint) from error
        except OSError as error:
            raise map_os_error(error, path, "write results") from error
        self.append(msgspec.json.encode(self._header) + b"\n")
        self.sync()

    def write(self, request: Request) -> None:
        """One request; it is on the disk within a second or so, and safe from a crash of this program at once."""
        self.append(msgspec.json.encode(line_of(request)) + b"\n")
        self.lines += 1

    def append(self, raw: bytes) -> None:
        """Whole lines, as bytes, handed to the system at once."""
        try:
            self._file.write(raw)
            self._file.flush()
            if time.monotonic() - self._synced_s >= self._sync_s:
                self.sync()
        except OSError as error:
            raise map_os_error(error, self.path, "write results") from error

    def sync(self) -> None:
        """Everything so far reaches the disk."""
        os.fsync(self._file.fileno())
        self._synced_s = time.monotonic()

    def finish(self, wall_s: float, **end: Any) -> None:
        """The run is over: the end line, then the header with what is known now."""
        known = {"wall_s": wall_s, **end}
        self.append(msgspec.json.encode({"v": VERSION, "kind": "end", **known}) + b"\n")
        try:
            self.sync()
            self._file.close()
            _, _, rest = self.path.read_bytes().partition(b"\n")
            write_atomically(self.path, msgspec.json.encode({**self._header, **known}) + b"\n" + rest)
        except OSError as error:
            raise map_os_error(error, self.path, "write results") from error

    def __enter__(self) -> ResultWriter:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self._file.close()
