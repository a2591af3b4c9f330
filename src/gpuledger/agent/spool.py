"""Where do samples wait on the host, and what goes when there are too many?

SPOOL/live/       a lake of its own: the recording writes here, as any recording does
SPOOL/outbox/     sealed batches, one Parquet file each, oldest first; a file goes when the lake has its rows
SPOOL/jobs/       tables of jobs that a prolog or an epilog left (CSV)
SPOOL/refused/    what the lake could not read
SPOOL/state.json  what was shipped and what was lost

Sealing links a part into the outbox and then takes it out of `live`. Killed in between, the part is sealed again: the
lake is a set of rows, so a batch shipped twice adds nothing. When the spool is full the oldest batches go: the newest
samples are the ones that alerts and running jobs need. What goes is counted in state.json before its file is deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpuledger.agent.notes import Loss, Why, with_loss
from gpuledger.errors import GpuledgerError, InputError, map_os_error
from gpuledger.lake.json_files import read_json, write_json
from gpuledger.lake.layout import Lake, sync
from gpuledger.lake.manifest import Part
from gpuledger.lake.parts import merge_day

STATE_VERSION = 1
_BATCH = re.compile(r"(\d{8,15})-(\d{4}-\d{2}-\d{2})-(\d+)-(-?\d+)-(-?\d+)\.parquet")
_WHAT = "the state of a spool"


@dataclass(frozen=True)
class Batch:
    """Sealed rows of one day."""

    file: Path
    number: int
    day: str
    rows: int
    first_ms: int
    last_ms: int

    def loss(self, why: Why) -> Loss:
        """The batch as something that is gone."""
        return Loss(why, self.rows, self.first_ms, self.last_ms)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the batches so far. `lake`: where the last one went; `going`: files counted as lost, not yet
    deleted; `id`: tells this spool from others of the same host.
    """

    version: int = STATE_VERSION
    id: str = ""
    lake: str = ""
    last_ship_ms: int | None = None
    shipped_rows: int = 0
    shipped_batches: int = 0
    rejected_rows: int = 0
    failures: int = 0
    problem: str = ""
    losses: tuple[Loss, ...] = ()
    going: tuple[str, ...] = ()


