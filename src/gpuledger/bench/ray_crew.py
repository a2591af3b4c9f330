"""How do the same workers run on the machines of a Ray cluster?"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any

from gpuledger.bench.crew import Gone, Inbox, Message, Task, pack, unpack_message, unpack_task
from gpuledger.bench.worker import Worker
from gpuledger.lake.engines import cluster

POLL_S = 0.2
NO_CLUSTER = "give the address of a running cluster (ray status shows it), or local to start one here"


class Outpost:
    """A worker inside an actor: its messages wait here until they are fetched."""

    def __init__(self, task: bytes) -> None:
        self._task = unpack_task(task)
        self._said: list[bytes] = []
        self._go = asyncio.Event()
        self._news = asyncio.Event()
        self._over = False

    def say(self, message: Message) -> None:
        """Keep it for the next fetch."""
        self._said.append(pack(message))
        self._news.set()

    async def go(self) -> None:
        """Wait at the barrier."""
        await self._go.wait()

    async def work(self) -> None:
        """Carry out the task."""
        await Worker(self._task, self).work()
        self._over = True
        self._news.set()

    async def let_go(self) -> None:
        """Open the barrier."""
        self._go.set()

    async def fetch(self) -> tuple[list[bytes], bool]:
        """The messages since the last fetch, and whether that was all; waits briefly for news."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), POLL_S)
        self._news.clear()
        said, self._said = self._said, []
        return said, self._over and not self._said


def connect(address: str) -> Any:
    """Ray, connected to a cluster; `local` starts one on this machine."""
    return cluster.connect(address, "a benchmark on Ray", NO_CLUSTER)


class RayCrew:
    """One actor per worker, spread over the machines of the cluster."""

    def __init__(self, ray: Any, *, gpus: float = 0.0) -> None:
        self._ray, self._gpus = ray, gpus
        self._actors: dict[str, Any] = {}
        self._threads: list[Thread] = []
        self._stop = Event()

    def start(self, tasks: Sequence[Task], inbox: Inbox) -> None:
        """Place the actors and set them to work."""
        outpost = self._ray.remote(Outpost)
        for task in tasks:
            actor = outpost.options(
                scheduling_strategy="SPREAD", max_concurrency=4, num_cpus=1, num_gpus=self._gpus
            ).remote(pack(task))
            self._actors[task.node] = actor
            actor.work.remote()
            thread = Thread(target=self._listen, args=(task.node, actor, inbox), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _listen(self, node: str, actor: Any, inbox: Inbox) -> None:
        why = "its worker ended"
        try:
            over = False
            while not over and not self._stop.is_set():
                said, over = self._ray.get(actor.fetch.remote())
                for raw in said:
                    inbox.put(unpack_message(raw))
        except Exception as error:  # noqa: BLE001 - Ray's errors are many; each means that the actor is gone
            why = f"its worker on the cluster died: {(str(error) or type(error).__name__).splitlines()[0]}"
        inbox.put(Gone(node, why))

    def go(self, nodes: Sequence[str]) -> float:
        """Signal each, and wait until all have received it."""
        begun = time.monotonic()
        signals = [self._actors[node].let_go.remote() for node in nodes]
        self._ray.wait(signals, num_returns=len(signals), timeout=30)
        return time.monotonic() - begun

    def kill(self, node: str) -> None:
        """End the actor."""
        self._ray.kill(self._actors[node], no_restart=True)

    def close(self) -> None:
        """End all actors."""
        self._stop.set()
        for node in self._actors:
            self.kill(node)
        for thread in self._threads:
            thread.join(5)
