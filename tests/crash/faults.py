"""Which system call of a command goes wrong, and how? A library loaded before the C library makes it so (preload.c)."""

from __future__ import annotations

import ctypes
import enum
import errno
import mmap
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Every lake under test lies in a folder of this name: calls on paths with it are counted, all others are left alone.
LAKE = "crash-lake"
SOURCE = Path(__file__).with_name("preload.c")
NO_COMPILER = "exact faults need a C compiler: apt-get install gcc"


class Call(enum.IntFlag):
    """The kinds of calls that change a lake, as in preload.c."""

    WRITE = 1
    CREATE = 2
    RENAME = 4
    REMOVE = 8
    MKDIR = 16
    SYNC = 32
    TRUNCATE = 64


CHANGES = Call.WRITE | Call.CREATE | Call.RENAME | Call.REMOVE | Call.MKDIR | Call.TRUNCATE
TAKES_SPACE = Call.WRITE | Call.CREATE | Call.MKDIR


class Action(enum.IntEnum):
    """What happens at the call, as in preload.c."""

    COUNT = 0
    KILL = 1
    TEAR = 2
    FAIL_ONCE = 3
    FAIL_ON = 4


@dataclass(frozen=True)
class Fault:
    """At the `at`th call of these kinds (from 1; 0: never) this happens."""

    at: int = 0
    action: Action = Action.COUNT
    error: int = 0
    kinds: Call = CHANGES


def kill_at(call: int, kinds: Call = CHANGES) -> Fault:
    """The process group is killed right before a call."""
    return Fault(call, Action.KILL, 0, kinds)


def tear_at(call: int) -> Fault:
    """As `kill_at`; if the call is a write, half of it is written first."""
    return Fault(call, Action.TEAR)


def full_from(call: int) -> Fault:
    """The disk is full from a call on."""
    return Fault(call, Action.FAIL_ON, errno.ENOSPC, TAKES_SPACE)


def full_once(call: int) -> Fault:
    """One call finds the disk full."""
    return Fault(call, Action.FAIL_ONCE, errno.ENOSPC, TAKES_SPACE)


def unsynced_at(call: int) -> Fault:
    """The disk reports an error when a file is forced to it."""
    return Fault(call, Action.FAIL_ONCE, errno.EIO, Call.SYNC)


READ_ONLY = Fault(1, Action.FAIL_ON, errno.EROFS)


class _Control(ctypes.Structure):
    _fields_ = (
        ("calls", ctypes.c_long),
        ("at", ctypes.c_long),
        ("action", ctypes.c_int),
        ("error", ctypes.c_int),
        ("kinds", ctypes.c_int),
        ("acted", ctypes.c_int),
        ("seen", ctypes.c_long * 8),
        ("mark", ctypes.c_char * 64),
        ("what", ctypes.c_char * 256),
    )


@dataclass(frozen=True)
class Happened:
    """How many calls there were of each kind, and which one the fault hit, if it hit any."""

    seen: tuple[int, ...]
    hit: str

    def calls(self, kinds: Call) -> int:
        """How many calls of some kinds."""
        return sum(count for place, count in enumerate(self.seen) if kinds & (1 << place))


def arm(file: Path, fault: Fault) -> None:
    """Write the control file of a fault."""
    nothing = (ctypes.c_long * 8)()
    content = _Control(0, fault.at, fault.action, fault.error, fault.kinds, 0, nothing, LAKE.encode(), b"")
    file.write_bytes(bytes(content))


def happened(file: Path) -> Happened:
    """What a control file reports after the command."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), ctypes.sizeof(_Control)) as shared:
        seen = _Control.from_buffer_copy(shared)
    return Happened(tuple(seen.seen), seen.what.decode(errors="replace") if seen.acted else "")


def build(folder: Path) -> Path | None:
    """The library, compiled into a folder; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder / "preload.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library
