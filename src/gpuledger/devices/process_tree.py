"""Which processes belong to a run, even after the parents that started them have ended?

A process belongs to the tree of a root when an ancestor does. Processes whose parents have ended are recognized in
other ways: they were seen in the tree before, they share a session or process group that the tree opened, or they
carry the run's variable in their environment. A process number that was used again is another process.
"""

from __future__ import annotations

import contextlib
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.devices.attribution import command_name

# Set for a recorded command; whatever it starts inherits it.
RUN_VARIABLE = "GPULEDGER_RUN_ID"
_PROC = Path("/proc")
_LONGEST_LINE = 64


@dataclass(frozen=True)
class Status:
    """What the kernel says about a process. `started` tells two processes with the same number apart."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int


def status(pid: int, proc: Path = _PROC) -> Status | None:
    """The status of a process; None where it is not visible from here."""
    # The command in brackets may hold spaces and brackets itself: fields count from the last one.
    _, _, rest = read_bytes(proc / str(pid) / "stat").decode(errors="replace").rpartition(")")
    fields = rest.split()
    if len(fields) < 2:
        return None
    parent, group, session, started = (int(fields[i]) if len(fields) > i else 0 for i in (1, 2, 3, 19))
    return Status(pid, fields[0], parent, group, session, started)


def lineage(pid: int, proc: Path = _PROC) -> list[Status]:
    """A process and its ancestors, as far as they are visible, the process first."""
    found: list[Status] = []
    while pid > 0 and len(found) < _LONGEST_LINE and (here := status(pid, proc)) is not None:
        found.append(here)
        pid = here.parent
    return found


def environment(pid: int, proc: Path = _PROC) -> dict[str, str]:
    """The environment a process was started with; empty where we may not read it."""
    raw = read_bytes(proc / str(pid) / "environ").decode(errors="replace")
    return dict(pair.split("=", 1) for pair in raw.split("\0") if "=" in pair)


def program(pid: int, proc: Path = _PROC) -> str:
    """What a process runs; its arguments are left out, they may hold secrets. Empty where it is not visible."""
    folder = proc / str(pid)
    argv = [w for w in read_bytes(folder / "cmdline").decode(errors="replace").split("\0") if w]
    return command_name(argv) or read_bytes(folder / "comm").decode(errors="replace").strip()


def user(pid: int, proc: Path = _PROC) -> str:
    """Who runs a process; empty where that is not known."""
    try:
        return pwd.getpwuid((proc / str(pid)).stat().st_uid).pw_name
    except (OSError, KeyError):
        return ""


def uses_file(pid: int, prefixes: Sequence[str], proc: Path = _PROC) -> bool | None:
    """Whether a process has a file open whose path starts like this; None where we may not look."""
    try:
        links = list((proc / str(pid) / "fd").iterdir())
    except OSError:
        return None
    for link in links:
        with contextlib.suppress(OSError):  # closed just now
            if str(link.readlink()).startswith(tuple(prefixes)):
                return True
    return False


def read_bytes(file: Path) -> bytes:
    """A file of /proc; empty where it is not there or not ours to read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


class ProcessTree:
    """The processes of a run; without a root nobody belongs to it yet."""

    def __init__(self, root: int | None, run_id: str = "", proc: Path = _PROC) -> None:
        self._proc, self._run_id = proc, run_id
        self._members: dict[int, int] = {}
        self._opened: set[tuple[str, int]] = set()
        self._outer: set[tuple[str, int]] = set()
        if root is not None:
            self.plant(root)

    def plant(self, root: int) -> None:
        """From now on the tree grows from this process."""
        found = status(root, self._proc)
        self._members[root] = found.started if found else 0
        # The root's own session and group are shared with whoever started it.
        self._outer |= _circles(found) if found else set()

    def includes(self, pid: int) -> bool:
        """Whether a process belongs to the run; those it came from then do so as well."""
        line = lineage(pid, self._proc)
        place = next((i for i, s in enumerate(line) if self._knows(s)), None)
        if place is None:
            marked = self._run_id and environment(pid, self._proc).get(RUN_VARIABLE) == self._run_id
            if not (marked and self._members):
                return False
            place = 0
        for found in line[: place + 1]:
            self._members[found.pid] = found.started
            self._opened |= _circles(found) - self._outer
        return True

    def _knows(self, found: Status) -> bool:
        if found.pid in self._members:
            return self._members[found.pid] == found.started
        return not self._opened.isdisjoint(_circles(found))


def _circles(found: Status) -> set[tuple[str, int]]:
    """The session and the group of a process; 0 is nobody's."""
    return {(kind, n) for kind, n in (("session", found.session), ("group", found.group)) if n}
