"""How is a command recorded from its start to its end, without getting in its way?

Input, output and terminal are inherited. Signals sent to us are passed on; those the terminal sends reach the command
by themselves, as it is in our process group. Its exit code is ours; where a signal n ended it, 128 + n.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from gpuledger.arguments import takes
from gpuledger.devices.attribution import RUN_VARIABLE, command_name
from gpuledger.devices.clock import Clock
from gpuledger.devices.device import Source
from gpuledger.errors import DeviceError, GpuledgerError, InputError, MissingExtra
from gpuledger.plain_text import visible
from gpuledger.recording.record import DEFAULT_LAKE, Recording
from gpuledger.recording.runs import RunNotes

Say = Callable[[str], None]


@dataclass(frozen=True)
class CommandRun:
    """A command that was run: its exit code as a shell would see it, and the notes of its recording, if any."""

    exit_code: int
    notes: RunNotes | None
    problem: str = ""


def to_stderr(words: str) -> None:
    """Write a message next to the command's own output."""
    sys.stderr.write(f"gpuledger: {visible(words, lines=True)}\n")
    sys.stderr.flush()


@takes()
def run_command(
    argv: Sequence[str],
    lake: str | Path = DEFAULT_LAKE,
    *,
    hz: float = 10.0,
    labels: Mapping[str, str] | None = None,
    device: str | Source = "nvml",
    flush_s: float = 10.0,
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
    say: Say = to_stderr,
) -> CommandRun:
    """Run a command with the GPUs recorded; output, signals and exit code pass through.

    127: no such command; 126: it cannot be run; 125: the recording cannot be written there. Without a GPU or
    a driver the command still runs, and a message says that nothing is recorded.
    """
    if not argv:
        raise InputError("no command was given", hint="gpuledger record -- COMMAND ...")
    try:
        check_command(argv)
    except CannotStart as error:
        return _failed(error.exit_code, str(error), say)
    surroundings = dict(os.environ if environ is None else environ)
    with Relay() as relay:
        recording, problem = None, ""
        try:
            recording = Recording(
                lake,
                hz=hz,
                labels=labels,
                device=device,
                flush_s=flush_s,
                program=command_name(argv),
                environ=surroundings,
                clock=clock,
                around_command=True,
            )
            with relay.held_back():
                recording.start()
        except (DeviceError, MissingExtra) as error:
            problem = str(error)
            say(f"NOT RECORDING: {error}\n  the command runs all the same")
        except GpuledgerError as error:
            return _failed(OUR_FAILURE, f"{error}\n  the command was not started", say)
        try:
            code = _run(relay, argv, surroundings, recording)
        except CannotStart as error:
            _finish(recording, error.exit_code, say)
            return _failed(error.exit_code, str(error), say)
        return CommandRun(code, _finish(recording, code, say), problem)


def _run(relay: Relay, argv: Sequence[str], surroundings: dict[str, str], recording: Recording | None) -> int:
    """Run the command, and look who holds the GPUs as it starts and as it ends."""
    if recording is None:
        return relay.run(argv, surroundings)
    marked = {**surroundings, RUN_VARIABLE: recording.run_id}
    return relay.run(argv, marked, started=recording.follow, ending=recording.look)


def _failed(code: int, problem: str, say: Say) -> CommandRun:
    say(problem)
    return CommandRun(code, None, problem)


def _finish(recording: Recording | None, code: int, say: Say) -> RunNotes | None:
    """End the recording; whatever goes wrong now must not change the command's exit code."""
    if recording is None:
        return None
    try:
        notes = recording.stop(code)
    except GpuledgerError as error:
        say(str(error))
        return recording.notes()
    for words in notes.words():
        say(words)
    return notes


OUR_FAILURE, CANNOT_RUN, NOT_FOUND = 125, 126, 127
PASSED_ON = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}
)
_HEARD = PASSED_ON | {signal.SIGCHLD}
# siginfo's si_code for signals the kernel makes: the terminal sent it to the whole process group.
_FROM_KERNEL = 0x80
_LOOK_EVERY_S = 0.5
_HEAR_EVERY_S = 0.1


