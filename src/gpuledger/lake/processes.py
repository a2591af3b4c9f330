"""How does work of a lake run in several processes at once?

A worker takes orders on its input and gives answers on its output, each with its length before it. Plain pipes, because
threads would take turns at Python's lock. Where this process has one thread only, a worker is a copy of it, which has
loaded all it needs; where it has several, a copy might inherit a lock that is never let go of, and a worker is
`python -m gpuledger.lake.processes`. Whoever works so is a function of a task and a progress call; both the task and
what it returns are structs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from queue import Empty, Queue
from threading import Thread
from typing import IO, Protocol, TypeVar, get_type_hints

import msgspec

from gpuledger import errors
from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.lake.engines.copies import Copy, may_copy
from gpuledger.quick_start import ONE_THREAD, collect_seldom, leave_as_is, without_help_texts

Progress = Callable[[str, int], None]
T = TypeVar("T", bound=msgspec.Struct)
D = TypeVar("D", bound=msgspec.Struct)
ALONE = {
    # One process a core: threads of a maths library inside each would only get in each other's way.
    **ONE_THREAD,
    # Every block asks for arrays of the same sizes. Given back to the system in between, their pages are zeroed and
    # mapped anew each time: a quarter of a worker's CPU time.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MIMALLOC_PURGE_DELAY": "-1",
}


_DIED = "a worker process died"


class Answer(msgspec.Struct, frozen=True):
    """What a worker says: rows done so far in some stage, a task done, or what went wrong."""

    stage: str = ""
    rows: int = 0
    done: bytes = b""
    kind: str = ""
    error: str = ""
    hint: str = ""
    task: int = -1


class Order(msgspec.Struct, frozen=True):
    """What a worker is to do: a function, by its module and name, and its task."""

    work: str
    task: bytes

    @classmethod
    def of(cls, work: Callable[[T, Progress], D], task: T) -> Order:
        """The order for one task."""
        return cls(f"{work.__module__}:{work.__name__}", msgspec.msgpack.encode(task))


def carried_out(order: Order, progress: Progress) -> Answer:
    """Do what an order asks for, wherever this runs; errors of ours and of the system become the answer."""
    module, function = order.work.split(":")
    work = getattr(import_module(module), function)
    try:
        done = work(msgspec.msgpack.decode(order.task, type=get_type_hints(work)["task"]), progress)
        return Answer(done=msgspec.msgpack.encode(done))
    except GpuledgerError as error:
        return Answer(kind=type(error).__name__, error=error.message, hint=error.hint)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            said = errors.map_os_error(error, "a worker", "write")
            return Answer(error=said.message, hint=said.hint)
        return Answer(error=f"a worker failed: {error}")


def done_by(answer: Answer, work: Callable[[T, Progress], D]) -> D:
    """What a task returned, or its error as it was raised there."""
    if answer.error:
        kind = getattr(errors, answer.kind, LakeError)
        error: GpuledgerError = kind.__new__(kind)
        GpuledgerError.__init__(error, answer.error, hint=answer.hint or "run the command again; what was done is kept")
        raise error
    done: D = msgspec.msgpack.decode(answer.done, type=get_type_hints(work)["return"])
    return done


def cores() -> int:
    """How many processes are worth starting here: the cores this process may use, which may be fewer than there are."""
    return len(os.sched_getaffinity(0))


class Worker(Protocol):
    """A process that waits for orders."""

    @property
    def stdin(self) -> IO[bytes] | None: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    def kill(self) -> None: ...

    def wait(self) -> int: ...


class Workers:
    """This process and others that wait for work; those start at once, and load while the first task is made up."""

    def __init__(self, count: int) -> None:
        """`count`: how many work at once, this process among them: it has loaded all it needs already."""
        self._workers: list[Worker] = [Copy(_answer) if may_copy() else _started() for _ in range(count - 1)]
        self._given_up = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_why: object) -> None:
        for worker in self._workers:
            if self._given_up:
                worker.kill()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            if isinstance(worker, Copy) and not self._given_up:
                worker.leave()
            else:
                worker.wait()

    def __len__(self) -> int:
        return len(self._workers) + 1

    def run(self, work: Callable[[T, Progress], D], tasks: Sequence[T], progress: Progress) -> Iterator[tuple[int, D]]:
        """Do the tasks; what is done comes with its task's number, in any order."""
        waiting: Queue[tuple[int, T]] = Queue()
        for numbered in enumerate(tasks):
            waiting.put(numbered)
        answers: Queue[Answer] = Queue()
        threads = [Thread(target=_serve, args=(work, waiting, answers, w), daemon=True) for w in self._workers]
        for thread in threads:
            thread.start()
        missing = len(tasks)
        try:
            for answer in _all_answers(work, waiting, answers, missing, progress):
                done = done_by(answer, work)
                missing -= 1
                yield answer.task, done
        finally:
            if missing:  # given up: what still runs is of no use
                self._given_up = True
                while not waiting.empty():
                    waiting.get()
                for worker in self._workers:
                    worker.kill()
            for thread in threads:
                thread.join()


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gpuledger.lake.processes"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | ALONE)  # noqa: S603


