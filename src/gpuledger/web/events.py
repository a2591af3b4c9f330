"""How does a page learn that the lake has news? By events from the server, each with the number of the edition."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

from gpuledger.web.live_lake import LiveLake

ALIVE_S = 15.0
BEHIND = 64  # events a viewer may be behind before it is let go; its browser connects again


class Hub:
    """Tells every viewer of a new edition, and looks for one every few seconds in a thread of its own."""

    def __init__(self, live: LiveLake, every_s: float, warm: Callable[[], None]) -> None:
        self.live, self._every_s, self._warm = live, every_s, warm
        self._viewers: set[asyncio.Queue[int]] = set()
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to look, from within the server's loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    @property
    def viewers(self) -> int:
        """How many pages are open."""
        return len(self._viewers)

    def _watch(self) -> None:
        while True:
            news = self.live.refresh()
            if news and self.live.status.state == "ready":
                self._warm()  # the first page is there before anyone asks for it
            if news and self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the server is closing
                    self._loop.call_soon_threadsafe(self._tell, self.live.status.edition)
            if self._stop.wait(self._every_s):
                return

    def _tell(self, edition: int) -> None:
        for queue in list(self._viewers):
            try:
                queue.put_nowait(edition)
            except asyncio.QueueFull:
                self._viewers.discard(queue)

    async def events(self, seen: int) -> AsyncIterator[str]:
        """The stream of one viewer, who has seen the edition `seen`."""
        queue: asyncio.Queue[int] = asyncio.Queue(BEHIND)
        self._viewers.add(queue)
        try:
            yield "retry: 2000\n\n"
            now = self.live.status.edition
            if now != seen:
                yield _event(now)
            while queue in self._viewers:
                try:
                    yield _event(await asyncio.wait_for(queue.get(), ALIVE_S))
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._viewers.discard(queue)


def _event(edition: int) -> str:
    return f"id: {edition}\nevent: edition\ndata: {edition}\n\n"
