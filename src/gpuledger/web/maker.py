"""Where are views made, so that the server answers meanwhile? In a process of their own.

The process is `python -m gpuledger.web.maker`: orders on its input, answers on its output, each with its length before
it. Making statements keeps Python's lock for seconds on a large fleet; in the server's own process every viewer would
wait for it. The process is less urgent than the server, ends with it, and is started again if it dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from typing import IO, TYPE_CHECKING

import msgspec

from gpuledger import errors
from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.lake.processes import received, send
from gpuledger.settings import VARIABLE, in_force
from gpuledger.web.contract import Ask, Filters, NotReady, Status, View, Where

if TYPE_CHECKING:
    from gpuledger.web.views import Views

_NICE = 5
_AT_ONCE = 4


class Start(msgspec.Struct, frozen=True):
    """What the dashboard is about, and what its figures are made with."""

    lake: str
    default: Filters = Filters()
    edition: int = 0
    inventory: tuple[str, ...] = ()
    price: Decimal | dict[str, Decimal] | None = None
    where: Where = Where()


class Order(msgspec.Struct, frozen=True):
    """A view to make; without one the lake is looked at."""

    number: int
    ask: Ask | None = None


class Answer(msgspec.Struct, frozen=True):
    """What came of an order: a view, how the lake stands, or what went wrong."""

    number: int
    status: Status
    view: View | None = None
    news: bool = False
    kind: str = ""
    error: str = ""
    hint: str = ""


class MakerProcess:
    """Makes views of a lake in a process of its own; any thread may ask."""

    def __init__(self, start: Start) -> None:
        self._start, self.status = start, Status("loading", 0, None, int(time.time() * 1000))
        self._lock, self._starting, self._closed = threading.Lock(), threading.Lock(), False
        self._waiting: dict[int, Future[Answer]] = {}
        self._number, self._again_at, self._wait_s = 0, 0.0, 0.0
        self._process = self._begin()

    def check(self) -> None:
        """Wait until what the figures are made with was read; an error where it cannot be."""
        try:
            answer = self._hello.result()
        except LakeError:
            self.close()
            raise
        if answer.error:
            self.close()
            raise _raised(answer)

    def refresh(self) -> bool:
        """Look whether the lake changed; whether there is news. A process that died is started again."""
        if self._process.poll() is not None:
            return self._revive()
        try:
            answer = self._order(None)
        except LakeError:
            return self._revive()
        self._wait_s, self.status = 0.0, answer.status
        return answer.news

    def view(self, ask: Ask) -> View:
        """What is asked for."""
        answer = self._order(ask)
        if answer.view is None:
            raise _raised(answer)
        return answer.view

    def close(self) -> None:
        """End the process, for good."""
        with self._starting:
            self._closed = True
            self._end()

    def _end(self) -> None:
        with contextlib.suppress(OSError), self._lock:
            _pipe(self._process.stdin).close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(3)
        if not self._reader.is_alive():  # else the pipe is still being read
            _pipe(self._process.stdout).close()

    def _begin(self) -> subprocess.Popen[bytes]:
        settings = in_force().file
        own = {VARIABLE: str(settings)} if settings is not None else {}
        process = subprocess.Popen(
            [sys.executable, "-m", "gpuledger.web.maker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | own,
            start_new_session=True,  # Ctrl-C is for the server, which ends this process and those it started
        )
        self._hello = self._waiting[0] = Future()
        send(_pipe(process.stdin), msgspec.structs.replace(self._start, edition=self.status.edition))
        self._reader = threading.Thread(target=self._read, args=(_pipe(process.stdout),), daemon=True)
        self._reader.start()
        return process

    def _revive(self) -> bool:
        """Start again, after a while that grows where it dies again and again; whether that is news."""
        first = self.status.problem != _DIED
        self.status = replace(self.status, problem=_DIED, hint=_DIED_HINT)
        with self._starting:
            if time.monotonic() >= self._again_at and not self._closed:
                self._wait_s = min(max(self._wait_s * 2, 1.0), 30.0)
                self._again_at = time.monotonic() + self._wait_s
                self._end()
                self._process = self._begin()
        return first

    def _order(self, ask: Ask | None) -> Answer:
        with self._lock:
            self._number += 1
            number = self._number
            waiting = self._waiting[number] = Future()
            try:
                send(_pipe(self._process.stdin), Order(number, ask))
            except (OSError, ValueError) as error:  # it died, or is being started again
                self._waiting.pop(number, None)
                raise LakeError(_DIED, hint=_DIED_HINT) from error
        return waiting.result()

    def _read(self, pipe: IO[bytes]) -> None:
        """Hand on the answers of one process, until it ends."""
        while said := received(pipe):
            answer = msgspec.msgpack.decode(said, type=Answer)
            with self._lock:
                waiting = self._waiting.pop(answer.number, None)
            if waiting is not None:
                waiting.set_result(answer)
        with self._lock:
            left = list(self._waiting.values())
            self._waiting.clear()
        for waiting in left:
            waiting.set_exception(LakeError(_DIED, hint=_DIED_HINT))


def _raised(answer: Answer) -> Exception:
    """The error of the process as it was raised there."""
    if answer.kind == NotReady.__name__:
        return NotReady()
    kind = getattr(errors, answer.kind, LakeError)
    error: GpuledgerError = kind.__new__(kind)
    GpuledgerError.__init__(error, answer.error, hint=answer.hint)
    return error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


# -- the process


def main() -> None:
    """Answer orders until the input ends."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    _answer()


def _answer() -> None:
    from gpuledger.web.live_lake import LiveLake
    from gpuledger.web.views import Views

    out, lock = os.fdopen(os.dup(sys.stdout.fileno()), "wb"), threading.Lock()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is not an answer
    start = msgspec.msgpack.decode(received(sys.stdin.buffer), type=Start)

    def say(answer: Answer) -> None:
        with contextlib.suppress(BrokenPipeError), lock:
            send(out, answer)

    try:
        terms = {"inventory": list(start.inventory) or None, "price": start.price}
        views = Views(LiveLake(start.lake, start.default, start.edition, start.where, **terms))
    except GpuledgerError as error:
        now = Status("error", start.edition, None, 0)
        say(Answer(0, now, kind=type(error).__name__, error=error.message, hint=error.hint))
        return
    say(Answer(0, views.status))
    with ThreadPoolExecutor(_AT_ONCE) as workers, ThreadPoolExecutor(1) as looking:
        while said := received(sys.stdin.buffer):
            order = msgspec.msgpack.decode(said, type=Order)
            (looking if order.ask is None else workers).submit(lambda given: say(_done(views, given)), order)
        # The server is gone: no one waits for what is still being made, here or in processes that post days. What they
        # write is named by the ledger only once it is whole.
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(0)


def _done(views: Views, order: Order) -> Answer:
    try:
        if order.ask is None:
            news = views.refresh()
            return Answer(order.number, views.status, news=news)
        return Answer(order.number, views.status, views.view(order.ask))
    except GpuledgerError as error:
        return Answer(order.number, views.status, kind=type(error).__name__, error=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001  (the server must get an answer)
        kind = type(error).__name__
        return Answer(order.number, views.status, kind=kind, error=f"{kind}: {error}")


_DIED = "the process that makes the figures ended"
_DIED_HINT = "it is started again by itself; if that goes on, look at the memory of this machine"

if __name__ == "__main__":
    main()
