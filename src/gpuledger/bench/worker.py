"""How does one worker carry out its orders and account for each of them?

The same code runs in a local process (`python -m gpuledger.bench.worker`) and in a Ray actor. It opens its target,
warms it up, waits at the barrier, sends its orders and reports every answer within a tenth of a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from gpuledger.bench import crew
from gpuledger.bench.client import ClientWatch, machine_facts
from gpuledger.bench.crew import Message, Task, read_frame, unpack_task, write_frame
from gpuledger.bench.load import Order
from gpuledger.bench.record_fields import line_of
from gpuledger.bench.records import NOT_GIVEN, Request
from gpuledger.bench.targets import TARGETS, Answer, Target
from gpuledger.errors import GpuledgerError
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.bench.ray_crew import Outpost

FLUSH_S = 0.1
TOGETHER_S = 0.02
BEAT_S = 1.0
# Where requests are sent when they are due, warm-up still needs a number.
WARM_CONCURRENCY = 8


def request_line(node: str, order: Order, start_s: float, answer: Answer) -> Request:
    """What is kept of one order."""
    due = {} if order.due_s is None else {"due_s": round(order.due_s, 6)}
    asked = {"input_tokens_asked": order.input_tokens, "output_tokens_asked": order.output_tokens}
    return Request(
        node=node,
        request=order.request,
        ok=answer.ok,
        start_s=round(start_s, 6),
        ttft_s=round(answer.ttft_s, 6) if isinstance(answer.ttft_s, float) else answer.ttft_s,
        latency_s=round(answer.latency_s, 6),
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        error=answer.error,
        warmup=order.warmup,
        batch=Unknown(NOT_GIVEN) if order.batch is None else order.batch,
        more={**due, **asked, **answer.more},
    )


class Worker:
    """One worker and its task. `talk`: its line to the runner."""

    def __init__(self, task: Task, talk: _Pipes | Outpost) -> None:
        self._task, self._talk = task, talk
        self._zero: float | None = None
        self._early: list[tuple[Order, float, Answer]] = []
        self._names: list[int | str] = []
        self._lines: list[bytes] = []
        self._last_end_s = 0.0
        self._flushed_s = 0.0
        self._latencies: list[float] = []
        self._late: list[float] = []

    async def work(self) -> None:
        """From opening to the last answer; whatever goes wrong is reported."""
        loop = asyncio.get_running_loop()
        beat = loop.create_task(self._beat())
        try:
            await self._carry_out(loop)
        except GpuledgerError as error:
            self._talk.say(crew.Gone(self._task.node, str(error)))
        except Exception as error:  # noqa: BLE001 - the runner must hear of it, whatever it is
            self._talk.say(crew.Gone(self._task.node, f"{type(error).__name__}: {error}"))
        finally:
            beat.cancel()

    async def _carry_out(self, loop: asyncio.AbstractEventLoop) -> None:
        task, watch = self._task, ClientWatch()
        target = TARGETS.get(task.target)(task.settings, task.seed, task.timeout_s)
        opened = await target.open()
        first = task.phases[0]
        await self._closed(target, first.warmup, first.concurrency or WARM_CONCURRENCY)
        recording: WorkerRecording | None = None
        if task.device:  # its libraries are heavy, and most workers have none
            from gpuledger.bench.telemetry import WorkerRecording

            recording = WorkerRecording(task.run, task.device, task.hz, {"workload": "bench"})
        machine = machine_facts() | (recording.facts if recording else {})
        self._talk.say(
            crew.Ready(task.node, {**opened.facts, **target.found()}, machine, opened.problem, opened.unreachable)
        )
        await self._talk.go()
        self._zero = loop.time()
        for order, start, answer in self._early:
            self._keep(order, start, answer)
        watch.start()
        for number, phase in enumerate(task.phases):
            if number:
                await self._closed(target, phase.warmup, phase.concurrency or WARM_CONCURRENCY)
            if phase.concurrency is None:
                await self._open_loop(target, phase.orders)
            else:
                await self._closed(target, phase.orders, phase.concurrency)
        client = await watch.stop(self._latencies, self._late, remote=target.remote)
        self._flush()
        await target.close()
        telemetry = recording.stop() if recording else ()
        self._talk.say(crew.Done(task.node, client, dict(target.found()), telemetry))

    async def _closed(self, target: Target, orders: Sequence[Order], concurrency: int) -> None:
        """At most `concurrency` at once, the next as soon as one is answered."""
        waiting = iter(orders)

        async def slot() -> None:
            for order in waiting:
                await self._one(target, order)

        await asyncio.gather(*(slot() for _ in range(min(concurrency, len(orders)))))

    async def _open_loop(self, target: Target, orders: Sequence[Order]) -> None:
        """Each when it is due, whether or not earlier ones were answered."""
        loop, under_way = asyncio.get_running_loop(), set()
        assert self._zero is not None
        for order in orders:
            due = self._zero + (order.due_s or 0.0)
            if (wait_s := due - loop.time()) > 0:
                await asyncio.sleep(wait_s)
            self._late.append(max(0.0, loop.time() - due))
            asked = loop.create_task(self._one(target, order))
            under_way.add(asked)
            asked.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)

    async def _one(self, target: Target, order: Order) -> None:
        start = asyncio.get_running_loop().time()
        self._keep(order, start, await target.ask(order))

    def _keep(self, order: Order, start: float, answer: Answer) -> None:
        if self._zero is None:  # warm-up before the barrier: its start is known once the common one is
            self._early.append((order, start, answer))
            return
        start_s = start - self._zero
        self._names.append(order.request)
        request = request_line(self._task.node, order, start_s, answer)
        self._lines.append(msgspec.json.encode(line_of(request), enc_hook=_plain) + b"\n")
        if not order.warmup:
            self._last_end_s = max(self._last_end_s, start_s + answer.latency_s)
            if answer.ok:
                self._latencies.append(answer.latency_s)
        # Many in a short time travel together; a single one goes at once, so that a crash costs as little as possible.
        if asyncio.get_running_loop().time() - self._flushed_s > TOGETHER_S:
            self._flush()

    def _flush(self) -> None:
        self._flushed_s = asyncio.get_running_loop().time()
        self._talk.say(crew.Records(self._task.node, tuple(self._names), b"".join(self._lines), self._last_end_s))
        self._names, self._lines = [], []

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(FLUSH_S)
            if self._names or loop.time() - self._flushed_s > BEAT_S:
                self._flush()


def _plain(value: Any) -> Any:
    """A value that JSON does not know: a number of numpy or torch as a number, anything else as text."""
    try:
        return value.item()
    except (AttributeError, ValueError, RuntimeError, TypeError):
        return str(value)


class _Pipes:
    """The line of a local process: frames on its original output, one byte on its input for the start."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._started = asyncio.Event()

    def listen(self, source: BinaryIO) -> None:
        """In a thread: wait for the start, then for the end of the runner, which ends the worker too."""
        loop = asyncio.get_running_loop()

        def wait(end: Callable[[int], object] = os._exit) -> None:
            if source.read(1):
                loop.call_soon_threadsafe(self._started.set)
                source.read(1)
            end(1)

        threading.Thread(target=wait, daemon=True).start()

    def say(self, message: Message) -> None:
        """Write a frame; without a reader the worker ends."""
        try:
            write_frame(self._out, message)
        except OSError:
            os._exit(1)

    async def go(self) -> None:
        """Wait for the byte."""
        await self._started.wait()


async def _main(source: BinaryIO, out: BinaryIO) -> None:
    if (raw := read_frame(source)) is not None:
        pipes = _Pipes(out)
        pipes.listen(source)
        await Worker(unpack_task(raw), pipes).work()


def main() -> None:
    """Read a task from the input and write messages to the output; what the target prints goes to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(sys.stdin.buffer, out))
    out.flush()
    # Threads of a user's function may never end: they must not keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
