"""A file: one line of JSON per event. A line is written once, whatever is killed in between.

Every line is synced before its delivery is noted. Killed between the two, the watcher finds the id at the end of the
file and does not write it again; killed within a line, it writes the rest of it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gpuledger.errors import InputError
from gpuledger.live.alerts.event import Event
from gpuledger.live.alerts.receiver import KINDS, Receiver, Undelivered
from gpuledger.plain_text import json_text

_TAIL = 1 << 20  # where an id is looked for: thousands of events


@KINDS.register("file")
class File(Receiver, frozen=True, kw_only=True):
    """`path`: the file; made where it is missing, with the folder it is in."""

    path: str

    def check(self) -> None:
        """A folder is not a file."""
        if not self.path or Path(self.path).is_dir():
            raise InputError(f"path = {self.path!r} is not a file", hint="name a file: path = 'alerts.jsonl'")

    def send(self, event: Event, timeout_s: float) -> None:  # noqa: ARG002  (a disk is not asked to hurry)
        """Write the line, unless it is there."""
        line = json_text(event.as_json()).encode() + b"\n"
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                self._append(handle, line, event.id)
            finally:
                os.close(handle)
        except OSError as error:
            raise Undelivered(f"{self.path}: {error.strerror or error}") from error

    def _append(self, handle: int, line: bytes, name: str) -> None:
        length = os.fstat(handle).st_size
        tail = os.pread(handle, _TAIL, max(0, length - _TAIL))
        whole, _, torn = tail.rpartition(b"\n")
        if b'"id": "' + name.encode() + b'"' in whole:
            return
        if torn:
            line = line[len(torn) :] if line.startswith(torn) else b"\n" + line
        written = 0
        while written < len(line):
            written += os.write(handle, line[written:])
        os.fsync(handle)
