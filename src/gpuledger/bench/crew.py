"""How are workers started, let go together, and watched: as processes of this machine?"""

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
from typing import Protocol

import msgspec

from gpuledger.bench.messages import Gone, Message, Task, read_message

Inbox = SimpleQueue[Message]


class Crew(Protocol):
    """Workers, one for each task. What they say is put into the inbox; after the last word of each comes a Gone."""

    def start(self, tasks: Sequence[Task], inbox: Inbox) -> None:
        """Begin; the workers open their targets and come to the barrier."""
        ...

    def go(self, nodes: Sequence[str]) -> float:
        """Let these start at once; the seconds between the first and the last being told."""
        ...

    def kill(self, node: str) -> None:
        """End a worker that does not end by itself."""
        ...

    def close(self) -> None:
        """End them all and wait for it."""
        ...


class LocalCrew:
    """One process a worker, plain pipes in between."""

    def __init__(self, environ: dict[str, str] | None = None) -> None:
        self._environ = environ
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[Thread] = []

    def start(self, tasks: Sequence[Task], inbox: Inbox) -> None:
        """Start the processes and hand each its task."""
        for task in tasks:
            # Not in our group: Ctrl-C reaches us alone, and we end them once their answers are safe.
            worker = subprocess.Popen(
                [sys.executable, "-m", "gpuledger.bench.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environ, start_new_session=True,
            )  # fmt: skip
            self._workers[task.node] = worker
            raw = msgspec.msgpack.encode(task)
            thread = Thread(target=self._listen, args=(task.node, worker, raw, inbox), daemon=True)
            self._threads.append(thread)
            thread.start()

    @staticmethod
    def _listen(node: str, worker: subprocess.Popen[bytes], task: bytes, inbox: Inbox) -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        with contextlib.suppress(OSError):
            worker.stdin.write(struct.pack(">I", len(task)) + task)
            worker.stdin.flush()
        while (message := read_message(worker.stdout)) is not None:  # type: ignore[arg-type]
            inbox.put(message)
        code = worker.wait()
        inbox.put(Gone(node, how_it_ended(code)))

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
            with contextlib.suppress(OSError):  # it died at the barrier: its reader will say so
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
            # A pipe that somebody still reads cannot be closed: that would wait for the reader.
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
