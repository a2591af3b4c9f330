"""How do batches get from the spool into the lake, each row once, however often it takes?

A batch is imported by the call that `gpuledger import` makes, and deleted when that has returned. Whatever fails, the
batch stays and is tried again: after a few seconds, then at growing intervals up to five minutes, never all hosts at
the same moment. A batch of a day that the lake has closed, or one that the lake cannot read, is counted as lost and
does not hold up the others.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from gpuledger.agent.mounts import not_mounted
from gpuledger.agent.notes import Why
from gpuledger.agent.spool import Batch, Spool
from gpuledger.errors import FileFault, LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.jobs.adding import add_jobs
from gpuledger.lake.layout import Lake

FIRST_RETRY_S = 5.0
LAST_RETRY_S = 300.0
# One import takes at most this much: what waited through an outage comes in pieces that fit into memory.
MOST_FILES = 120
MOST_ROWS = 500_000
WAIT_S = 30.0


class Shipper:
    """Ships a spool to a lake."""

    def __init__(
        self, spool: Spool, lake: Lake, address: str, say: Callable[[str], None] = lambda _words: None
    ) -> None:
        self._spool, self._lake, self._address, self._say = spool, lake, address, say
        self._failed = 0
        self.cpu_s = 0.0

    def ship(self) -> int:
        """Ship all sealed batches and job tables; returns how many rows were new to the lake. Raises what failed."""
        added = 0
        with self._spool.shipping(WAIT_S):
            try:
                is_new = not self._lake.exists()
                for some in self._groups():
                    added += self._import(some)
                self._add_jobs()
            except Exception as error:
                self._failed += 1
                problem = str(error) or type(error).__name__
                self._spool.change(lambda s: replace(s, failures=s.failures + 1, problem=problem))
                raise
            finally:
                self._spool.in_flight = frozenset()
        self._failed = 0
        if is_new and added:
            self._say(f"started a new lake: {self._address} held none")
        now_ms = time.time_ns() // 1_000_000
        self._spool.change(lambda s: replace(s, problem="", last_ship_ms=now_ms, lake=self._address))
        return added

    @property
    def failing(self) -> bool:
        """Whether the last shipment failed."""
        return self._failed > 0

    def retry_s(self, every_s: float) -> float:
        """How long to wait for the next shipment: longer after each failure, and not the same on every host."""
        steady = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** (self._failed - 1)) if self._failed else every_s
        return steady * random.uniform(0.9, 1.1)  # noqa: S311 - spreads hosts, guards nothing

    def _groups(self) -> Iterator[list[Batch]]:
        self._check_lake()
        closed = self._lake.manifest().closed_before if self._lake.exists() else ""
        waiting = self._spool.batches()
        self._spool.lose([b for b in waiting if b.day < closed], Why.DAY_CLOSED)
        group: list[Batch] = []
        for batch in (b for b in waiting if b.day >= closed):
            if group and (len(group) >= MOST_FILES or sum(b.rows for b in group) + batch.rows > MOST_ROWS):
                yield group
                group = []
            group.append(batch)
        if group:
            yield group

    def _check_lake(self) -> None:
        """Never start a lake on the local disk in place of one on a share that is not mounted."""
        if self._lake.exists():
            return
        state = self._spool.state()
        if state.shipped_batches and state.lake == self._address:
            raise LakeError(
                f"{self._address}: the lake is gone, though {state.shipped_batches:,} batches were shipped to it",
                hint="is the share mounted? To start a new lake there, delete state.json of the spool",
            )
        if not self._lake.store.remote and (point := not_mounted(self._lake.root)) is not None:
            raise LakeError(
                f"{self._address}: nothing is mounted at {point}, though /etc/fstab names it; no lake was started",
                hint=f"mount {point}; samples wait in the spool until then",
            )

    def _import(self, group: Sequence[Batch]) -> int:
        """Import some batches and delete them; what the lake cannot read is put aside."""
        files = [b.file for b in group]
        while files:
            self._spool.in_flight = frozenset(files)
            files = [f for f in files if f.exists()]
            if not files:
                return 0
            try:
                done = import_files(self._lake, files, processes=1)
            except FileFault as fault:
                broken = Path(fault.path)
                if broken not in files:
                    raise
                if broken.exists():
                    self._spool.refuse(broken)
                files.remove(broken)
                continue
            self._count(sum(b.rows for b in group if b.file in files), len(files), done.rows_rejected)
            for file in files:
                file.unlink(missing_ok=True)
            return done.rows_added
        return 0

    def _count(self, rows: int, batches: int, rejected: int) -> None:
        self._spool.change(
            lambda s: replace(
                s,
                lake=self._address,
                shipped_rows=s.shipped_rows + rows,
                shipped_batches=s.shipped_batches + batches,
                rejected_rows=s.rejected_rows + rejected,
            )
        )

    def _add_jobs(self) -> None:
        for file in sorted(self._spool.jobs.glob("*.csv")):
            try:
                add_jobs(self._lake, [file], zone="UTC")
            except FileFault as fault:
                if Path(fault.path) != file:
                    raise
                self._spool.refuse(file)
            else:
                file.unlink(missing_ok=True)


def first_s(every_s: float) -> float:
    """How long to wait for the first shipment: hosts that start together ship apart, all over the interval."""
    return every_s * random.random()  # noqa: S311 - spreads hosts, guards nothing


class ShippingThread:
    """Ships in a thread of its own: a lake that hangs does not hold up the recording."""

    def __init__(self, shipper: Shipper, every_s: float, after: Callable[[], None] = lambda: None) -> None:
        self._shipper, self._every_s, self._after = shipper, every_s, after
        self._due, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="gpuledger-shipper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        wait_s = first_s(self._every_s)
        last = False
        while not last:
            self._due.wait(wait_s)
            self._due.clear()
            last = self._stopping
            begun = time.thread_time()
            try:
                self._shipper.ship()
                self._after()
            except Exception:  # noqa: BLE001, S110 - noted in the spool; whatever the lake answers, it is tried again
                pass
            self._shipper.cpu_s += time.thread_time() - begun
            wait_s = self._shipper.retry_s(self._every_s)

    def finish(self, grace_s: float) -> bool:
        """Ship once more and end; whether that was done in time."""
        self._stopping = True
        self._due.set()
        self._thread.join(grace_s)
        return not self._thread.is_alive()
