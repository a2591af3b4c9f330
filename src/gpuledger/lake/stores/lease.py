"""Who may write to a lake in a bucket now, when its hosts share no clock and no lock?

LAKE/lock.json names the holder and a turn that it counts up every few seconds. It changes only by swaps, so of two that
want it one gets it. Whoever waits takes over from a holder whose turn stood still for `LOST_S` on the waiter's own
clock: no two clocks are ever compared. A holder that was stopped for longer than that may still believe it holds the
lease; its next commit fails, because every manifest is replaced only if it is the one read under the lease.
The lease thus keeps writers from working in vain; the swap of the manifest keeps the lake right.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gpuledger.errors import LakeError
from gpuledger.lake.stores.bucket import Bucket, Mark
from gpuledger.lake.stores.faults import not_conditional

NAME = "lock.json"
VERSION = 1
RENEW_S = 5.0
LOST_S = 30.0
_LOOK_S = (0.05, 1.0)


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lease; an empty `holder`: it is free. `nonce`: no two contents are the same."""

    version: int = VERSION
    holder: str = ""
    host: str = ""
    pid: int = 0
    turn: int = 0
    nonce: str = ""


class Overtaken(LakeError):
    """Another writer took the lake over; nothing of this commit was written."""


class Lease:
    """The right to write below one folder of a bucket. `holder`: this machine; no two processes of it ask at once."""

    def __init__(self, bucket: Bucket, folder: str, holder: str) -> None:
        self._bucket, self._holder = bucket, holder
        self._key = f"{folder}/{NAME}" if folder else NAME
        self._turn, self._mark = 0, Mark(None, None)
        self._stop, self._lost = threading.Event(), False
        self._tried: set[str] = set()
        self.written_s = 0.0

    @property
    def lost(self) -> bool:
        """Whether another writer has taken over."""
        return self._lost

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lease, keep it up, give it back."""
        self._take()
        self._stop.clear()
        renewing = threading.Thread(target=self._renew, name="gpuledger-lease", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            self._stop.set()
            renewing.join()
            with contextlib.suppress(LakeError):  # a server that is away: whoever comes next takes over
                if not self._lost:
                    self._swap(free=True)

    def _take(self) -> None:
        self._lost = False
        seen, since, wait_s = None, 0.0, _LOOK_S[0]
        while True:
            mark, raw = self._bucket.read_now(self._key)
            if mark is None:
                self._mark, self._turn = Mark(None, None), 0
                if self._swap(first=True):
                    self._check_conditions()
                    return
                continue
            now = _decoded(raw)
            if mark != seen:
                seen, since = mark, time.monotonic()
            # One process of this machine asks at a time: what it still holds was left by one that was killed.
            if now.holder in ("", self._holder) or time.monotonic() - since > LOST_S:
                self._mark, self._turn = mark, now.turn
                if self._swap():
                    return
            time.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311
            wait_s = min(wait_s * 1.5, _LOOK_S[1])

    def _swap(self, *, first: bool = False, free: bool = False) -> bool:
        """Write the next turn; False where another writer came first."""
        turn = Holding(turn=self._turn + 1, nonce=secrets.token_hex(8))
        if not free:
            turn = replace(turn, holder=self._holder, host=socket.gethostname(), pid=os.getpid())
        self._tried.add(turn.nonce)
        made = self._bucket.swap(self._key, msgspec.json.encode(turn), None if first else self._mark)
        if made is None:
            mark, raw = self._bucket.read_now(self._key)
            found = _decoded(raw)
            if mark is None or found.nonce not in self._tried:
                return False
            # An earlier turn of ours did arrive, though the answer did not.
            self._mark, self._turn = mark, found.turn
            return self._swap(free=free)
        self._mark, self._turn, self.written_s = made, turn.turn, time.time()
        self._tried.clear()
        return True

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_S):
            with contextlib.suppress(LakeError):  # not reached: the next try may, and until then none can take over
                if not self._swap():
                    self._lost = True
                    return

    def _check_conditions(self) -> None:
        """Refuse a server that overwrites whatever the condition: there the promise cannot be kept."""
        again = msgspec.json.encode(Holding(turn=self._turn, holder=self._holder, nonce=secrets.token_hex(8)))
        before = self._bucket.read_now(self._key)[0]
        made = self._bucket.create(self._key, again)
        wrong = Mark('"00000000000000000000000000000000"', "1" if before is not None and before.version else None)
        if made or self._bucket.swap(self._key, again, wrong) is not None:
            self._bucket.delete([self._key])
            raise not_conditional(self._bucket.at(self._key))


def _decoded(raw: bytes | None) -> Holding:
    try:
        return msgspec.json.decode(raw or b"{}", type=Holding)
    except msgspec.DecodeError:  # not ours: waited for like any other that stands still
        return Holding(holder="unknown")
