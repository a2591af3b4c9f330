"""Which samples are old enough to go, and how do their days close behind them?

A day whose samples are dropped is closed: a late row for it could no longer be posted together with the samples it
belongs to, so import rejects it. Days close in order, from the oldest on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuledger.errors import map_os_error
from gpuledger.lake.layout import Lake, Part
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day


@dataclass(frozen=True)
class Dropped:
    """What was taken out of the lake. `closed_before` is the first day that is still open, "" where all are."""

    days: tuple[str, ...] = ()
    rows: int = 0
    size_bytes: int = 0
    closed_before: str = ""


def ended_before(days: Iterable[str], before_ms: int) -> tuple[str, ...]:
    """The days that were over at an instant, in order."""
    return tuple(day for day in sorted(days) if day_start_ms(day) + MS_PER_DAY <= before_ms)


def measure(lake: Lake, days: Sequence[str]) -> Dropped:
    """What dropping the samples of these days would take out."""
    manifest = lake.manifest()
    if not days:
        return Dropped(closed_before=manifest.closed_before)
    closed = utc_day(day_start_ms(max(days)) + MS_PER_DAY)
    gone = [p for p in manifest.parts if p.day < closed]
    return Dropped(tuple(sorted({p.day for p in gone})), sum(p.rows for p in gone), _size_bytes(lake, gone), closed)


def drop_samples(lake: Lake, days: Sequence[str]) -> Dropped:
    """Take the samples up to the last of these days out of the lake and close those days. Call inside `locked()`.

    The manifest that no longer names the parts is replaced first; only then are their files deleted.
    """
    dropped = measure(lake, days)
    if not dropped.days:
        lake.sweep()
        return dropped
    gone = [p for p in lake.manifest().parts if p.day in dropped.days]
    lake.commit([], replaces=tuple(p.id for p in gone), closed_before=dropped.closed_before)
    try:
        lake.sweep()
    except OSError as error:
        raise map_os_error(error, lake.root, "delete old samples") from error
    for day in dropped.days:
        with contextlib.suppress(OSError):
            (lake.root / "samples" / f"day={day}").rmdir()
    return dropped


def _size_bytes(lake: Lake, parts: Iterable[Part]) -> int:
    total = 0
    for part in parts:
        with contextlib.suppress(OSError):
            total += lake.path(part).stat().st_size
    return total
