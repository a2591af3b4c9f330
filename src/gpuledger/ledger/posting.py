"""What lines, spells and pods do these samples make?

`post` takes rows of whole devices in order of device and time, and knows of what follows only the edges: the first
sample after the day, per device. Any set of devices can be posted by itself: merged, the lines are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.batch import Batch
from gpuledger.ledger import lines, measures, spells
from gpuledger.ledger.changes import add_energy, add_errors
from gpuledger.ledger.facts import row_facts
from gpuledger.ledger.measures import PIPES, Rows, Sums
from gpuledger.ledger.spans import Clip, Edge, Pieces, Stamps, cut_at_hours, shared_out, stamps_of
from gpuledger.ledger.waits import find_waits
from gpuledger.physics.mending import FINE_STEP_MS, mend
from gpuledger.physics.row_facts import RowFacts
from gpuledger.physics.states import LABELS, State, credible, judge, ppm
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_HOUR, MS_PER_S, PPM

# Rows worked on at once: enough to make the calls cheap, few enough for the columns in use to stay near the cores.
BLOCK_ROWS = 1 << 18
_LEVELS = (
    "gpu_util_ratio", "mem_copy_util_ratio", "power_w", "sm_clock_mhz", "gpu_temp_c", "mem_temp_c", "fb_used_bytes",
    "fb_free_bytes", "engine_ratio", "sm_ratio", "dram_ratio", "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s",
    "nvlink_bytes_per_s", "throttle_bits", "slice_ratio", "power_limit_w", "occupancy_ratio", "integer_ratio",
    *(f"{p}_ratio" for p in PIPES),
)  # fmt: skip
COUNTERS = (*schema.counters(), "xid")
_LABELS = (*schema.DEVICE, *schema.OWNER, "tensor_precision", "gpu_model", "host", "region", "node_group")
COLUMNS = (schema.TIME, *_LABELS, "pod", "container", *_LEVELS, *COUNTERS)
_POD_LABELS = (*schema.DEVICE, *schema.OWNER, "pod", "container")
PODS = pa.schema(
    [(n, pa.string()) for n in _POD_LABELS] + [(n, pa.int64()) for n in ("first_ms", "last_ms", "observed_ms")],
    metadata={"gpuledger.pods.version": "1"},
)


@dataclass(frozen=True)
class Posted:
    """What a piece of samples made."""

    lines: pa.Table
    spells: pa.Table
    pods: pa.Table
    samples: int


@dataclass(frozen=True)
class _Block:
    """What a block of whole devices made: sums by column, the first row of each line, spells, devices."""

    out: dict[str, np.ndarray]
    row: np.ndarray
    spells: spells.Found
    devices: list[str]
    own_ms: np.ndarray


def post(
    table: pa.Table,
    limits: Thresholds,
    edges: Mapping[str, Edge] | None = None,
    steady: Mapping[str, float] | None = None,
    fixed: frozenset[str] = frozenset(),
    clip: Clip | None = None,
) -> Posted:
    """Post rows in order and without conflicts.

    `steady`: error counters that stand still in all rows, which the table then need not hold; `fixed`: labels that no
    device changes; `clip`: only the part of the lines within these instants, and neither spells nor pods.
    """
    if not table.num_rows:
        return Posted(**empty_tables(), samples=0)
    batch, after = Batch(table, steady, fixed), edges or {}
    made = [_post_block(block, first, limits, after, clip or Clip()) for first, block in batch.slices(BLOCK_ROWS)]
    blocks = [b for b in made if b is not None]
    if not blocks:
        return Posted(**empty_tables(), samples=0)
    if clip is not None:
        return Posted(**(empty_tables() | {"lines": _lines(blocks, batch)}), samples=batch.n)
    devices = np.cumsum([0, *(len(b.devices) for b in blocks)])
    quiet = [(b.spells[0] + d, *b.spells[1:]) for b, d in zip(blocks, devices, strict=False)]
    found = spells.Found(*(np.concatenate(parts) for parts in zip(*quiet, strict=True)))
    uuid, instance = (batch.text(c, batch.device_starts) for c in schema.DEVICE)
    own = np.concatenate([b.own_ms for b in blocks])
    return Posted(_lines(blocks, batch), spells.table(found, uuid, instance), _pods(batch, own), batch.n)


def empty_tables() -> dict[str, pa.Table]:
    """The tables of no samples."""
    kinds = {"lines": lines.coded_schema(), "spells": spells.SCHEMA, "pods": PODS}
    return {name: kind.empty_table() for name, kind in kinds.items()}


def _post_block(
    batch: Batch, first_row: int, limits: Thresholds, after: Mapping[str, Edge], clip: Clip
) -> _Block | None:
    """The sums of a block small enough for its columns to stay in the processor's cache."""
    stamps = stamps_of(batch, after)
    own, full, start = shared_out(stamps), stamps.per_row(stamps.span_ms), batch.at_ms
    recorded = {n: v for n in _LEVELS if (v := batch.numbers(n)) is not None}
    readings = credible(recorded)
    silent = {n for n, v in readings.items() if batch.silent(n) or v is not recorded[n]}
    if stamps.span_ms.min() <= FINE_STEP_MS:
        readings = _mended(readings, stamps)
        silent = {n for n, v in readings.items() if n in silent or np.isnan(v).any()}
    facts = row_facts(batch)
    judged = judge(readings, facts, limits.idle, batch.n)
    state, waits = judged.state, find_waits(stamps, stamps.of(judged.state), limits.idle.waits_below_s * MS_PER_S)
    if waits is not None:
        state = np.where(stamps.per_row(waits.waiting) & (state == State.IDLE), np.int8(State.WAIT), state)
    limit_w = _limit_w(readings, facts, batch.n)
    pieces = clip.cut(cut_at_hours(start, full, own))
    if not len(pieces.ms):
        return None
    pieces, line, starts = _by_line(pieces, batch, _kinds(state, readings, limit_w))
    spread = {n: pieces.of(v) for n, v in readings.items()}
    rows = Rows(spread, silent, pieces.ms.astype(np.float64), starts, line, pieces.of(limit_w))
    sums = Sums(rows)
    here = pieces.of(state)
    busy = judged.busy
    if busy is not None:
        busy = spread["engine_ratio"] if busy is readings.get("engine_ratio") else pieces.of(busy)
    measures.add_states(sums, here, lambda: pieces.of(judged.memory), busy)
    if waits is not None:
        opens = pieces.opening(stamps.per_row(waits.opens))
        measures.add_waits(sums, here, pieces.of(stamps.per_row(waits.length)), opens & (here == State.WAIT))
    measures.add_efficiency(sums, limits)
    measures.add_counters(sums)
    measures.add_pipes(sums, lambda: pieces.of(facts.rated_mhz))
    measures.add_heat(sums)
    add_errors(sums, batch, stamps, after, pieces)
    add_energy(sums, batch, stamps, after, pieces, start, full)
    row = _add_keys(sums, batch, pieces, stamps)
    sums.out["state"] = here[starts]
    found = spells.find(stamps, stamps.of(state), stamps.of(judged.memory))
    return _Block(sums.out, row + first_row, found, batch.devices, own)