class _Failed(Exception):
    """Another worker failed, so that what this process is doing is of no use."""


def _all_answers(
    work: Callable[[T, Progress], D],
    waiting: Queue[tuple[int, T]],
    answers: Queue[Answer],
    missing: int,
    progress: Progress,
) -> Iterator[Answer]:
    """What the workers answer to some tasks, and this process, which takes some of them itself."""
    held: list[Answer] = []

    def hear(*, wait: bool) -> None:
        """Pass on what was said meanwhile; answers are held until this process is done with its own task."""
        with contextlib.suppress(Empty):
            while True:
                answer = answers.get(block=wait)
                if answer.error or answer.task >= 0:
                    held.append(answer)
                    return
                progress(answer.stage, answer.rows)

    def meanwhile(stage: str, rows: int) -> None:
        progress(stage, rows)
        hear(wait=False)
        if any(answer.error for answer in held):
            raise _Failed

    while missing:
        with contextlib.suppress(Empty, _Failed):
            number, task = waiting.get_nowait()
            held.append(msgspec.structs.replace(carried_out(Order.of(work, task), meanwhile), task=number))
        if not held:
            hear(wait=True)
        for answer in sorted(held, key=lambda a: not a.error):
            missing -= 1
            yield answer
        held.clear()


def _serve(
    work: Callable[[T, Progress], D],
    waiting: Queue[tuple[int, T]],
    answers: Queue[Answer],
    worker: Worker,
) -> None:
    """Keep one worker busy until no task is left."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    while True:
        try:
            number, task = waiting.get_nowait()
        except Empty:
            return
        try:
            send(worker.stdin, Order.of(work, task))
            answer = Answer()
            while answer.task < 0 and not answer.error:
                said = received(worker.stdout)
                answer = msgspec.msgpack.decode(said, type=Answer) if said else Answer(error=_DIED)
                if answer.done:
                    answer = msgspec.structs.replace(answer, task=number)
                answers.put(answer)
        except (BrokenPipeError, ValueError):
            answer = Answer(error=_DIED)
            answers.put(answer)
        if answer.error:
            return


def send(pipe: IO[bytes], what: msgspec.Struct) -> None:
    """Write what one process says to another, its length before it."""
    said = msgspec.msgpack.encode(what)
    pipe.write(len(said).to_bytes(8, "little") + said)
    pipe.flush()


def received(pipe: IO[bytes]) -> bytes:
    """What comes next; empty where nothing more comes."""
    length = int.from_bytes(pipe.read(8), "little")
    return pipe.read(length) if length else b""


def main() -> None:
    """Answer tasks until the input ends."""
    collect_seldom()
    with without_help_texts():
        import_module("gpuledger.lake.taking")  # what most work begins with
        _answer(sys.stdin.buffer, sys.stdout.buffer)
    leave_as_is()


def _answer(orders: IO[bytes], out: IO[bytes]) -> None:
    def progress(stage: str, rows: int) -> None:
        send(out, Answer(stage=stage, rows=rows))

    while said := received(orders):
        send(out, carried_out(msgspec.msgpack.decode(said, type=Order), progress))


if __name__ == "__main__":
    main()
