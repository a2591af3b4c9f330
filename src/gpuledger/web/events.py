"""How does a page learn that the lake has news? By events from the server, each with the number of the edition."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator

from gpuledger.web.contract import Status
from gpuledger.web.desk import Desk

ALIVE_S = 15.0
BEHIND = 64  # events a viewer may be behind before it is let go; its browser connects again
MS_PER_VIEWER = 5  # pages are fetched again over this long per viewer, so that they do not all come at once
MOST_SPREAD_MS = 15_000


class Hub:
    """Tells every viewer of a new edition, and looks for one every few seconds in a thread of its own."""

    def __init__(self, desk: Desk, every_s: float, stale_ms: int | None = None) -> None:
        self._desk, self._every_s, self._stale_ms = desk, every_s, stale_ms
        self._viewers: set[asyncio.Queue[str]] = set()
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
        self._desk.close()
        self._thread.join(5)

    @property
    def viewers(self) -> int:
        """How many pages are open."""
        return len(self._viewers)

    def _watch(self) -> None:
        began = False
        while not self._stop.is_set():
            if self._desk.look() and self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the server is closing
                    self._loop.call_soon_threadsafe(self._tell, self._desk.status)
                if not began and self._desk.status.state == "ready":
                    began = True
                    self._desk.make_rest()
            if self._stop.wait(self._every_s):
                return

    def _tell(self, status: Status) -> None:
        event = _event(status, min(len(self._viewers) * MS_PER_VIEWER, MOST_SPREAD_MS))
        for queue in list(self._viewers):
            try:
                queue.put_nowait(event)
            except asyncio.QueueFull:
                self._viewers.discard(queue)

    async def events(self, seen: int) -> AsyncIterator[str]:
        """The stream of one viewer, who has seen the edition `seen`."""
        queue: asyncio.Queue[str] = asyncio.Queue(BEHIND)
        self._viewers.add(queue)
        try:
            now = self._desk.status
            yield f"retry: 2000\n\n{_clock(now, self._stale_ms)}"
            if now.edition != seen or now.problem:
                yield _event(now, 0)
            while queue in self._viewers:
                try:
                    yield await asyncio.wait_for(queue.get(), ALIVE_S)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._viewers.discard(queue)


def _event(status: Status, spread_ms: int) -> str:
    facts = {"edition": status.edition, "spread_ms": spread_ms, "state": status.state, "newest_ms": status.newest_ms}
    words = json.dumps(facts | {"problem": status.problem, "hint": status.hint})
    return f"id: {status.edition}\nevent: edition\ndata: {words}\n\n"


def _clock(status: Status, stale_ms: int | None) -> str:
    """What a page needs to show how old its newest sample is, whatever its own clock says."""
    facts = {"now_ms": int(time.time() * 1000), "newest_ms": status.newest_ms, "stale_ms": stale_ms}
    return f"event: clock\ndata: {json.dumps(facts)}\n\n"