def _mended(readings: dict[str, np.ndarray], stamps: Stamps) -> dict[str, np.ndarray]:
    """The readings with missed windows filled; owners that share an instant share its reading."""
    seen = {n: stamps.of(v) for n, v in readings.items()}
    filled = {n: v for n, v in mend(seen, stamps.span_ms, stamps.device_starts).items() if v is not seen[n]}
    if stamps.row is None:
        return readings | filled
    same = {n: stamps.per_row((v == seen[n]) | (np.isnan(v) & np.isnan(seen[n]))) for n, v in filled.items()}
    return readings | {n: np.where(same[n], readings[n], stamps.per_row(v)) for n, v in filled.items()}


def _kinds(state: np.ndarray, readings: Mapping[str, np.ndarray], limit_w: np.ndarray) -> np.ndarray:
    """A small number per row, equal where state, power limit and MIG share are: a line holds one of each."""
    kind = state.astype(np.int64)
    share = readings.get("slice_ratio")
    for values, factor in ((share, PPM), (limit_w, 1e3)):  # told apart as finely as lines write them
        if values is not None and len(values):
            codes, count = _run_codes(np.nan_to_num(values, nan=-1.0), factor)
            kind = kind * count + codes if count > 1 else kind
    return kind


def _run_codes(values: np.ndarray, factor: float) -> tuple[np.ndarray, int]:
    """Numbers for values that change seldom, equal where values x factor round alike, and how many there are."""
    heads = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    found, codes = np.unique(measures.whole(values[heads], factor), return_inverse=True)
    return np.repeat(codes.reshape(-1), np.diff(heads, append=len(values))), len(found)


def _by_line(pieces: Pieces, batch: Batch, kind: np.ndarray) -> tuple[Pieces, np.ndarray, np.ndarray]:
    """Pieces with each line's together, the line of each piece, and where the lines start."""
    change = batch.owner_changes.copy()
    change[batch.device_starts] = True
    if pieces.row is not None:
        kind, turn = kind[pieces.row], np.cumsum(change)[pieces.row]
        change = np.diff(turn, prepend=-1) != 0
    change[1:] |= pieces.hour[1:] != pieces.hour[:-1]
    starts = np.flatnonzero(change)
    run = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(change)))
    row = starts if pieces.row is None else pieces.row[starts]
    owner = batch.owners_at(row)
    device = np.searchsorted(batch.device_starts, row, side="right") - 1
    heads = (device * (1 << 24) + pieces.hour[starts]) * (int(owner.max()) + 1) + owner
    turns = not (np.diff(heads) > 0).all()  # owners take turns within the hour, each perhaps in another state
    if turns:
        run = np.unique(heads, return_inverse=True)[1].reshape(-1)[run]
    mixed = turns or bool((kind[1:] != kind[:-1])[run[1:] == run[:-1]].any())
    code = run * (int(kind.max()) + 1) + kind if mixed else run
    if (np.diff(code) < 0).any():
        wide = int(code.max())
        order = np.argsort(code.astype(np.uint16) if wide < 1 << 16 else code, kind="stable")
        pieces, code = pieces.take(order), code[order]
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    return pieces, np.repeat(np.arange(len(starts)), np.diff(starts, append=len(code))), starts


