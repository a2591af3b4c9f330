"""Which samples claim a time that has not come yet, by which clock, and whose are they?

A host whose clock is wrong must not move the end of the lake. Rows more than an hour later than now are rejected. "Now"
is the clock of the machine that imports. Where that itself is ahead of the clock that dates the files of the lake (a
file server's, a bucket's), nothing is imported: which of the two is right is unknown, and waiting loses no row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gpuledger.errors import LakeError
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, MS_PER_S, count, some, utc

# Clocks of hosts may differ by this much.
SKEW_MS = MS_PER_HOUR


def latest_ms() -> int:
    """The latest time that a sample can have now."""
    return time.time_ns() // 1_000_000 + SKEW_MS


class Ahead(msgspec.Struct, frozen=True):
    """Rows of one device whose times have not come yet. `host`: empty where the rows name none."""

    device: str
    host: str
    rows: int
    last_ms: int

    @property
    def words(self) -> str:
        """The device, and its host where that is known."""
        return f"{self.device} of {self.host}" if self.host else self.device


def ahead_note(found: Iterable[Ahead], latest: int) -> str:
    """What was rejected because of its time, whose it is, and what to do."""
    rows = sorted(found, key=lambda a: -a.rows)
    named = some(list(dict.fromkeys(a.words for a in rows)))
    now, last = utc(latest - SKEW_MS), utc(max(a.last_ms for a in rows))
    return (
        f"{count(sum(a.rows for a in rows), 'row')} rejected: later than now ({now:%Y-%m-%d %H:%M} UTC), up to "
        f"{last:%Y-%m-%d %H:%M} UTC, from {named}; check the clock there, or --tz if the file has local times"
    )


def check_store_clock(lake: Lake, folder: Path, newest_ms: int) -> None:
    """Refuse samples that are later than now by the clock that dates the lake's files. Call inside `locked()`."""
    known = max((p.last_ms for p in lake.manifest().parts), default=0)
    if newest_ms <= known + SKEW_MS:  # the usual case, and asking a bucket costs a request
        return
    now_ms = _store_ms(lake, folder)
    if newest_ms <= now_ms + SKEW_MS:
        return
    off = time.time_ns() // 1_000_000 - now_ms
    length = f"{off / MS_PER_DAY:,.0f} days" if off >= 2 * MS_PER_DAY else f"{off / MS_PER_HOUR:,.1f} hours"
    raise LakeError(
        f"{lake.root}: the clock of this machine is {length} ahead of the clock of the lake's storage "
        f"({utc(now_ms):%Y-%m-%d %H:%M} UTC), and there are samples from that time: nothing was imported",
        hint="set the clock that is wrong (timedatectl shows this machine's), then run the same import again",
    )


def _store_ms(lake: Lake, folder: Path) -> int:
    if lake.store.remote:
        return int(lake.store.now_s() * MS_PER_S)
    probe = folder / "clock"
    probe.touch()
    return probe.stat().st_mtime_ns // 1_000_000
