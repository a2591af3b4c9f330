"""What is answered without making it again? Every view of this edition that someone asked for before."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict

from gpuledger.errors import GpuledgerError
from gpuledger.web.contract import Ask, Maker, NotReady, View

KEPT_BYTES = 128 << 20
AHEAD = 16  # views made for a new edition before viewers hear of it: those looked at lately
AHEAD_S = 10.0
LATELY_S = 300.0
FIRST = Ask("page", "/")
# As the routes ask for them where an address names nothing.
REST = (
    Ask("metrics", ""),
    Ask("page", "/gpus", params=(("q", ""), ("sort", ""), ("page", 1))),
    Ask("page", "/timeline"),
    Ask("page", "/savings"),
    Ask("page", "/owners", params=(("by", ""),)),
    Ask("page", "/energy"),
    Ask("page", "/plans"),
)


class Desk:
    """Keeps the views of an edition as bytes; each is made once, whoever asks."""

    def __init__(self, maker: Maker) -> None:
        self._maker, self.status = maker, maker.status
        self._kept: OrderedDict[tuple[int, Ask], bytes] = OrderedDict()
        self._size = 0
        self._asked_at: OrderedDict[Ask, float] = OrderedDict()
        self._making: dict[tuple[int, Ask], asyncio.Task[View]] = {}
        self._lock, self._closed = threading.Lock(), False

    def close(self) -> None:
        """Make no more."""
        self._closed = True
        self._maker.close()

    # -- from the thread that looks at the lake

    def look(self) -> bool:
        """See whether the lake changed, and make what viewers look at; whether there is news for them."""
        if not self._maker.refresh():
            return False
        status = self._maker.status
        if status.state == "ready" and status.edition != self.status.edition:
            self._make_ahead()
        self.status = status
        with self._lock:
            for key in [key for key in self._kept if key[0] != status.edition]:
                self._size -= len(self._kept.pop(key))
        return True

    def _make_ahead(self) -> None:
        """The first page, then what was looked at lately, the latest first, for as long as viewers can wait."""
        since = time.monotonic()
        with self._lock:
            lately = [
                ask for ask, at in reversed(self._asked_at.items())
                if since - at < LATELY_S and ask != FIRST and "minute" not in dict(ask.params)
            ]  # fmt: skip
        for ask in [FIRST, *lately[: AHEAD - 1]]:
            try:
                self._keep(ask, self._maker.view(ask))
            except (GpuledgerError, NotReady):
                continue  # whoever asks for it learns why
            if time.monotonic() - since > AHEAD_S:
                return

    def make_rest(self) -> None:
        """The figures of a scrape, and every other page as most viewers ask for it: sooner or later each is."""
        for ask in REST:
            if self._closed:
                return
            with contextlib.suppress(GpuledgerError, NotReady):
                self._keep(ask, self._maker.view(ask))

    # -- from the server's loop

    def kept(self, ask: Ask) -> bytes | None:
        """What is asked for, if it was made already."""
        with self._lock:
            self._asked_at[ask] = time.monotonic()
            self._asked_at.move_to_end(ask)
            while len(self._asked_at) > 4 * AHEAD:
                self._asked_at.popitem(last=False)
            key = (self.status.edition, ask)
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    async def answer(self, ask: Ask) -> bytes:
        """What is asked for; those who ask for the same at the same time wait together."""
        if self.status.state != "ready":
            raise NotReady
        found = self.kept(ask)
        if found is not None:
            return found
        key = (self.status.edition, ask)
        task = self._making.get(key)
        if task is None:
            task = self._making[key] = asyncio.create_task(asyncio.to_thread(self._made, ask))
            task.add_done_callback(lambda _done: self._making.pop(key, None))
        return (await asyncio.shield(task)).body

    def _made(self, ask: Ask) -> View:
        view = self._maker.view(ask)
        self._keep(ask, view)
        return view

    def _keep(self, ask: Ask, view: View) -> None:
        key = (view.edition, ask)
        with self._lock:
            self._size += len(view.body) - len(self._kept.get(key, b""))
            self._kept[key] = view.body
            while self._size > KEPT_BYTES and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped)
