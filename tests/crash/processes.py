"""How is a real command started, killed, and its answer taken?"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from crash import faults, warm
from crash.faults import Fault, Happened

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "src"
HUNG_S = 120.0
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Outcome:
    """How a command ended. `happened`: the calls that were counted, where they were."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    happened: Happened | None = None

    @property
    def traceback(self) -> bool:
        """Whether a bug showed itself."""
        return "Traceback (most recent call last)" in self.stderr or self.code == 70

    def __str__(self) -> str:
        return f"exit {self.code}: {self.stderr.strip()[-2000:]}"


class Job:
    """A command that runs."""

    def __init__(self, process: subprocess.Popen[bytes] | BaseProcess, files: Path, control: Path | None) -> None:
        self._process, self._files, self._control = process, files, control
        self._begun = time.monotonic()

    @property
    def pid(self) -> int:
        """Its process, which leads a group of its own."""
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill it and all processes it has started."""
        for _ in range(200):
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(self.pid) == self.pid:  # else it has not left our group yet
                    os.killpg(self.pid, signal.SIGKILL)
                    return
            if not self.alive():
                return
            time.sleep(0.001)

    def alive(self) -> bool:
        """Whether it still runs."""
        if isinstance(self._process, BaseProcess):
            return self._process.is_alive()
        return self._process.poll() is None

    def wait(self, seconds: float = HUNG_S) -> Outcome:
        """Wait for its end; one that hangs is killed."""
        try:
            code = self._ended(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self._ended(HUNG_S)
            raise
        took = time.monotonic() - self._begun
        texts = []
        for kind in ("stdout", "stderr"):
            file = self._files.with_name(f"{self._files.name}.{kind}")
            texts.append(file.read_text(errors="replace") if file.exists() else "")
            file.unlink(missing_ok=True)
        seen = faults.happened(self._control) if self._control else None
        return Outcome(code, texts[0], texts[1], took, seen)

    def _ended(self, seconds: float) -> int:
        if not isinstance(self._process, BaseProcess):
            return self._process.wait(seconds)
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._files.name, seconds)
        code = self._process.exitcode
        self._process.close()
        return code


class Commands:
    """Starts commands, forked from a process that has gpuledger loaded, or afresh."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.library = faults.build(folder)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["crash.loaded"])
        self._numbers = itertools.count(1)
        self._environ = os.environ | {"GPULEDGER_CONFIG": "", "PYTHONPATH": str(SOURCES), "OPENBLAS_NUM_THREADS": "1"}
        if self.library:
            self._environ["LD_PRELOAD"] = str(self.library)
        # The server that forks is started by its first process. Some versions of Python give it no path but this one.
        with _environment(self._environ | {"PYTHONPATH": f"{SOURCES}{os.pathsep}{TESTS}"}):
            first = self._context.Process(target=warm.nothing)
            first.start()
            first.join()

    def cpu_s(self) -> float:
        """The CPU time of all commands so far, apart from those started afresh."""
        pid = forkserver._forkserver._forkserver_pid
        ticks = (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
        )  # its own and of those that ended
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def start(self, argv: list[str], folder: Path, fault: Fault | None = None, *, fresh: bool = False) -> Job:
        """Start a command in a folder: `gpuledger ...` or `python FILE ...`."""
        number = next(self._numbers)
        control = self._folder / f"control-{number}" if fault is not None and self.library else None
        if fault is not None and control is not None:
            faults.arm(control, fault)
        files = folder / f"answer-{number}"
        if not fresh:
            given = (argv, str(folder), files.name, str(control or ""), str(self.library or ""))
            forked = self._context.Process(target=warm.become, args=given)
            forked.start()
            return Job(forked, files, control)
        environ = self._environ | ({"CRASH_CONTROL": str(control)} if control else {})
        command = [sys.executable, *(["-m", *argv] if argv[0] == "gpuledger" else argv[1:])]
        with Path(f"{files}.stdout").open("w") as out, Path(f"{files}.stderr").open("w") as err:
            started = subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=err, start_new_session=True)
        return Job(started, files, control)

    def run(self, argv: list[str], folder: Path, fault: Fault | None = None, *, fresh: bool = False) -> Outcome:
        """Run a command to its end."""
        job = self.start(argv, folder, fault, fresh=fresh)
        done = job.wait()
        if job._control:
            job._control.unlink(missing_ok=True)
        return done


@contextlib.contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def commands() -> Iterator[Commands]:
    """Commands, and a folder of their own that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-crash-"))
    try:
        yield Commands(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
