"""How long was the longest time a device did nothing at all?"""

from __future__ import annotations

import numpy as np

from gpuledger.efficiency.rows import Rows
from gpuledger.efficiency.scope import Scope

# Milliseconds since 1970 stay below this power of two until the year 2248.
_TIME_BITS = 43


def longest_idle_ms(spells: Rows, scope: Scope, devices: int) -> list[int]:
    """By device the longest stretch of idle or idle-held time within the window, whoever held the device.

    Spells that touch are one stretch: midnight cuts them, and so does memory that is taken or freed.
    """
    device, start, end = spells["device"], spells["start_ms"], spells["end_ms"]
    start = np.maximum(start, scope.since_ms) if scope.since_ms is not None else start
    end = np.minimum(end, scope.until_ms) if scope.until_ms is not None else end
    order = np.argsort((device << _TIME_BITS) + start, kind="stable")  # files come sorted, so this merges runs
    order = order[end[order] > start[order]]
    device, start, end = device[order], start[order], end[order]
    longest = np.zeros(devices, dtype=np.int64)
    if len(device):
        opens = np.ones(len(device), dtype=bool)
        opens[1:] = (device[1:] != device[:-1]) | (start[1:] != end[:-1])
        first = np.flatnonzero(opens)
        last = np.append(first[1:], len(device)) - 1
        np.maximum.at(longest, device[first], end[last] - start[first])
    return [int(ms) for ms in longest]
