"""Which window and owners does the user ask for, in any way they may write it?

A length counts back from where the time of the newest sample ends, in every command: `last_of` is the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import pyarrow.compute as pc

from gpuledger.errors import InputError
from gpuledger.lake.clocks import latest_ms
from gpuledger.lake.layout import Lake
from gpuledger.ledger.book_files import read_book
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.times import Instant, Length, instant_ms, length_ms
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day

Names = str | Sequence[str] | None


class Window(TypedDict, total=False):
    """A window and owners as keywords; `last` counts back from `until`, else from the newest sample."""

    since: Instant | None
    until: Instant | None
    last: Length | None
    cluster: Names
    namespace: Names
    owner: Names


def scope_of(
    lake: Lake,
    *,
    since: Instant | None = None,
    until: Instant | None = None,
    last: Length | None = None,
    cluster: Names = None,
    namespace: Names = None,
    owner: Names = None,
) -> Scope:
    """The scope of a statement. Without an end it ends with the newest sample where others have times to come."""
    end = None if until is None else instant_ms(until)
    start = None if since is None else instant_ms(since)
    if last is not None:
        if since is not None:
            raise InputError("since and last both say where the window starts", hint="give one of them")
        start = last_of(lake, length_ms(last), end).since_ms
    if end is None and days_to_come(lake):
        end = end_ms(lake)
    return Scope(start, end, _names(cluster), _names(namespace), _names(owner))


def last_of(lake: Lake, length: int, until_ms: int | None = None) -> Scope:
    """The last milliseconds of a lake, counted back from `until_ms`, else from the end of the newest sample's time."""
    return Scope((end_ms(lake) if until_ms is None else until_ms) - length, until_ms)


def newest_ms(lake: Lake) -> int:
    """The instant of the newest sample, for its age; or the end of the newest posted day where no samples are left.

    Windows end at `end_ms`. A host whose clock is ahead does not move it: times more than an hour after now do not
    count.
    """
    latest, parts = latest_ms(), lake.manifest().parts
    come = (min(p.last_ms + 1, latest) for p in parts if p.first_ms < latest)
    newest = max(come, default=0) or max((p.last_ms + 1 for p in parts), default=0)
    if newest:
        return newest
    posted = Ledger(lake).manifest().days
    return max((day_start_ms(d.day) + MS_PER_DAY for d in _come(posted, latest)), default=0)


def _come(posted: Sequence[PostedDay], latest: int) -> Sequence[PostedDay]:
    """The days that have begun by then; all of them if none has."""
    return [d for d in posted if day_start_ms(d.day) < latest] or posted


def days_to_come(lake: Lake) -> list[str]:
    """The days with samples or lines that have not begun yet: some host's clock is ahead, or was."""
    first = utc_day(latest_ms())
    return sorted({d for d in (*lake.manifest().days(), *(d.day for d in Ledger(lake).manifest().days)) if d > first})


def end_ms(lake: Lake) -> int:
    """Where the time of the newest sample ends, as it was posted: a window of a day is a day, however far apart samples
    are.
    """
    newest, ledger, latest = newest_ms(lake), Ledger(lake), latest_ms()
    posted = max(_come(ledger.manifest().days, latest), key=lambda d: d.day, default=None)
    if posted is None:
        return newest
    files = ledger.files_of(posted, "days" if posted.daily else "lines")
    ends = (pc.max(read_book(file, ["last_ms"])["last_ms"]).as_py() for file in files)
    return max((newest, *(min(end, max(newest, latest)) for end in ends if end is not None)))


def _names(given: Names) -> tuple[str, ...]:
    try:
        return () if given is None else (given,) if isinstance(given, str) else tuple(map(str, given))
    except TypeError:
        raise InputError(f"{given!r} is not a name", hint="give a name as text, or a list of names") from None
