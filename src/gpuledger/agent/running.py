"""How does an agent run from its start to its end?

The recording runs in threads of its own and writes into the spool; a thread ships. This one seals what was recorded,
keeps the spool within its bound, begins the recording anew when a GPU was lost or a day has passed, and ends cleanly
when it is asked to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuledger import __version__
from gpuledger.agent.listening import Address, Listener
from gpuledger.agent.notes import AgentNotes, Loss, Why, forget_nameless, publish, with_loss, write_status
from gpuledger.agent.shipping import Shipper, ShippingThread
from gpuledger.agent.spool import Spool
from gpuledger.agent.status import counted, status_of
from gpuledger.errors import GpuledgerError, InputError
from gpuledger.lake.layout import Lake
from gpuledger.recording.record import Recording
from gpuledger.recording.runs import RunNotes
from gpuledger.units import GIB, count

TURN_S = 1.0
STATUS_S = 10.0
# A recording remembers the processes it has seen; a new one every day keeps that small.
RENEW_S = 24 * 3600.0
LOST_AGAIN_S = (60.0, 600.0)
LEAST_SPOOL = 16 << 20
# Sealed more often than shipped, so that a shipment has all but the last minute.
MOST_SEAL_S, AWAY_SEAL_S = 60.0, 300.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How an agent works. `lake`: the address as given; `grace_s`: how long the last shipment may take."""

    lake: str
    spool: Path
    spool_max: int = 2 * GIB
    hz: float = 1.0
    every_s: float = 60.0
    grace_s: float = 25.0
    device: str = "nvml"
    labels: Mapping[str, str] = field(default_factory=dict)
    listen: Address | None = None
    renew_s: float = RENEW_S
    flush_s: float = 10.0

    def __post_init__(self) -> None:
        if self.spool_max < LEAST_SPOOL:
            raise InputError(f"a spool of {self.spool_max:,} bytes is too small", hint="give at least 16MiB")
        if not 1 <= self.every_s <= 3600:
            raise InputError(f"cannot ship every {self.every_s:g} s", hint="give 1s to 1h; 60s is usual")