def _limit_w(readings: Mapping[str, np.ndarray], facts: RowFacts, n: int) -> np.ndarray:
    """The power limit by row: the one in force, else the board's own; NaN where neither is known."""
    board = np.broadcast_to(facts.board_w, n)
    limit = readings.get("power_limit_w")
    return board if limit is None else np.where(np.isnan(limit), board, limit.astype(np.float64))


def _with_others(batch: Batch, stamps: Stamps) -> np.ndarray:
    """Rows whose instant has another owner too; several pods of one owner do not count."""
    assert stamps.row is not None
    change = batch.changes(schema.OWNER)
    change[stamps.row] = False
    return stamps.per_row(np.logical_or.reduceat(change, stamps.row))


def _add_keys(sums: Sums, batch: Batch, pieces: Pieces, stamps: Stamps) -> np.ndarray:
    """Add what is neither a level nor a counter; return the first row of each line, for its labels."""
    rows, out, starts = sums.rows, sums.out, sums.rows.starts
    if pieces.row is None:
        out["samples"] = np.diff(starts, append=len(rows.ms))
        ends = np.append(starts[1:], len(rows.ms)) - 1
        out["first_ms"], out["last_ms"], row = pieces.low_ms[starts], pieces.high_ms[ends], starts
    else:
        sums.put("samples", np.ones(len(rows.ms)) if pieces.opens is None else pieces.opens.astype(np.float64))
        out["first_ms"] = np.minimum.reduceat(pieces.low_ms, starts)
        out["last_ms"] = np.maximum.reduceat(pieces.high_ms, starts)
        row = pieces.row[starts]
    out["observed_ms"] = sums.observed
    if stamps.row is not None:
        sums.put("shared_ms", rows.ms * pieces.of(_with_others(batch, stamps)))
    out["hour_ms"], out["grain_ms"] = pieces.hour[starts] * MS_PER_HOUR, np.full(len(starts), MS_PER_HOUR)
    out["limit_mw"] = np.rint(rows.limit_w[starts] * 1e3)
    if (share := rows.get("slice_ratio")) is not None:
        out["slice_ppm"] = ppm(share[starts])
    return row


def _lines(blocks: list[_Block], batch: Batch) -> pa.Table:
    """The sums of all blocks with their labels, in the columns of a line."""
    row = np.concatenate([b.row for b in blocks])
    said = {name for b in blocks for name in b.out}
    none, never = pa.array(np.zeros(len(row), dtype=np.int64)), pa.nulls(len(row), pa.int64())
    arrays, made = [], dict[tuple[int, ...], pa.Array]()
    for name, column in lines.columns().items():
        if name == "state":
            codes = np.concatenate([b.out["state"] for b in blocks]).astype(np.int32)
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(LABELS)))
            continue
        if column.type == "string":
            arrays.append(batch.label(name, row))
            continue
        if name not in said:
            arrays.append(none if column.merge == "sum" else never)
            continue
        missing = 0.0 if column.merge == "sum" else np.nan
        parts = [b.out[name] if name in b.out else np.full(len(b.row), missing) for b in blocks]
        # What is always known is known for all the time observed: one array under many names.
        same = tuple(id(part) for part in parts)
        if same not in made:
            whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
            made[same] = _whole_array(whole, may_lack=column.merge != "sum")
        arrays.append(made[same])
    return pa.table(arrays, schema=lines.coded_schema())


def _whole_array(values: np.ndarray, *, may_lack: bool) -> pa.Array:
    """Whole numbers as int64, NULL where NaN."""
    if may_lack and values.dtype != np.int64 and (silent := np.isnan(values)).any():
        return pa.array(np.where(silent, 0, values).astype(np.int64), mask=silent)
    return pa.array(values.astype(np.int64, copy=False))


def _pods(batch: Batch, own: np.ndarray) -> pa.Table:
    """Which pods held which device, from when to when, for how long."""
    if batch.column("pod") is None and batch.column("container") is None:
        return PODS.empty_table()
    start = np.flatnonzero(batch.changes(_POD_LABELS))
    last = np.append(start[1:], batch.n) - 1
    texts = [batch.text(n, start) for n in _POD_LABELS]
    low, high = batch.at_ms[start], batch.at_ms[last] + own[last]
    held = pa.table([*texts, pa.array(low), pa.array(high), pa.array(np.add.reduceat(own, start))], schema=PODS)
    # Time without a pod is listed nowhere, whatever the neighbors have.
    held = held.filter(pc.or_(pc.is_valid(held["pod"]), pc.is_valid(held["container"])))
    if len(start) == len(batch.device_starts):  # one pod a device all day
        return held
    totals = [("first_ms", "min"), ("last_ms", "max"), ("observed_ms", "sum")]
    grouped = held.group_by(list(_POD_LABELS), use_threads=False).aggregate(totals)
    return grouped.rename_columns(PODS.names).cast(PODS)
