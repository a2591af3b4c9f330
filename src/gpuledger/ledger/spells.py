"""When was a device idle (memory free, held or not recorded), waiting or not observed, and for how long at a stretch?

A pause shorter than the limit, with work right before and right after it, is a wait: the GPU starves. A longer one is
idle time, and so is one at the edge of what was observed: whether work went on there is not known. Days are judged
apart: a pause over midnight is two pauses at an edge.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.ledger.spans import Stamps
from gpuledger.physics.states import FREE, HELD, NO_MEMORY, RESTING, State

# Lengths: up to 1 s, up to 10 s, and the rest.
EDGES_MS = (1_000, 10_000)
COLUMNS = ("wait_1s_ms", "wait_10s_ms", "wait_30s_ms")


class Waits(msgspec.Struct, frozen=True):
    """By instant whether it is part of a wait, the place of its length in COLUMNS, and whether it opens one."""

    waiting: np.ndarray
    length: np.ndarray
    opens: np.ndarray


def find_waits(stamps: Stamps, state: np.ndarray, below_ms: int) -> Waits | None:
    """The waits among instants; None where there are none."""
    still = state == State.IDLE
    if not still.any() or stamps.span_ms[still].min() >= below_ms:
        return None
    first, last, after_hole = runs(stamps, state)
    end = stamps.at_ms + stamps.span_ms
    length = end[last] - stamps.at_ms[first]
    works = ~np.isin(state[first], RESTING)
    before = np.append(False, works[:-1]) & ~after_hole
    after = np.append(works[1:] & ~after_hole[1:], False)
    wait = (state[first] == State.IDLE) & before & after & (length < below_ms)
    if not wait.any():
        return None
    counts = last - first + 1
    place = np.searchsorted(EDGES_MS, length, side="right").astype(np.int8)
    opens = np.zeros(len(state), dtype=bool)
    opens[first[wait]] = True
    return Waits(np.repeat(wait, counts), np.repeat(place, counts), opens)


def runs(stamps: Stamps, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where runs of equal state without a hole begin and end, and which begin a device or follow a hole."""
    breaks = np.zeros(len(state), dtype=bool)
    breaks[stamps.device_starts] = True
    hole = np.flatnonzero((stamps.at_ms + stamps.span_ms < stamps.next_ms) & (stamps.next_ms >= 0)) + 1
    breaks[hole[hole < len(state)]] = True
    opens = breaks.copy()
    opens[1:] |= state[1:] != state[:-1]
    first = np.flatnonzero(opens)
    return first, np.append(first[1:], len(state)) - 1, breaks[first]


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
