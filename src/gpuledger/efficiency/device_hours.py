"""What did each device do in each period, whoever owned it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from gpuledger.ledger.read.adding import apart
from gpuledger.ledger.read.columns import Rows, kept
from gpuledger.units import MS_PER_DAY

_KEYS = ("device", "hour_ms", "grain_ms")
_SUMS = ("samples", "observed_ms", "util_ppm_ms", "util_ms", "pif_uj", "pif_ms", "power_uj", "power_ms")
_HALF_HOUR_MS = 1_800_000


def device_hours(lines: Iterable[tuple[int, Rows]]) -> Iterator[Rows]:
    """One row a device and period, from lines a file at a time, each with the start of its day."""
    later: Rows = {}
    for day_ms, found in lines:
        rows = {c: found[c] for c in (*_KEYS, "limit_mw", *_SUMS)}
        if later:
            rows = {c: np.concatenate([later[c], values]) for c, values in rows.items()}
        # A span over midnight is posted with the day before: what is of the next day waits for its file.
        done = rows["hour_ms"] < day_ms + MS_PER_DAY
        later = {} if done.all() else kept(rows, ~done)
        yield _one_row_each(kept(rows, done) if later else rows)
    if later:
        yield _one_row_each(later)


def _one_row_each(rows: Rows) -> Rows:
    """Owners of a device within one period added up. Whole numbers below 2**63, so the order does not matter."""
    key = (rows["device"] << 32) + (rows["hour_ms"] // _HALF_HOUR_MS) + (rows["grain_ms"] == MS_PER_DAY)
    step = np.diff(key)
    if (step < 0).any():
        order = np.argsort(key, kind="stable")
        rows, key = {name: values[order] for name, values in rows.items()}, key[order]
        step = np.diff(key)
    if (step > 0).all():
        return rows
    starts = np.flatnonzero(np.append(1, step))
    first = {name: rows[name][starts] for name in _KEYS}
    first["limit_mw"] = np.fmax.reduceat(rows["limit_mw"], starts)
    # Times known are mostly the time observed: one array under many names.
    made = {id(values): np.add.reduceat(values, starts) for values in apart(rows[name] for name in _SUMS)}
    return first | {name: made[id(rows[name])] for name in _SUMS}
