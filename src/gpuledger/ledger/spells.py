"""When was a device idle (memory free, held or not recorded) or not observed, and for how long at a stretch?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuledger.ledger.spans import Stamps
from gpuledger.ledger.waits import runs
from gpuledger.physics.states import FREE, HELD, NO_MEMORY, State

GAP = "gap"
# In the order of the codes for how memory stands.
KINDS = ("idle", "idle_held", "idle_unknown", GAP)
assert (FREE, HELD, NO_MEMORY) == (0, 1, 2)
SCHEMA = pa.schema(
    [
        ("gpu_uuid", pa.string()),
        ("gpu_instance_id", pa.string()),
        ("start_ms", pa.int64()),
        ("end_ms", pa.int64()),
        ("kind", pa.string()),
    ],
    metadata={"gpuledger.spells.version": "1"},
)


class Found(NamedTuple):
    """Spells as columns; `kind` is a place in KINDS."""

    device: np.ndarray
    start_ms: np.ndarray
    end_ms: np.ndarray
    kind: np.ndarray


def find(stamps: Stamps, state: np.ndarray, memory: np.ndarray) -> Found:
    """Runs of idle time per device without a hole, by how memory was held, and the holes."""
    end = stamps.at_ms + stamps.span_ms
    hole = np.flatnonzero((end < stamps.next_ms) & (stamps.next_ms >= 0))
    code = np.where(state == State.IDLE, memory, np.int8(-1))
    first, last, _ = runs(stamps, code)
    quiet = code[first] >= 0
    first, last = first[quiet], last[quiet]
    device = np.searchsorted(stamps.device_starts, np.concatenate([first, hole]), side="right") - 1
    return Found(
        device,
        np.concatenate([stamps.at_ms[first], end[hole]]),
        np.concatenate([end[last], stamps.next_ms[hole]]),
        np.concatenate([code[first].astype(np.int64), np.full(len(hole), KINDS.index(GAP))]),
    )


def table(found: Found, uuid: pa.Array, instance: pa.Array) -> pa.Table:
    """Spells as a table in order of device, start and kind; `uuid` and `instance` by device number."""
    device, start, end, kind = found
    order = np.lexsort((kind, start, device))
    devices = pa.array(device[order])
    kinds = pa.DictionaryArray.from_arrays(pa.array(kind[order].astype(np.int32)), pa.array(KINDS)).cast(pa.string())
    columns = [uuid.take(devices), instance.take(devices), pa.array(start[order]), pa.array(end[order]), kinds]
    return pa.table(columns, schema=SCHEMA)


def join(spells: pa.Table) -> pa.Table:
    """Spells of one kind that touch become one, as where midnight or the end of a piece cut them."""
    spells = spells.sort_by(
        [("gpu_uuid", "ascending"), ("gpu_instance_id", "ascending"), ("kind", "ascending"), ("start_ms", "ascending")]
    )
    if spells.num_rows < 2:
        return spells
    start, end = spells["start_ms"].to_numpy(), spells["end_ms"].to_numpy()
    same = np.zeros(len(start), dtype=bool)
    same[1:] = end[:-1] == start[1:]
    for name in ("gpu_uuid", "gpu_instance_id", "kind"):
        codes = (
            pa.array(spells[name].to_pylist()).dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        )
        same[1:] &= np.diff(codes) == 0
    first = np.flatnonzero(~same)
    last = np.append(first[1:], len(start)) - 1
    joined = spells.take(pa.array(first))
    return joined.set_column(joined.column_names.index("end_ms"), "end_ms", pa.array(end[last]))
