"""How is the newest part of a lake looked at while the lake grows?"""

from __future__ import annotations

import contextlib
from pathlib import Path

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Terms
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.gpu_history import RECENT_H, GpuHour, gpu_history, recent_util
from gpuledger.errors import GpuledgerError, InputError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import newest_ms
from gpuledger.tui.fleet import Fleet, look, with_recent
from gpuledger.tui.sources import History, Point
from gpuledger.units import MS_PER_HOUR, MS_PER_S, known

_WATCHED = ("manifest.json", "jobs/manifest.json", "prices/yours.json")


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
        """The devices seen in the window before the newest sample."""
        mark = self._mark()
        self._lake.require()
        self._post()
        newest = newest_ms(self._lake)
        if not newest:
            hint = f"import data: gpuledger import FILE --lake {self._lake.root}"
            raise InputError(f"{self._lake.root}: the lake has no samples", hint=hint)
        terms: Terms = {**self._terms, "calibration": load_calibration(self._lake)}
        window_s = self._window_ms / MS_PER_S
        found = look(self._lake, Scope(since_ms=newest - self._window_ms), terms, self.name, newest, window_s)
        recent = recent_util(self._lake, Scope())[1]
        self._seen = mark
        return with_recent(found, recent)

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
