"""What do the runner and its workers say to each other, and how are workers of this machine started and watched?"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

import msgspec

from gpuledger.bench.load import Phase

_LENGTH = struct.Struct(">I")


class Task(msgspec.Struct, frozen=True):
    """What one worker does: what it asks, of which target, and how long an answer may take.

    `device`: the telemetry source on a worker's own machine; empty: none. `run` is the same for all workers of a run
    and a secret of theirs.
    """

    node: str
    target: str
    settings: dict[str, Any]
    phases: tuple[Phase, ...]
    timeout_s: float
    seed: str
    run: str = ""
    device: str = ""
    hz: float = 10.0


class Ready(msgspec.Struct, tag=True):
    """The worker waits at the barrier."""

    node: str
    facts: dict[str, Any]
    machine: dict[str, Any]
    problem: str = ""
    unreachable: str = ""


class Records(msgspec.Struct, tag=True):
    """Requests that ended: their names, and their lines for the file. Without any it shows that the worker is alive."""

    node: str
    requests: tuple[int | str, ...]
    lines: bytes
    last_end_s: float


class Done(msgspec.Struct, tag=True):
    """All orders were carried out."""

    node: str
    client: dict[str, Any]
    facts: dict[str, Any] = {}
    telemetry: tuple[tuple[str, bytes], ...] = ()


class Gone(msgspec.Struct, tag=True):
    """Nothing more will come from this worker, which cannot go on or has ended. `why`: what happened."""

    node: str
    why: str


Message = Ready | Records | Done | Gone
Inbox = SimpleQueue[Message]
pack = msgspec.msgpack.Encoder().encode
unpack_message = msgspec.msgpack.Decoder(Message).decode
unpack_task = msgspec.msgpack.Decoder(Task).decode


def write_frame(out: BinaryIO, what: Message | Task) -> None:
    """One message or task, whole."""
    raw = pack(what)
    out.write(_LENGTH.pack(len(raw)) + raw)
    out.flush()


def read_frame(source: BinaryIO) -> bytes | None:
    """The next message or task, or None where the other side is gone."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    raw = source.read(size)
    return raw if len(raw) == size else None


class LocalCrew:
    """One process per worker, connected by pipes. Messages go into the inbox; the last of each worker is a Gone."""

    def __init__(self) -> None:
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[Thread] = []

    def start(self, tasks: Sequence[Task], inbox: Inbox) -> None:
        """Start the processes and hand each its task."""
        for task in tasks:
            # Not in our group: Ctrl-C reaches us alone, and we end them once their answers are safe.
            worker = subprocess.Popen(
                [sys.executable, "-m", "gpuledger.bench.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            self._workers[task.node] = worker
            thread = Thread(target=self._listen, args=(task, worker, inbox), daemon=True)
            self._threads.append(thread)
            thread.start()

    @staticmethod
    def _listen(task: Task, worker: subprocess.Popen[bytes], inbox: Inbox) -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        with contextlib.suppress(OSError):
            write_frame(worker.stdin, task)  # type: ignore[arg-type]
        while (raw := read_frame(worker.stdout)) is not None:  # type: ignore[arg-type]
            inbox.put(unpack_message(raw))
        inbox.put(Gone(task.node, how_it_ended(worker.wait())))

    @property
    def pids(self) -> dict[str, int]:
        """The process of each worker."""
        return {node: worker.pid for node, worker in self._workers.items()}

    def go(self, nodes: Sequence[str]) -> float:
        """One byte to each."""
        begun = time.monotonic()
        for node in nodes:
            pipe = self._workers[node].stdin
            assert pipe is not None
            with contextlib.suppress(OSError):  # it died at the barrier: its reader will report it
                pipe.write(b"g")
                pipe.flush()
        return time.monotonic() - begun

    def kill(self, node: str) -> None:
        """The worker and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._workers[node].pid, signal.SIGKILL)

    def close(self) -> None:
        """No worker outlives the run."""
        for node, worker in self._workers.items():
            self.kill(node)  # also where it ended by itself: what it started may not have
            worker.wait()
        for worker, thread in zip(self._workers.values(), self._threads, strict=True):
            thread.join(5)
            # Closing a pipe that is still being read would wait for the reader.
            for pipe in (worker.stdin, worker.stdout) if not thread.is_alive() else (worker.stdin,):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def how_it_ended(code: int) -> str:
    """The exit code of a worker in words."""
    if code >= 0:
        return f"its worker ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"its worker was killed by {signal.Signals(-code).name}"
    return f"its worker was killed by signal {-code}"
