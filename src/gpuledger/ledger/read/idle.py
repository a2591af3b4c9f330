"""How long was the longest time a device did nothing at all?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpuledger.ledger.read.columns import Rows, joined
from gpuledger.ledger.read.scope import Scope

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
