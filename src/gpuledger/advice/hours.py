"""At which hours of the day does a case idle?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpuledger.advice.stretches import Key
from gpuledger.cost.buckets import IDLE
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import MS_PER_HOUR

HOURS_PER_DAY = 24


def idle_by_hour(lake: Lake, scope: Scope, case_of: Mapping[Key, int]) -> dict[int, dict[int, tuple[int, int]]]:
    """Per case and hour of the day (UTC): idle and observed milliseconds. Folded days do not show their hours."""
    if not case_of:
        return {}
    books, sums = Books(lake, scope), Accumulator()
    labels = ("gpu_uuid", "gpu_instance_id", "namespace", "workload")
    for _, rows in books.blocks(labels, ("observed_ms", *IDLE), hourly=True):
        hours = {c: v[rows["grain_ms"] == MS_PER_HOUR] for c, v in rows.items()}
        if len(hours["hour_ms"]):
            hour = hours["hour_ms"] // MS_PER_HOUR % HOURS_PER_DAY
            resting = np.sum([hours[i] for i in IDLE], axis=0)
            keys = [*(hours[c] for c in labels), hour]
            sums.add(keys, {"idle_ms": resting, "observed_ms": hours["observed_ms"]})
    keys, totals = sums.total()
    found: dict[int, dict[int, tuple[int, int]]] = {}
    if not keys:
        return found
    texts = [books.names[c].text(k) for c, k in zip(labels, keys, strict=False)]
    columns = (keys[-1].tolist(), totals["idle_ms"].tolist(), totals["observed_ms"].tolist())
    for uuid, instance, namespace, workload, hour, idle_ms, observed_ms in zip(*texts, *columns, strict=True):
        number = case_of.get((uuid or "", instance, namespace, workload))
        if number is not None:
            by_hour = found.setdefault(number, {})
            before = by_hour.get(hour, (0, 0))
            by_hour[hour] = (before[0] + round(idle_ms), before[1] + round(observed_ms))
    return found


def quiet_hours(by_hour: Mapping[int, tuple[int, int]], quiet_from_ratio: float) -> tuple[tuple[int, ...], float]:
    """The hours of the day that are idle nearly always, and the idle time in them over all observed time."""
    total = sum(observed for _, observed in by_hour.values())
    quiet = {h: idle for h, (idle, observed) in by_hour.items() if observed and idle >= quiet_from_ratio * observed}
    return tuple(sorted(quiet)), sum(quiet.values()) / total if total else 0.0
