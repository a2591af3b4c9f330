"""What makes the days of a lake doubtful, whatever is asked of them: wrong clocks, and books that were lost?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pyarrow.compute as pc

from gpuledger.lake.layout import Lake
from gpuledger.ledger.book_files import read_book
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import days_to_come
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.units import MS_PER_DAY, count, day_start_ms, some, utc_day

# Of the GPUs before a gap in time, fewer than this share are seen after it.
FEW_RATIO = 0.5


def doubts(lake: Lake, scope: Scope | None = None) -> tuple[str, ...]:
    """What to know before figures of this lake, or of a window of it, are used; nothing for ordinary lakes."""
    asked, ledger = scope or Scope(), Ledger(lake)
    posted, ahead = sorted(ledger.manifest().days, key=lambda d: d.day), days_to_come(lake)
    out = [_ahead(lake, ahead)] if ahead else []
    first, last = asked.days() or ("", "9999")
    come = [d for d in posted if d.day not in ahead and d.day <= last]
    out += _few_after_gap(ledger, come)
    closed = lake.manifest().closed_before
    if closed and first < closed and not any(d.day < closed for d in posted):
        out.append(
            f"days before {closed} are missing: their samples were deleted, and the ledger that held their lines is "
            "gone too; restore the ledger folder of the lake from a backup"
        )
    return tuple(out)


def _ahead(lake: Lake, days: Sequence[str]) -> str:
    parts = [p for p in lake.manifest().parts if p.day in days]
    devices = sorted({name for p in parts for name in (p.first_device, p.last_device)})
    of = f" (from {some(devices)})" if devices else ""
    until = f" to {days[-1]}" if len(days) > 1 else ""
    return (
        f"samples of {days[0]}{until}{of} are later than now: the clock of a host was ahead; they are left out where "
        "the window has no end of its own"
    )


def _few_after_gap(ledger: Ledger, days: Sequence[PostedDay]) -> list[str]:
    """Whether few of the GPUs that there were before days without any sample are seen after them."""
    pairs = itertools.pairwise(days)
    gaps = [b for a, b in pairs if day_start_ms(b.day) - day_start_ms(a.day) > MS_PER_DAY]
    if not gaps:
        return []
    after = days.index(gaps[-1])
    before, now = _gpus(ledger, days[after - 1]), max(_gpus(ledger, days[after]), _gpus(ledger, days[-1]))
    if now >= FEW_RATIO * before:
        return []
    end = utc_day(day_start_ms(days[after - 1].day) + MS_PER_DAY)
    return [
        (
            f"the newest samples ({days[-1].day}) are from {count(now, 'GPU')}, after days without any; "
            f"{count(before, 'GPU')} were seen on {days[after - 1].day}: if a clock was wrong, end the window at {end}"
        )
    ]


def _gpus(ledger: Ledger, posted: PostedDay) -> int:
    files = ledger.files_of(posted, "days" if posted.daily else "lines")
    return len({u for f in files for u in pc.unique(read_book(f, ["gpu_uuid"])["gpu_uuid"]).to_pylist()})
