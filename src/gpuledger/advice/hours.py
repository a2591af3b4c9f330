"""At which hours of the day does a case idle?"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from gpuledger.advice.stretches import Key, window_test
from gpuledger.efficiency.scope import SOURCE, Scope, open_books
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_HOUR

HOURS_PER_DAY = 24


def idle_by_hour(lake: Lake, scope: Scope, case_of: Mapping[Key, int]) -> dict[int, dict[int, tuple[int, int]]]:
    """Per case and hour of the day (UTC): idle and observed milliseconds. Folded days tell no hours."""
    if not case_of:
        return {}
    test, given = window_test(scope)
    db, files = open_books(lake, scope)
    with db:
        db.register("known", _table(case_of))
        rows = db.execute(
            f"""SELECT number, (hour_ms // {MS_PER_HOUR}) % {HOURS_PER_DAY} AS hour,
            sum(idle_ms + idle_held_ms)::BIGINT, sum(observed_ms)::BIGINT
            FROM (SELECT * FROM {SOURCE} WHERE {test} AND grain_ms = {MS_PER_HOUR}) l
            JOIN known k ON l.gpu_uuid = k.gpu_uuid AND coalesce(l.gpu_instance_id, '') = k.gpu_instance_id
            AND coalesce(l.namespace, '') = k.namespace AND coalesce(l.workload, '') = k.workload
            GROUP BY 1, 2 ORDER BY 1, 2""",  # noqa: S608
            {"files": files, **given},
        ).fetchall()
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for number, hour, idle_ms, observed_ms in rows:
        found.setdefault(number, {})[int(hour)] = (int(idle_ms), int(observed_ms))
    return found


def quiet_hours(by_hour: Mapping[int, tuple[int, int]], quiet_from_ratio: float) -> tuple[tuple[int, ...], float]:
    """The hours of the day that are idle nearly always, and the idle time in them over all observed time."""
    total = sum(observed for _, observed in by_hour.values())
    quiet = {h: idle for h, (idle, observed) in by_hour.items() if observed and idle >= quiet_from_ratio * observed}
    return tuple(sorted(quiet)), sum(quiet.values()) / total if total else 0.0


def _table(case_of: Mapping[Key, int]) -> pa.Table:
    keys = list(case_of)
    names = ("gpu_uuid", "gpu_instance_id", "namespace", "workload")
    columns = {name: pa.array([key[i] or "" for key in keys], pa.string()) for i, name in enumerate(names)}
    return pa.table(columns | {"number": pa.array(list(case_of.values()), pa.int64())})
