"""How do live samples get into the lake while they are made, and stay there whatever happens to us?

Rows wait in memory until the sampler has released them, every two seconds; then the writer thread makes a small part
of them. A part is in the lake whole or not at all, so a recorder that is killed loses only what it had not written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from gpuledger.devices.device import Facts, Row
from gpuledger.errors import GpuledgerError, map_os_error
from gpuledger.lake.layout import Lake
from gpuledger.recording.live_parts import Batch, Labels, LiveParts

MAX_HELD_ROWS = 1_000_000


class Recorder:
    """Takes rows from a sampler and appends them to a lake whenever it says that some were released.

    `labels_of` names the owners of a device's time where its rows come without; `before_flush` is done in the writer's
    thread.
    """

    def __init__(
        self,
        lake: Lake,
        labels_of: Callable[[Facts], Sequence[Labels]],
        before_flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._lake, self._labels_of = lake, labels_of
        self._before_flush = before_flush
        self._parts = LiveParts(lake)
        self._lock = threading.Lock()
        self._held: list[Batch] = []
        self._held_rows = 0
        self._due, self._closing = threading.Event(), False
        self._thread: threading.Thread | None = None
        self.rows_dropped = 0
        self.cpu_s = 0.0
        self.problem = ""

    @property
    def rows(self) -> int:
        """How many rows are in the lake."""
        return self._parts.rows

    def take(
        self, facts: Facts, columns: tuple[str, ...], rows: list[Row], owners: Sequence[Labels] | None = None
    ) -> None:
        """Keep finished rows of a device, of these owners, until the next flush; called by the sampler."""
        with self._lock:
            if self._held_rows + len(rows) > MAX_HELD_ROWS:
                self.rows_dropped += len(rows)
                return
            found = self._labels_of(facts) if owners is None else owners
            self._held.extend(Batch(facts, owner, columns, rows) for owner in found)
            self._held_rows += len(rows)

    def released(self) -> None:
        """Time to write; called by the sampler."""
        self._due.set()

    def start(self) -> None:
        """Write in a thread of its own."""
        self._thread = threading.Thread(target=self._write, name="gpuledger-writer", daemon=True)
        self._thread.start()

    def _write(self) -> None:
        begun = time.thread_time()
        while not self._closing:
            self._due.wait()
            self._due.clear()
            try:
                self._before_flush()
            except GpuledgerError as error:
                self.problem = str(error)
            self.flush()
            self.cpu_s = time.thread_time() - begun

    def close(self) -> None:
        """Write what is left and merge this recording's parts; raises where rows could not be written."""
        self._closing = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()
        error = self.flush()
        self._merge(self._parts.close)
        if error is not None:
            raise error

    def flush(self) -> GpuledgerError | None:
        """Put the rows held so far into the lake; what cannot be written is held and tried again."""
        with self._lock:
            batches, self._held, self._held_rows = self._held, [], 0
        if not batches:
            return None
        try:
            self._parts.append(batches)
        except (GpuledgerError, OSError, pa.ArrowException) as error:
            with self._lock:
                self._held = [*batches, *self._held]
                self._held_rows = sum(len(b.rows) for b in self._held)
            if not isinstance(error, GpuledgerError):
                cause = error if isinstance(error, OSError) else OSError(str(error))
                error = map_os_error(cause, self._lake.root, "write samples")
            self.problem = str(error)
            return error
        self.problem = ""
        self._merge(self._parts.tidy)
        return None

    def _merge(self, step: Callable[[], None]) -> None:
        """Make fewer parts. Where that fails nothing is lost: the small parts stay as they are."""
        try:
            step()
        except (GpuledgerError, OSError, pa.ArrowException) as error:
            self.problem = self.problem or f"could not merge small parts: {error}"
