"""How do several processes post days at once?

A worker is `python -m gpuledger.ledger.worker`: a task a line on its input, an answer a line on its output. Plain
pipes, because threads would take turns at Python's lock and a forked process may inherit a lock of a native library.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from queue import Queue
from threading import Thread

import msgspec

from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.ledger.day import DayDone, DayTask, Progress, post_day

_ALONE = {
    # One process a core: threads of a maths library inside each would only get in each other's way.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Every block asks for arrays of the same sizes. Given back to the system in between, their pages are zeroed and
    # mapped anew each time: a quarter of a worker's CPU time.
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MIMALLOC_PURGE_DELAY": "-1",
}


class Answer(msgspec.Struct, frozen=True):
    """What a worker says: rows posted so far, a day done, or what went wrong."""

    rows: int = 0
    done: DayDone | None = None
    error: str = ""
    hint: str = ""


def in_processes(tasks: list[DayTask], processes: int, progress: Progress) -> Iterator[DayDone]:
    """Post the days with a number of workers; days come as they are done, in any order."""
    waiting: Queue[DayTask] = Queue()
    for task in tasks:
        waiting.put(task)
    answers: Queue[Answer] = Queue()
    threads = [Thread(target=_serve, args=(waiting, answers), daemon=True) for _ in range(processes)]
    for thread in threads:
        thread.start()
    missing = len(tasks)
    while missing:
        answer = answers.get()
        if answer.error:
            raise LakeError(answer.error, hint=answer.hint or "run the command again; what was posted is kept")
        if answer.done:
            missing -= 1
            yield answer.done
        else:
            progress(answer.rows)
    for thread in threads:
        thread.join()


def _serve(waiting: Queue[DayTask], answers: Queue[Answer]) -> None:
    """Keep one worker busy until no task is left."""
    command = [sys.executable, "-m", "gpuledger.ledger.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | _ALONE) as worker:  # noqa: S603
        assert worker.stdin is not None
        assert worker.stdout is not None
        while not waiting.empty():
            task = waiting.get()
            worker.stdin.write(msgspec.json.encode(task) + b"\n")
            worker.stdin.flush()
            while True:
                line = worker.stdout.readline()
                answer = (
                    msgspec.json.decode(line, type=Answer) if line else Answer(error=f"{task.day}: its worker died")
                )
                answers.put(answer)
                if answer.done or answer.error:
                    break
            if answer.error:
                return


class _NoPandas:
    """Arrow imports pandas wherever it is installed; a worker has no use for it and would wait half a second."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Hide pandas; leave every other name to the usual finders."""
        if name == "pandas":
            raise ImportError("a worker does without pandas")


def main() -> None:
    """Answer tasks until the input ends."""
    sys.meta_path.insert(0, _NoPandas())
    out = sys.stdout.buffer

    def say(answer: Answer) -> None:
        out.write(msgspec.json.encode(answer) + b"\n")
        out.flush()

    for line in sys.stdin.buffer:
        try:
            task = msgspec.json.decode(line, type=DayTask)
            say(Answer(done=post_day(task, lambda rows: say(Answer(rows=rows)))))
        except GpuledgerError as error:
            say(Answer(error=error.message, hint=error.hint))
        except OSError as error:
            say(Answer(error=f"cannot post: {error}"))


if __name__ == "__main__":
    main()
