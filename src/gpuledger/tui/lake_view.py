"""How is the newest part of a lake looked at while the lake grows?"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Terms
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.gpu_history import RECENT_H, GpuHour, gpu_history, recent_util
from gpuledger.errors import GpuledgerError, InputError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import UNALLOCATED, Scope, owner_name
from gpuledger.ledger.read.window import end_ms, last_of, newest_ms
from gpuledger.live.alerts.devices import newest_devices
from gpuledger.tui.fleet import Fleet, GpuNow, blank, by_place, with_price, with_recent
from gpuledger.tui.looking import look
from gpuledger.tui.sources import History, Point
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S, known, utc, utc_day

FORGET_MS = MS_PER_DAY  # a GPU that was not seen for longer is not shown
_WATCHED = ("manifest.json", "jobs/manifest.json", "prices/yours.json")


class _Place(NamedTuple):
    """Where a device is."""

    gpu_uuid: str
    host: str | None
    gpu_index: str | None


class LakeView:
    """The last `window_ms` of a lake. `terms`: prices, as for a cost statement."""

    def __init__(self, root: str | Path, terms: Terms, window_ms: int = MS_PER_HOUR) -> None:
        self._lake, self._terms, self._window_ms = Lake(root), terms, window_ms
        self._seen: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        """The lake."""
        return str(self._lake.root)

    def start(self) -> None:
        """Fail at once if the lake is missing."""
        self._lake.require()

    def close(self) -> None:
        """Nothing is held."""

    def changed(self) -> bool:
        """Whether the lake changed since the last look."""
        return self._mark() != self._seen

    def look(self) -> Fleet:
        """The devices seen in the window before the newest sample, and those that stopped reporting before it."""
        mark = self._mark()
        self._lake.require()
        self._post()
        if not newest_ms(self._lake):
            hint = f"import data: gpuledger import FILE --lake {self._lake.root}"
            raise InputError(f"{self._lake.root}: the lake has no samples", hint=hint)
        terms: Terms = {**self._terms, "calibration": load_calibration(self._lake)}
        window_s = self._window_ms / MS_PER_S
        end = end_ms(self._lake)
        found = look(self._lake, last_of(self._lake, self._window_ms), terms, self.name, end, window_s)
        gone = self._lost(end, {gpu.device for gpu in found.gpus})
        found = replace(found, gpus=by_place([*found.gpus, *gone]))
        recent = recent_util(self._lake, Scope())[1]
        self._seen = mark
        return with_recent(found, recent)

    def _lost(self, newest: int, shown: Collection[str]) -> Iterator[GpuNow]:
        """The devices that reported lately and not in the window, with what they go on costing."""
        first = newest - max(FORGET_MS, self._window_ms)
        days = {utc_day(at) for at in range(first - MS_PER_DAY, newest + MS_PER_DAY, MS_PER_DAY)}
        books = Books(self._lake, Scope())
        for device in newest_devices(books, days, lambda _cluster, _namespace: None).values():
            if device.id in shown or device.last_ms < first:
                continue
            why = f"no sample since {utc(device.last_ms):%Y-%m-%d %H:%M} UTC"
            place = _Place(device.uuid, device.host, device.gpu_index)
            found = blank(device.id, place, device.instance, device.gpu_model, "lost", why)
            owner = owner_name(device.owner.namespace, device.owner.workload or device.owner.user)
            owners = () if owner == UNALLOCATED else (owner,)
            yield with_price(replace(found, owners=owners), device.instance, self._terms)

    def history(self, device: str) -> History:
        """The last two days of a GPU, hour by hour."""
        since = newest_ms(self._lake) // MS_PER_HOUR * MS_PER_HOUR - (RECENT_H - 1) * MS_PER_HOUR
        hours = {hour.start_ms: hour for hour in gpu_history(self._lake, Scope(since_ms=since), device).hours}
        starts = range(min(hours), max(hours) + 1, MS_PER_HOUR)
        return History(device, hourly=True, points=tuple(_point(at, hours.get(at)) for at in starts))

    def _post(self) -> None:
        """Bring the books up to date. Where the lake cannot be written, those there are must do."""
        try:
            post_lake(self._lake, load_thresholds(None))
        except (GpuledgerError, OSError):
            if not (self._lake.ledger_dir / "manifest.json").exists():
                raise

    def _mark(self) -> tuple[object, ...]:
        """What changes when the lake does."""
        found: list[object] = ["looked"]
        for name in _WATCHED:
            with contextlib.suppress(OSError, LakeError):  # an object store may be away
                stat = (self._lake.root / name).stat()
                found.append((name, stat.st_mtime_ns, stat.st_size))
        return tuple(found)


def _point(at_ms: int, hour: GpuHour | None) -> Point:
    """An hour; nothing is known of one without samples."""
    if hour is None:
        return Point(at_ms, None, None, None)
    return Point(at_ms, known(hour.gpu_util_pct), None, known(hour.power_w))