class CannotStart(Exception):
    """The command does not exist (127) or cannot be run (126)."""

    def __init__(self, exit_code: int, message: str, hint: str) -> None:
        super().__init__(f"{message}\n  next: {hint}")
        self.exit_code = exit_code


def check_command(argv: Sequence[str]) -> None:
    """Fail early where a command cannot be started, before anything is recorded."""
    name = argv[0]
    if shutil.which(name):
        return
    if "/" not in name:
        hint = "check its spelling and PATH; a script of your own: python FILE, or ./FILE"
        raise CannotStart(NOT_FOUND, f"no command is called {name!r}", hint)
    if not Path(name).exists():
        raise CannotStart(NOT_FOUND, f"no such file: {name}", "check the path; quote it if it has spaces")
    if Path(name).is_dir():
        raise CannotStart(CANNOT_RUN, f"cannot run {name}: it is a folder", "name the program in it")
    raise CannotStart(CANNOT_RUN, f"cannot run {name}: permission denied", f"chmod +x {name}, or python {name}")


class Relay:
    """Passes signals on to a command while it runs. Works in the main thread; elsewhere signals are left alone."""

    def __init__(self) -> None:
        self._works = threading.current_thread() is threading.main_thread()
        self._early: list[int] = []
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Relay:
        if self._works:
            # What our parent has us ignore, the command ignores too, as it would without us.
            for number in (n for n in PASSED_ON if signal.getsignal(n) is not signal.SIG_IGN):
                self._handlers[number] = signal.signal(number, self._keep)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _keep(self, number: int, _frame: FrameType | None) -> None:
        self._early.append(number)

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Threads begun in here never take a signal, so that all of them wait for the main thread."""
        if not self._works:
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str] | None = None,
        started: Callable[[int], None] = lambda _pid: None,
        ending: Callable[[], None] = lambda: None,
    ) -> int:
        """Run the command to its end; its exit code. `started` is called with its process number, `ending` when it has
        ended and its process number is still its own.
        """
        try:
            process = subprocess.Popen(list(argv), env=environ)  # noqa: S603 - the user's own command
        except FileNotFoundError as error:
            hint = "is the interpreter that its first line names installed?"
            raise CannotStart(NOT_FOUND, f"cannot run {argv[0]}: {error.strerror}", hint) from error
        except OSError as error:
            hint = f"name what runs it: python {argv[0]}, or sh {argv[0]}"
            raise CannotStart(CANNOT_RUN, f"cannot run {argv[0]}: {error.strerror}", hint) from error
        with self.held_back():
            started(process.pid)
            while not _ended(process, wait=not self._works):
                self._listen(process)
            ending()
        code = process.wait()
        return 128 - code if code < 0 else code

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        while self._early:
            self._pass_on(process, self._early.pop(0))
        heard = signal.sigtimedwait(_HEARD, _LOOK_EVERY_S)
        if heard is not None and heard.si_signo in PASSED_ON and heard.si_code != _FROM_KERNEL:
            self._pass_on(process, heard.si_signo)

    @staticmethod
    def _pass_on(process: subprocess.Popen[bytes], number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _ended(process: subprocess.Popen[bytes], *, wait: bool) -> bool:
    """Whether the command has ended, without collecting its exit code."""
    options = os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)
    try:
        return os.waitid(os.P_PID, process.pid, options) is not None
    except ChildProcessError:  # another process has collected it
        return True


def wait_for_end(seconds: float | None) -> None:
    """Wait this long, or until we are asked to end (Ctrl-C, kill)."""
    asked: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, lambda number, _frame: asked.append(number)) for n in ends}
    over = math.inf if seconds is None else time.monotonic() + seconds
    try:
        # In short pieces: a signal that another thread happens to take does not wake us, and is heard after the piece.
        while not asked and (left_s := over - time.monotonic()) > 0:
            time.sleep(min(_HEAR_EVERY_S, left_s))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
