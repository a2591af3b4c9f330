"""How are results read line by line, faults included, and written so that a crash loses no answer?

    {"v": 1, "kind": "run", "planned": {node: requests}, "nodes": {node: {"gpu", "gpus"}}, "baseline", "wall_s"}
    {"v": 1, "kind": "request", "node", "request", "start_s", "ttft_s", "latency_s", ..., "ok", "error"}   per request
    {"v": 1, "kind": "end", "wall_s": ...}                               the run came to its end; a killed one has none

A header begins a run, so files can be concatenated. Unknown fields are kept in `more`. A line that cannot be used
costs only itself: it is named in `faults`, with its node where it has one. When a run ends, the file is replaced by
the same one with a completed header; it can be read at every instant.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from gpuledger.bench.record_fields import line_of, request_of, run_of
from gpuledger.bench.records import VERSION, LineFault, Request, Run
from gpuledger.bounds import read_whole
from gpuledger.errors import FileFault, map_os_error
from gpuledger.lake.layout import write_atomically

SYNC_EVERY_S = 1.0
EXISTS = "name another file, or move this one away: results are never overwritten"
_HUGE = re.compile(rb"\d{300}")
_NODE = re.compile(rb'"node"\s*:\s*"([^"\\]{1,200})"')


def read_results(path: str | Path) -> tuple[Run, ...]:
    """Every run of a file; a file without one usable line is refused."""
    path = Path(path)
    try:
        raw = read_whole(path)
    except OSError as error:
        raise map_os_error(error, path, "read results") from error
    return parse_results(raw, str(path))


def read_run(path: str | Path) -> Run:
    """The only run of a file."""
    runs = read_results(path)
    if len(runs) > 1:
        hint = "give each run its own file: cut this one before each line of kind run"
        raise FileFault(path, f"it holds {len(runs)} runs, expected one", hint=hint)
    return runs[0]


def parse_results(raw: bytes, name: str) -> tuple[Run, ...]:
    """The runs in the bytes of a file called `name`."""
    made: list[_Draft] = []
    early: list[LineFault] = []
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = _decoded(line, number, whole=number < len(lines))
        if isinstance(found, LineFault):
            (made[-1].faults if made else early).append(found)
            continue
        if found["kind"] == "run" or not made:
            made.append(_Draft(name, early))
            early = []
        made[-1].take(found, number)
    if not made:
        reasons = "; ".join(f"line {f.line}: {f.why}" for f in early[:3]) or "the file is empty"
        hint = "write results with gpuledger bench, or see docs/benchmarking.md for the format"
        raise FileFault(name, f"no line of it can be used: {reasons}", hint=hint)
    return tuple(draft.run() for draft in made)


def _decoded(line: bytes, number: int, *, whole: bool) -> dict[str, Any] | LineFault:
    """One line as a mapping of version 1, or why it is not one."""
    match = _NODE.search(line)
    node = match[1].decode("utf-8", "replace") if match else ""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return LineFault(number, node, f"{'not JSON' if whole else 'the last line is cut short'}: {error}")
    if not isinstance(found, dict) or _HUGE.search(line):
        return LineFault(number, node, "not a JSON object of numbers within 300 digits")
    version = found.get("v")
    if isinstance(version, bool) or not isinstance(version, int):
        return LineFault(number, node, f'no version: "v" is {version!r}, {VERSION} is read')
    if version != VERSION:
        age = "newer than" if version > VERSION else "not one"
        return LineFault(number, node, f"version {version} is {age} this gpuledger reads ({VERSION})")
    if found.get("kind") not in ("run", "request", "end"):
        return LineFault(number, node, f"kind {found.get('kind')!r} is none of run, request, end")
    return found


class _Draft:
    """A run while its lines are read."""

    def __init__(self, file: str, faults: Iterable[LineFault]) -> None:
        self.file, self.faults = file, list(faults)
        self.header: dict[str, Any] = {}
        self.end: dict[str, Any] | None = None
        self.requests: dict[tuple[str, int | str], Request] = {}

    def take(self, found: dict[str, Any], number: int) -> None:
        if found["kind"] == "run":
            self.header = found
        elif found["kind"] == "end":
            self.end = found
        else:
            request, faults = request_of(found, number)
            self.faults += faults
            if request is None:
                return
            key = (request.node, request.request)
            if key in self.requests:
                self.faults.append(LineFault(number, request.node, f"request {request.request} has a line already"))
                return
            self.requests[key] = request

    def run(self) -> Run:
        return run_of(self.file, self.header, self.end, tuple(self.requests.values()), self.faults)


class ResultWriter:
    """One file of results being written: the header first, then whole lines that reach the disk within a second."""

    def __init__(self, path: str | Path, header: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._header = {"v": VERSION, "kind": "run", **header, "wall_s": None}
        self._synced_s = time.monotonic()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        except FileExistsError as error:
            raise FileFault(path, "it exists already", hint=EXISTS) from error
        except OSError as error:
            raise map_os_error(error, path, "write results") from error
        self.append(msgspec.json.encode(self._header) + b"\n")
        self._sync()

    def write(self, request: Request) -> None:
        """One request; it is safe from a crash of this program at once, and on disk within a second or so."""
        self.append(msgspec.json.encode(line_of(request)) + b"\n")

    def append(self, raw: bytes) -> None:
        """Whole lines, as bytes, handed to the system at once."""
        try:
            self._file.write(raw)
            self._file.flush()
            if time.monotonic() - self._synced_s >= SYNC_EVERY_S:
                self._sync()
        except OSError as error:
            raise map_os_error(error, self.path, "write results") from error

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced_s = time.monotonic()

    def finish(self, wall_s: float, **end: Any) -> None:
        """End the run: append the end line, then complete the header."""
        known = {"wall_s": wall_s, **end}
        self.append(msgspec.json.encode({"v": VERSION, "kind": "end", **known}) + b"\n")
        try:
            self._sync()
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
        self._file.close()
