"""When may a process be copied, and how does a copy work for it?

A copy has loaded all that the process has: it is there at once. It has the thread that copied it only, so a lock that
another thread held would never be let go of: a process with several threads is not copied.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, ClassVar, NoReturn


def may_copy() -> bool:
    """Whether a worker may be a copy of this process: it has no thread but this one."""
    try:
        return sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


class Copy:
    """A copy of this process that does some work, given a pipe to read from and one to write to, and ends."""

    _leaving: ClassVar[list[Copy]] = []

    def __init__(self, work: Callable[[IO[bytes], IO[bytes]], None]) -> None:
        self._leaving[:] = [copy for copy in self._leaving if not copy.has_ended()]
        orders, answers = _pipe(), _pipe()
        for stream in (sys.stdout, sys.stderr):  # what waits there is not to be written twice
            with contextlib.suppress(AttributeError, OSError, ValueError):  # none, one that takes nothing, a closed one
                stream.flush()
        self.pid = os.fork()
        if not self.pid:
            _work_as_copy(work, orders[0], answers[1])
        os.close(orders[0])
        os.close(answers[1])
        self.stdin: IO[bytes] = os.fdopen(orders[1], "wb")
        self.stdout: IO[bytes] = os.fdopen(answers[0], "rb")
        self._ended: int | None = None

    def kill(self) -> None:
        """End it at once."""
        if self._ended is None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and this process ignores the ends of others
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end."""
        self._hear(0)
        return self._ended or 0

    def has_ended(self) -> bool:
        """Whether it has ended."""
        self._hear(os.WNOHANG)
        return self._ended is not None

    def leave(self) -> None:
        """Let it end by itself, which takes long where it has much memory to give back; this process goes on."""
        if not self._leaving:
            atexit.register(self._wait_for_all)
        self._leaving.append(self)

    @classmethod
    def _wait_for_all(cls) -> None:
        while cls._leaving:
            cls._leaving.pop().wait()

    def _hear(self, how: int) -> None:
        if self._ended is None:
            try:
                pid, status = os.waitpid(self.pid, how)
                self._ended = status if pid else None
            except ChildProcessError:  # this process ignores the ends of others, or another has heard of this one
                self._ended = 0


def _pipe() -> tuple[int, int]:
    """The ends of a pipe, to read from and to write to; neither takes the place of a standard stream that is closed."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _work_as_copy(work: Callable[[IO[bytes], IO[bytes]], None], orders: int, answers: int) -> NoReturn:
    """Do the work, and never return to what the process was doing when it was copied."""
    try:
        # None where one was closed: another file has its number.
        streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        kept = {orders, answers, *(number for number, stream in enumerate(streams) if stream is not None)}
        for entry in list(Path("/proc/self/fd").iterdir()):  # files and locks of the other process stay its own
            if int(entry.name) not in kept:
                with contextlib.suppress(OSError):
                    os.close(int(entry.name))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process hears it, and closes the pipe
        with os.fdopen(orders, "rb") as given, os.fdopen(answers, "wb") as out:
            work(given, out)
    finally:
        failed = sys.exc_info()[0] is not None
        if failed and os.environ.get("GPULEDGER_DEBUG"):  # else the other process hears only that this one is gone
            with contextlib.suppress(OSError):
                os.write(2, traceback.format_exc().encode())
        os._exit(1 if failed else 0)
