"""Which window and owners does the user ask for, in any way they may write it?

A length counts back from where the time of the newest sample ends, in every command: `last_of` is the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger
from gpuledger.times import Instant, Length, instant_ms, length_ms
from gpuledger.units import MS_PER_DAY, day_start_ms

Names = str | Sequence[str] | None


class Window(TypedDict, total=False):
    """A window and owners as keywords; `last` counts back from `until`, else from the newest sample."""

    since: Instant | None
    until: Instant | None
    last: Length | None
    cluster: Names
    namespace: Names
    owner: Names


def scope_of(lake: Lake, **given: Unpack[Window]) -> Scope:
    """The scope of a statement."""
    since, until, last = given.get("since"), given.get("until"), given.get("last")
    end = None if until is None else instant_ms(until)
    start = None if since is None else instant_ms(since)
    if last is not None:
        if since is not None:
            raise InputError("since and last both say where the window starts", hint="give one of them")
        start = last_of(lake, length_ms(last), end).since_ms
    return Scope(start, end, _names(given.get("cluster")), _names(given.get("namespace")), _names(given.get("owner")))


def last_of(lake: Lake, length: int, until_ms: int | None = None) -> Scope:
    """The last milliseconds of a lake, counted back from `until_ms`, else from the end of the newest sample's time."""
    return Scope((end_ms(lake) if until_ms is None else until_ms) - length, until_ms)


def newest_ms(lake: Lake) -> int:
    """The instant of the newest sample, for its age; or the end of the newest posted day where no samples are left.

    Windows end at `end_ms`.
    """
    newest = max((p.last_ms + 1 for p in lake.manifest().parts), default=0)
    return newest or max((day_start_ms(d.day) + MS_PER_DAY for d in Ledger(lake).manifest().days), default=0)


def end_ms(lake: Lake) -> int:
    """Where the time of the newest sample ends, as it was posted: a window of a day is a day, however far apart samples
    are.
    """
    newest, ledger = newest_ms(lake), Ledger(lake)
    posted = max(ledger.manifest().days, key=lambda d: d.day, default=None)
    if posted is None:
        return newest
    files = ledger.files_of(posted, "days" if posted.daily else "lines")
    ends = (pc.max(pq.read_table(file, columns=["last_ms"])["last_ms"]).as_py() for file in files)
    return max((newest, *(end for end in ends if end is not None)))


def _names(given: Names) -> tuple[str, ...]:
    try:
        return () if given is None else (given,) if isinstance(given, str) else tuple(map(str, given))
    except TypeError:
        raise InputError(f"{given!r} is not a name", hint="give a name as text, or a list of names") from None
