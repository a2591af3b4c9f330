"""Since when does a GPU have its faults, and with which codes? Lines count them by hour; samples show the instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import read_devices
from gpuledger.live.alerts.rule import Evidence, Reading
from gpuledger.live.alerts.seen import Seen
from gpuledger.telemetry import schema

XID = "xid"
# Samples this long before the window show what a counter was when the window began.
_BEFORE_MS = 600_000
Fault = tuple[int, int]  # instant, value


def fault_readings(seen: Seen, column: str, sampled: Sequence[str]) -> Iterator[Reading]:
    """How many faults each board had in the window; `sampled`: the columns of samples that show them."""
    start = seen.end_ms - seen.window_ms
    for uuid, board in seen.boards.items():
        count = board.sums[column]
        found = [f for name in sampled for f in _faults(seen.lake, uuid, name, start)] if count else []
        since = min((at for at, _ in found), default=None)
        evidence: dict[str, str | int | float | None] = {"host": board.host, **_codes(sampled, found)}
        yield Reading(board.subject, float(count), seen.newest_ms, since, board.owner, evidence)


def _codes(sampled: Sequence[str], found: Sequence[Fault]) -> Evidence:
    if XID not in sampled or not found:
        return {}
    return {"xid_codes": ", ".join(str(code) for code in sorted({value for _, value in found}))}


def _faults(lake: Lake, uuid: str, name: str, start_ms: int) -> list[Fault]:
    """When a counter of a board rose, or a driver error appeared; empty where the samples are gone."""
    tables = []
    for part in lake.manifest().parts:
        if part.last_ms >= start_ms - _BEFORE_MS:
            tables += [_of(table, uuid, name, start_ms) for table in read_devices(lake.path(part), uuid, uuid)]
    if not any(len(table) for table in tables):
        return []
    table = pa.concat_tables(tables).sort_by([(schema.DEVICE[1], "ascending"), (schema.TIME, "ascending")])
    at, value = table[schema.TIME].to_numpy(), table[name].to_numpy()
    same = np.array(table[schema.DEVICE[1]].to_pylist()[1:]) == np.array(table[schema.DEVICE[1]].to_pylist()[:-1])
    rose = (value[1:] > 0) & (value[1:] != value[:-1]) if name == XID else value[1:] > value[:-1]
    here = 1 + np.flatnonzero(rose & same)
    return [(int(at[i]), int(value[i])) for i in here.tolist() if at[i] >= start_ms]


def _of(table: pa.Table, uuid: str, name: str, start_ms: int) -> pa.Table:
    """The rows of one board from shortly before the window on that have a value."""
    kept = table.select([schema.TIME, *schema.DEVICE, name])
    for label in schema.DEVICE:
        kept = kept.set_column(kept.schema.get_field_index(label), label, kept[label].cast(pa.string()))
    mine = pc.and_(pc.equal(kept["gpu_uuid"], uuid), pc.greater_equal(kept[schema.TIME], start_ms - _BEFORE_MS))
    kept = kept.filter(pc.and_(mine, pc.is_valid(kept[name])))
    return kept.set_column(2, schema.DEVICE[1], pc.fill_null(kept[schema.DEVICE[1]], ""))
