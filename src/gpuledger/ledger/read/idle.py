"""When did a device do nothing at all, and how long was the longest such time?"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
import numpy as np

from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows, joined, kept
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.spells import GAP

# Milliseconds since 1970 stay below this power of two until the year 2248.
_TIME_BITS = 43


def longest_idle_ms(pieces: Iterable[Rows], scope: Scope, devices: int) -> list[int]:
    """By device the longest stretch of idle or idle-held time within the window, whoever held the device.

    Spells that touch are one stretch: midnight cuts them, and so does memory that is taken or freed.
    """
    longest, edges = np.zeros(devices, dtype=np.int64), []
    for spells in pieces:
        whole = _stretches(spells, scope)
        device, start, end = whole.values()
        if len(device):
            np.maximum.at(longest, device, end - start)
            # Only a device's first and last stretch of a file can touch one of another file.
            first = np.ones(len(device), dtype=bool)
            first[1:] = device[1:] != device[:-1]
            outer = first | np.append(first[1:], True)
            edges.append({c: values[outer] for c, values in whole.items()})
    if edges:
        device, start, end = _stretches(joined(edges), scope).values()
        np.maximum.at(longest, device, end - start)
    return [int(ms) for ms in longest]


def _stretches(spells: Rows, scope: Scope) -> Rows:
    """Spells that touch made one, in order of device and start, cut to the window."""
    device, start, end = spells["device"], spells["start_ms"], spells["end_ms"]
    start = np.maximum(start, scope.since_ms) if scope.since_ms is not None else start
    end = np.minimum(end, scope.until_ms) if scope.until_ms is not None else end
    key = (device << _TIME_BITS) + start
    order = np.argsort(key, kind="stable") if (key[1:] < key[:-1]).any() else None
    device, start, end = (v if order is None else v[order] for v in (device, start, end))
    held = end > start
    if not held.all():
        device, start, end = device[held], start[held], end[held]
    opens = np.ones(len(device), dtype=bool)
    opens[1:] = (device[1:] != device[:-1]) | (start[1:] != end[:-1])
    closes = np.append(opens[1:], True)[: len(device)]
    return {"device": device[opens], "start_ms": start[opens], "end_ms": end[closes]}


class QuietTime(msgspec.Struct, frozen=True):
    """A stretch without work: idle time, and time without samples between idle times."""

    start_ms: int
    end_ms: int
    unobserved_ms: int

    @property
    def length_ms(self) -> int:
        """From its start to its end."""
        return self.end_ms - self.start_ms


def quiet_times(books: Books, boards: Collection[str]) -> dict[tuple[str, str | None], list[QuietTime]]:
    """The stretches without work of each device of some boards, by device in order of time, up to the window's end.

    A gap between two idle times does not end a stretch: nothing shows work in it, and it counts as unobserved. Where
    idle time, gap and idle time do not touch, there was work, or too long a silence to be known.
    """
    pieces = [kept(rows, books.names["gpu_uuid"].among(frozenset(boards))[rows["gpu_uuid"]]) for rows in books.spells()]
    rows = joined([p for p in pieces if len(p["start_ms"])])
    if not rows:
        return {}
    board, instance = (rows[c].astype(np.int64) for c in ("gpu_uuid", "gpu_instance_id"))
    start = rows["start_ms"]
    end = rows["end_ms"] if books.scope.until_ms is None else np.minimum(rows["end_ms"], books.scope.until_ms)
    inside = end > start
    gap = books.names["kind"].among((GAP,))[rows["kind"]]
    order = np.lexsort((start, instance, board))
    order = order[inside[order]]
    board, instance, start, end, gap = (v[order] for v in (board, instance, start, end, gap))
    if not len(start):
        return {}
    opens = np.ones(len(start), dtype=bool)
    opens[1:] = (np.diff(board) != 0) | (np.diff(instance) != 0) | (start[1:] != end[:-1])
    at = np.flatnonzero(opens)
    # A gap at either end is not known to be idle: a stretch starts and ends with idle time.
    first = np.minimum.reduceat(np.where(gap, np.int64(1) << _TIME_BITS, start), at)
    last = np.maximum.reduceat(np.where(gap, np.int64(-1), end), at)
    idle = np.add.reduceat(np.where(gap, 0, end - start), at)
    names = [books.names[c].text(codes[at]) for c, codes in (("gpu_uuid", board), ("gpu_instance_id", instance))]
    out: dict[tuple[str, str | None], list[QuietTime]] = {}
    for uuid, part, low, high, ms in zip(*names, first.tolist(), last.tolist(), idle.tolist(), strict=True):
        if high > low:
            out.setdefault((uuid or "", part), []).append(QuietTime(low, high, high - low - ms))
    return out