class Agent:
    """One agent on one host."""

    def __init__(self, settings: Settings, say: Say = lambda _words: None, state: str = "running") -> None:
        self._set, self._say = settings, say
        self.spool = Spool(settings.spool, settings.spool_max)
        self._lake = Lake(settings.lake)
        self._shipper = Shipper(self.spool, self._lake, settings.lake, say)
        self._stop = threading.Event()
        self._recording: Recording | None = None
        self._host = os.uname().nodename
        self._begun_s = 0.0
        self._expected: frozenset[str] = frozenset()
        self._started_ms = time.time_ns() // 1_000_000
        self._ticks, self._ticked_s = -1, time.monotonic()
        self._last_sample_ms: int | None = None
        self._seal_due_s = self._status_due_s = self._again_due_s = 0.0
        self._again_s = LOST_AGAIN_S[0]
        self._state, self._problem, self._shown, self._published = state, "", "", False

    def run(self) -> AgentNotes:
        """Record and ship until asked to end; the last notes."""
        with self.spool.owned(), contextlib.ExitStack() as opened:
            self.spool.prepare()
            for notes in (self.spool.live.root / "runs").glob("*.json"):  # of an agent that was killed
                notes.unlink()
            opened.enter_context(_asked_to_end(self._stop))
            if self._set.listen:
                opened.enter_context(Listener(self._set.listen, self.notes, self.unwell))
            self._begin()
            gpus, how = count(len(self._expected), "GPU"), self._set
            self._say(f"recording {gpus} at {how.hz:g} Hz, shipping to {how.lake} every {how.every_s:g} s")
            shipping = ShippingThread(self._shipper, self._set.every_s, self._publish)
            shipping.start()
            now = time.monotonic()
            self._seal_due_s, self._status_due_s = now + min(self._set.every_s, MOST_SEAL_S), now
            while not self._stop.wait(TURN_S):
                self._turn(time.monotonic())
            return self._end(shipping)

    def stop(self) -> None:
        """Ask it to end, as a signal does."""
        self._stop.set()

    def _begin(self) -> None:
        how = self._set
        recording = Recording(
            self.spool.live,
            hz=how.hz,
            labels=how.labels,
            device=how.device,
            flush_s=min(how.flush_s, how.every_s),
            of_job=False,
            of_host=True,
        )
        self._recording = recording.start()
        self._host = recording.labels.get("host", self._host)
        self._expected |= {d.facts.name for d in recording.devices}
        self._begun_s = self._ticked_s = time.monotonic()

    def _turn(self, now: float) -> None:
        """What is due every second, every ten, every minute."""
        self._look(now)
        if now >= self._seal_due_s:
            # While the lake is away, fewer and larger batches wait for it.
            self._seal_due_s = now + (AWAY_SEAL_S if self._shipper.failing else min(self._set.every_s, MOST_SEAL_S))
            self._seal()
        if now >= self._status_due_s:
            self._status_due_s = now + STATUS_S
            self._watch_recording(now)
            self._write_status()

    def _look(self, now: float) -> None:
        if self._recording is not None:
            ticks = self._recording.sampler.report().ticks
            if ticks != self._ticks:
                self._ticks, self._ticked_s = ticks, now

    def _seal(self) -> None:
        try:
            parts = self.spool.live.manifest().parts
            if parts:
                self._last_sample_ms = parts[-1].last_ms
            self.spool.seal()
            lost = self.spool.keep_within()
        except GpuledgerError as error:
            self._problem = str(error)
            with contextlib.suppress(GpuledgerError, OSError):  # a full disk: make room for what is newer
                self.spool.lose(self.spool.batches()[:1], Why.SPOOL_FULL)
        else:
            self._problem = ""
            for loss in lost:
                self._say(loss.words())

    def _watch_recording(self, now: float) -> None:
        """Begin anew once a day, and while a GPU is missing: one that was reset answers again."""
        if now - self._begun_s >= self._set.renew_s:
            self._expected = frozenset()
        elif self._expected <= self._answering():
            self._again_s = LOST_AGAIN_S[0]
            return
        elif now < self._again_due_s:
            return
        else:
            self._again_due_s = now + self._again_s
            self._again_s = min(LOST_AGAIN_S[1], 2 * self._again_s)
        self._stop_recording()
        try:
            self._begin()
        except GpuledgerError as error:
            self._say(f"not recording: {error}")

    def _answering(self) -> frozenset[str]:
        """The GPUs under recording that were not lost."""
        if self._recording is None:
            return frozenset()
        report = self._recording.sampler.report()
        return frozenset(d.facts.name for d in report.devices if d.lost_at_ms is None)

    def _stop_recording(self) -> RunNotes | None:
        old, self._recording = self._recording, None
        if old is None:
            return None
        try:
            notes = old.stop()
        except GpuledgerError as error:
            self._say(str(error))
            notes = old.notes()
        if notes.rows_dropped:
            span = (notes.started_ms, notes.ended_ms or notes.started_ms)
            self._lose_memory(Loss(Why.MEMORY_FULL, notes.rows_dropped, *span))
        if old.notes_file is not None:
            old.notes_file.unlink(missing_ok=True)
        return notes

    def _lose_memory(self, loss: Loss) -> None:
        import msgspec

        self.spool.change(lambda s: msgspec.structs.replace(s, losses=with_loss(s.losses, loss)))

    def _end(self, shipping: ShippingThread) -> AgentNotes:
        self._stop_recording()
        self._seal()
        self._state = "stopped"
        if not shipping.finish(self._set.grace_s):
            self._say(f"the last shipment took longer than {self._set.grace_s:g} s; the next start ships it")
        notes = self.notes()
        write_status(self.spool.root, notes)
        return notes

    def unwell(self) -> str:
        """Why no samples are taken; empty where they are. Measured on a clock that cannot be set."""
        if self._recording is None:
            return "no GPU answers"
        silent_s = time.monotonic() - self._ticked_s
        allowed_s = max(30.0, 5 / self._set.hz)
        return f"no sample for {silent_s:.0f} s" if silent_s > allowed_s else ""

    def notes(self) -> AgentNotes:
        """What the agent did so far."""
        recording, now, times = self._recording, counted(self.spool), os.times()
        now["problem"] = now["problem"] or self._problem
        parts = self.spool.live.manifest().parts if self.spool.live.exists() else ()
        return AgentNotes(
            host=self._host,
            state=self._state,
            at_ms=time.time_ns() // 1_000_000,
            started_ms=self._started_ms,
            lake=self._set.lake,
            every_s=self._set.every_s,
            pid=os.getpid(),
            gpuledger=__version__,
            last_sample_ms=parts[-1].last_ms if parts else self._last_sample_ms,
            spool_max_bytes=self._set.spool_max,
            cpu_s=round(times.user + times.system, 3),
            recording=recording.notes() if recording else None,
            **now,
        )

    def _write_status(self) -> None:
        try:
            notes = self.notes()
            write_status(self.spool.root, notes)
        except GpuledgerError as error:
            self._say(str(error))
            return
        if notes.problem != self._shown:
            self._shown = notes.problem
            self._say(notes.problem or "shipping works again")

    def _publish(self) -> None:
        notes = self.notes()
        publish(self._lake, notes)
        if not self._published:
            forget_nameless(self._lake, notes.host)
            self._published = True


def ship_once(settings: Settings, say: Say = lambda _words: None) -> AgentNotes:
    """Seal and ship what a spool holds, next to a running agent or without one; raises where the lake cannot be
    reached. The lake's notes of the agent, if one ever ran, are brought up to date.
    """
    agent, lake = Agent(settings, state="shipped"), Lake(settings.lake)
    agent.spool.prepare()
    agent.spool.seal()
    agent.spool.keep_within()
    Shipper(agent.spool, lake, settings.lake, say).ship()
    if (of_agent := status_of(settings.spool)) is not None and lake.exists():
        publish(lake, of_agent)
    return agent.notes()


@contextlib.contextmanager
def _asked_to_end(stop: threading.Event) -> Iterator[None]:
    """Set `stop` when a signal asks us to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, lambda _number, _frame: stop.set()) for n in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
