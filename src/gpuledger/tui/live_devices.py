"""How are the GPUs of this machine looked at while they work?

The sampler and the ownership of a recording read the devices. The rows of the last minute go into a small lake in a
temporary folder and are posted there, so every figure is made by the code that makes the statements of a real lake.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Terms
from gpuledger.devices.attribution import attribute
from gpuledger.devices.clock import Clock
from gpuledger.devices.device import Device, Facts, Row, open_device
from gpuledger.devices.device import Source as Driver
from gpuledger.devices.reading import DeviceReport
from gpuledger.devices.sampler import Sampler
from gpuledger.errors import map_os_error
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.recording.live_parts import Batch, LiveParts
from gpuledger.recording.ownership import Ownership
from gpuledger.recording.runs import Holder
from gpuledger.tui.fleet import Condition, Fleet, GpuNow, Running, blank, by_place, listed_price, with_recent
from gpuledger.tui.looking import look
from gpuledger.tui.sources import History, Looks
from gpuledger.units import MS_PER_S, Unknown

HZ = 5.0
RELEASE_S = 1.0
WINDOW_S = 10.0
# A pause of 30 s and longer is idle, a shorter one a wait: to judge it, rows are kept for longer than the window.
KEPT_S = 60.0
SHOWN_LOOKS = 60
_SET_BACK_MS = 5_000
_NOT_VISIBLE = Unknown("the process is not visible from here")


@dataclass(frozen=True)
class _Place:
    gpu_uuid: str
    host: str | None
    gpu_index: str | None


class LiveDevices:
    """The GPUs a driver shows. `terms`: prices and calibration, as for a cost statement."""

    def __init__(
        self,
        device: str | Driver,
        terms: Terms,
        *,
        window_s: float = WINDOW_S,
        clock: Clock | None = None,
        host: str | None = None,
        environ: Mapping[str, str] | None = None,
        proc: Path = Path("/proc"),
    ) -> None:
        self._clock, self._terms, self._window_s = clock or Clock(), terms, window_s
        self._host = host or socket.gethostname()
        self._driver = open_device(device, self._clock) if isinstance(device, str) else device
        surroundings = os.environ if environ is None else environ
        labels = attribute(surroundings, host=self._host, process=proc / "self").labels
        devices = self._driver.devices
        self._ownership = Ownership(devices, labels, {}, surroundings, self._clock.monotonic, of_job=False, proc=proc)
        self.sampler = self._new_sampler()
        self._lock = threading.Lock()
        self._held: dict[str, deque[Batch]] = {}
        self._newest_ms = self._shown_ms = 0
        self._looks = Looks()

    def _new_sampler(self) -> Sampler:
        look = self._ownership.look
        return Sampler(self._driver.devices, self._take, hz=HZ, release_s=RELEASE_S, clock=self._clock, on_tick=look)

    @property
    def name(self) -> str:
        """The machine."""
        return self._host

    def start(self) -> None:
        """Sample in a thread of its own."""
        self.sampler.start()

    def close(self) -> None:
        """Stop sampling and let the driver go."""
        self.sampler.stop()
        self._driver.close()

    def changed(self) -> bool:
        """Whether there are rows that no look has shown, or a GPU was lost."""
        with self._lock:
            return self._newest_ms != self._shown_ms or any(d.lost_why for d in self.sampler.report().devices)

    @property
    def observed_s(self) -> float:
        """For how long rows are there."""
        with self._lock:
            first = min((_at_ms(b.rows[0]) for held in self._held.values() for b in held), default=self._newest_ms)
            return (self._newest_ms - first) / MS_PER_S

    def look(self) -> Fleet:
        """The GPUs over the last seconds."""
        with self._lock:
            batches = [batch for held in self._held.values() for batch in held]
            newest = self._newest_ms
        window_s = min(self._window_s, max(self.observed_s, 1.0))
        at_ms = newest or self.sampler.stamp()
        found = Fleet(self.name, at_ms, window_s, ())
        if batches:
            found = self._stated(batches, at_ms, window_s)
        fleet = replace(found, gpus=by_place([*self._named(found.gpus)]), notes=tuple(self._driver.notes))
        self._shown_ms = newest
        self._looks.keep(fleet)
        return with_recent(fleet, self._looks.utils(SHOWN_LOOKS))

    def history(self, device: str) -> History:
        """The looks at a GPU since the start."""
        return History(device, hourly=False, points=self._looks.of(device))

    def _take(self, facts: Facts, columns: tuple[str, ...], rows: list[Row]) -> None:
        """Rows of a device from the sampler; those too old to matter go."""
        owned, at_ms = self._ownership.split(facts, rows), _at_ms(rows[-1])
        with self._lock:
            if at_ms < self._newest_ms - _SET_BACK_MS:  # the clock was set back: what came before is in the future
                self._held.clear()
                self._newest_ms = at_ms
            held = self._held.setdefault(facts.name, deque())
            held.extend(Batch(facts, owner, columns, some) for owners, some in owned for owner in owners)
            self._newest_ms = max(self._newest_ms, at_ms)
            old_ms = self._newest_ms - (KEPT_S + self._window_s) * MS_PER_S
            while held and _at_ms(held[0].rows[-1]) < old_ms:
                held.popleft()

    def _stated(self, batches: list[Batch], at_ms: int, window_s: float) -> Fleet:
        try:
            with tempfile.TemporaryDirectory(prefix="gpuledger-top-") as folder:
                lake = Lake(folder)
                parts = LiveParts(lake)
                parts.append(batches)
                parts.close()
                post_lake(lake, load_thresholds(None))
                scope = Scope(since_ms=at_ms - int(window_s * MS_PER_S))
                return look(lake, scope, self._terms, self.name, at_ms, window_s)
        except OSError as error:
            raise map_os_error(error, tempfile.gettempdir(), "work in the temporary folder") from error

    def _named(self, seen: tuple[GpuNow, ...]) -> Iterator[GpuNow]:
        """Every device of the driver, also one without rows in the window, with its processes."""
        by_name = {gpu.device: gpu for gpu in seen}
        reports = {report.facts.name: report for report in self.sampler.report().devices}
        for device in self._driver.devices:
            found = by_name.get(device.facts.name)
            report = reports.get(device.facts.name)
            if found is None or (report is not None and report.lost_why):
                yield self._silent(device, report)
            else:
                yield replace(found, processes=self._processes(device))
        yield from (gpu for gpu in seen if gpu.state == "no data")

    def _silent(self, device: Device, report: DeviceReport | None) -> GpuNow:
        """A device without rows; what it costs is known all the same."""
        facts = device.facts
        place = _Place(facts.gpu_uuid, self._host, str(facts.index))
        state: Condition = "reading"
        why = "no readings yet"
        if report is not None and report.lost_why:
            state, why = "lost", f"the GPU was lost: {report.lost_why}"
        found = blank(facts.name, place, facts.gpu_instance_id, facts.gpu_model, state, why)
        price = listed_price(facts.gpu_model, self._terms)
        if isinstance(price, Unknown):
            return replace(found, usd_per_h=price)
        share = Decimal(1) if facts.slice_ratio is None else Decimal(str(facts.slice_ratio))
        return replace(found, usd_per_h=price.usd_per_h * share, price=price.words)

    def _processes(self, device: Device) -> tuple[Running, ...] | Unknown:
        why = self._ownership.times(device.facts)[2]
        if why:
            return Unknown(f"the driver does not list processes: {why}")
        return tuple(_running(holder) for holder in self._ownership.here(device.facts))


def _running(holder: Holder) -> Running:
    memory = Unknown("the driver does not say") if holder.memory_bytes is None else holder.memory_bytes
    if not holder.visible:
        return Running(holder.pid, _NOT_VISIBLE, _NOT_VISIBLE, memory)
    return Running(holder.pid, holder.program, holder.user, memory)


def _at_ms(row: Row) -> int:
    return int(row[0] or 0)
