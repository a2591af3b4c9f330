"""How are all devices of a host read at an even pace, come what may?

One thread reads every device. Ticks lie on a grid of the monotonic clock, so delays do not add up; where a call of
the driver takes longer than a tick, the missed grid points are skipped and counted. Cheap fields are read first on
every tick; what costs more follows once per second, a few devices at a time so that no tick is long. An error costs one
reading, a lost GPU costs that GPU, and nothing ends the thread but `stop`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec

from gpuledger.devices.clock import Clock, Stamper
from gpuledger.devices.device import Device, Facts, Row
from gpuledger.devices.reading import Lost, SamplerReport
from gpuledger.devices.window import Track
from gpuledger.errors import InputError

P = ParamSpec("P")
Sink = Callable[[Facts, tuple[str, ...], list[Row]], None]

MAX_HZ = 100.0
# The costly readings of one device take about 7 ms; four of them fit well into a tick of 100 ms.
DEVICES_PER_TICK = 4
KEPT_FAULTS = 20


def check_rates(hz: float, slow_s: float) -> None:
    """Refuse a pace that cannot be kept."""
    if not 0 < hz <= MAX_HZ:
        raise InputError(f"cannot sample at {hz} Hz", hint=f"give a rate above 0 and up to {MAX_HZ:g}; 10 is usual")
    if not 0 < slow_s <= 60:
        raise InputError(f"cannot read the costly fields each {slow_s} s", hint="give 0.1 to 60 seconds; 1 is usual")


def spread_s(devices: int, hz: float, slow_s: float) -> float:
    """How far apart the devices' seconds begin, first to last."""
    return ((devices - 1) // DEVICES_PER_TICK) % max(1, round(slow_s * hz)) / hz


class Sampler:
    """Reads devices until stopped; every `release_s` finished rows go to `sink`, then `on_release` is called.

    `on_tick` is called at the start of every tick with its stamp.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        sink: Sink,
        *,
        hz: float = 10.0,
        slow_s: float = 1.0,
        release_s: float = 2.0,
        clock: Clock | None = None,
        on_release: Callable[[], None] = lambda: None,
        on_tick: Callable[[int], None] = lambda _at_ms: None,
    ) -> None:
        check_rates(hz, slow_s)
        self.hz, self.slow_s = hz, slow_s
        self._clock = clock or Clock()
        self._devices, self._sink, self._on_release, self._on_tick = devices, sink, on_release, on_tick
        self._tick_s = 1.0 / hz
        self._slow_every = max(1, round(slow_s * hz))
        self._release_every = self._slow_every * max(1, int(release_s / (self._slow_every * self._tick_s) + 0.05))
        self._tracks: list[Track] = []
        self._live: list[Track] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._stamper = Stamper(self._clock)
        self._ticks = self._skipped = 0
        self._faults: list[str] = []
        self._started_ms = self._ended_ms = self.stamp()
        self._cpu_s = 0.0

    def start(self) -> None:
        """Sample in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="gpuledger-sampler", daemon=True)
        self._thread.start()

    def stamp(self) -> int:
        """What a sample taken now would be stamped with."""
        return self._stamper.stamp(self._clock.monotonic())

    def stop(self) -> SamplerReport:
        """End sampling; every row read so far has gone to the sink when this returns."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        return self.report()

    def run(self, seconds: float | None = None) -> SamplerReport:
        """Sample in this thread until stopped, or for this many seconds."""
        cpu = time.thread_time()
        self._open()
        start, index = self._clock.monotonic(), 0
        while index == 0 or not self._stop.is_set():  # what ends before we got going has one reading all the same
            began = self._clock.monotonic()
            self._guarded(self._on_tick, self.stamp())
            self._guarded(self._tick, index)
            self._cpu_s = time.thread_time() - cpu
            now = self._clock.monotonic()
            due = start + (index + 1) * self._tick_s
            late = max(0, int((now - due) / self._tick_s + 0.5))
            if max(now, due + late * self._tick_s) - began < self._tick_s / 10:
                late += 1  # this one began late: two readings of nearly one instant would contradict each other
            self._skipped += late
            index += 1 + late
            if seconds is not None and index * self._tick_s >= seconds - self._tick_s / 2:
                self._clock.wait(self._stop, max(0.0, start + seconds - now))
                break
            self._clock.wait(self._stop, max(0.0, start + index * self._tick_s - now))
        self._guarded(self._close)
        self._cpu_s = time.thread_time() - cpu
        return self.report()

    def _guarded(self, step: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            step(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever breaks, sampling goes on, and the report says it
            self._note(f"{type(error).__name__}: {error}")

    def _note(self, fault: str) -> None:
        if len(self._faults) < KEPT_FAULTS:
            self._faults.append(fault)

    def _open(self) -> None:
        for device in self._devices:
            try:
                self._tracks.append(Track(device, self._tick_s, self._clock))
            except Lost as lost:
                self._note(f"{device.facts.name} was lost before sampling began: {lost}")
        self._live = list(self._tracks)
        for place, track in enumerate(self._tracks):
            track.phase = (place // DEVICES_PER_TICK) % self._slow_every
        self._started_ms = self.stamp()

    def _tick(self, index: int) -> None:
        self._ticks += 1
        turning = [t for t in self._live if index >= t.next_slow]
        for track in [t for t in self._live if index < t.next_slow and not t.slow_only]:
            self._with(track, self._read)
        if turning:
            self._stamper.check()
        released = False
        for track in turning:
            release = index >= track.next_release
            self._with(track, partial(self._turn, release=release))
            track.next_slow = _next_turn(index, track.phase, self._slow_every)
            if release:
                track.next_release = _next_turn(index, track.phase, self._release_every)
            # The last device to take its turn ends the round.
            released |= release and bool(self._live) and track is self._live[-1]
        if released:
            self._on_release()

    def _read(self, track: Track, *, whole: bool = False) -> None:
        now = self._clock.monotonic()
        track.tick(now, self._stamper.stamp(now), whole=whole)

    def _turn(self, track: Track, *, release: bool) -> None:
        self._give(track, track.close_second(self._clock.monotonic(), release=release))
        self._read(track, whole=True)

    def _end(self, track: Track) -> None:
        self._give(track, track.close_second(self._clock.monotonic(), release=True))

    def _with(self, track: Track, step: Callable[[Track], None]) -> None:
        try:
            step(track)
        except Lost as lost:
            self._live.remove(track)
            self._give(track, track.lose(self.stamp(), str(lost)))

    def _give(self, track: Track, rows: list[Row]) -> None:
        if rows:
            self._sink(track.facts, track.columns, rows)

    def _close(self) -> None:
        for track in list(self._live):
            self._with(track, self._end)
        self._ended_ms = self.stamp()
        self._on_release()

    def report(self) -> SamplerReport:
        """What happened so far."""
        return SamplerReport(
            hz=self.hz,
            slow_s=self.slow_s,
            started_ms=self._started_ms,
            ended_ms=self._ended_ms,
            ticks=self._ticks,
            skipped_ticks=self._skipped,
            cpu_s=self._cpu_s,
            clock_steps=tuple(self._stamper.steps),
            faults=tuple(self._faults),
            devices=tuple(t.report() for t in self._tracks),
        )


def _next_turn(index: int, phase: int, every: int) -> int:
    """The next tick of a device's phase; the first time may be longer, never much shorter."""
    after = phase + ((index - phase) // every + 1) * every
    return after + every if 2 * (after - index) < every else after