class Spool:
    """A spool at `root`, kept below `most` bytes."""

    def __init__(self, root: Path, most: int) -> None:
        self.root, self.most = root, most
        self.live = Lake(root / "live")
        self.outbox, self.jobs, self.refused = (root / name for name in ("outbox", "jobs", "refused"))
        self.in_flight: frozenset[Path] = frozenset()

    def prepare(self) -> None:
        """Make the folders, and finish what a killed agent left half-done."""
        try:
            for folder in (self.outbox, self.jobs, self.refused):
                folder.mkdir(parents=True, exist_ok=True)
            self._finish_going()
        except OSError as error:
            raise map_os_error(error, self.root, "write the spool") from error
        if not self.state().id:
            with contextlib.suppress(GpuledgerError):  # a full disk keeps no agent from recording
                self.change(lambda s: msgspec.structs.replace(s, id=s.id or secrets.token_hex(4)))

    @contextlib.contextmanager
    def owned(self) -> Iterator[None]:
        """One agent per spool, so that no GPU is recorded twice."""
        # Not at once: `is_owned` holds the lock for an instant.
        with self._lock("agent.lock", 0.5, "another agent records into this spool"):
            yield

    def is_owned(self) -> bool | None:
        """Whether an agent records into it at this moment; None where that cannot be known from here."""
        try:
            handle = os.open(self.root / "agent.lock", os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
        else:
            return False
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def shipping(self, wait_s: float) -> Iterator[None]:
        """One shipment at a time."""
        with self._lock("ship.lock", wait_s, f"another agent has been shipping from it for {wait_s:.0f} s"):
            yield

    @contextlib.contextmanager
    def _lock(self, name: str, wait_s: float, problem: str) -> Iterator[None]:
        until = time.monotonic() + wait_s
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / name, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise map_os_error(error, self.root, "write the spool") from error
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        hint = "gpuledger agent status shows it; or give another --spool"
                        raise InputError(f"{self.root}: {problem}", hint=hint) from None
                    time.sleep(0.05)
            yield
        finally:
            os.close(handle)

    def state(self) -> State:
        """What became of the batches so far."""
        file = self.root / "state.json"
        return read_json(file, State, STATE_VERSION, _WHAT) if file.exists() else State()

    def change(self, how: Callable[[State], State]) -> State:
        """Replace the state by what `how` makes of it; threads and processes wait for each other."""
        with self._lock("state.lock", 60.0, "its state is locked"):
            after = how(self.state())
            write_json(self.root / "state.json", after, _WHAT)
        return after

    def batches(self) -> list[Batch]:
        """The sealed batches, oldest first."""
        found = [b for f in self.outbox.glob("*.parquet") if (b := _batch(f)) is not None]
        return sorted(found, key=lambda b: b.number)

    def size_bytes(self) -> int:
        """How much the spool holds."""
        return sum(_size(f) for f in self.root.rglob("*") if f.is_file())

    def seal(self) -> None:
        """Make batches of what the recording has written."""
        live = self.live
        if not live.exists() or not live.manifest().parts:
            return
        try:
            with live.locked():
                sealed = [merge_day(live, day) for day in live.manifest().days()]
                for part in sealed:
                    with contextlib.suppress(FileExistsError):
                        os.link(live.path(part), self.outbox / _name(part))
                sync(self.outbox)
                live.commit([], replaces=tuple(part.id for part in sealed))
                live.sweep()
        except OSError as error:
            raise map_os_error(error, self.root, "write the spool") from error

    def keep_within(self) -> tuple[Loss, ...]:
        """Let the oldest go until the spool fits; returns what was lost by it."""
        over = self.size_bytes() - self.most
        if over <= 0:
            return ()
        for file in sorted(self.refused.iterdir(), key=lambda f: f.name):  # counted as lost already
            if over > 0:
                over -= _size(file)
                file.unlink(missing_ok=True)
        going = []
        for batch in (b for b in self.batches() if b.file not in self.in_flight):
            if over <= 0:
                break
            over -= _size(batch.file)
            going.append(batch)
        return self.lose(going, Why.SPOOL_FULL)

    def lose(self, batches: Iterable[Batch], why: Why) -> tuple[Loss, ...]:
        """Count batches as lost, then delete them."""
        gone = tuple(batches)
        if not gone:
            return ()

        def counted(state: State) -> State:
            losses = state.losses
            for batch in gone:
                losses = with_loss(losses, batch.loss(why))
            return msgspec.structs.replace(state, losses=losses, going=tuple(b.file.name for b in gone))

        self.change(counted)
        self._finish_going()
        return tuple(b.loss(why) for b in gone)

    def _finish_going(self) -> None:
        """Delete what was counted as lost."""
        going = self.state().going
        for name in going:
            (self.outbox / name).unlink(missing_ok=True)
        if going:
            self.change(lambda state: msgspec.structs.replace(state, going=()))

    def refuse(self, file: Path) -> None:
        """Put a file aside that the lake cannot read, so that the others get through; its rows count as lost."""
        batch = _batch(file)
        if batch is not None:
            with contextlib.suppress(OSError):
                os.link(file, self.refused / file.name)
            self.lose([batch], Why.REFUSED)
        else:
            file.replace(self.refused / file.name)


def _name(part: Part) -> str:
    return f"{part.id:08d}-{part.day}-{part.rows}-{part.first_ms}-{part.last_ms}.parquet"


def _batch(file: Path) -> Batch | None:
    found = _BATCH.fullmatch(file.name)
    return Batch(file, int(found[1]), found[2], int(found[3]), int(found[4]), int(found[5])) if found else None


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
