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
from gpuledger.lake.batch import OWNERSHIP, Batch
from gpuledger.ledger import lines, measures, spells
from gpuledger.ledger.changes import add_energy, add_errors
from gpuledger.ledger.facts import row_facts
from gpuledger.ledger.grouping import Grouped, by_line, kinds
from gpuledger.ledger.measures import PIPES, Rows, Sums
from gpuledger.ledger.spans import Clip, Edge, Stamps, cut_at_hours, shared_out, stamps_of
from gpuledger.ledger.spells import find_waits
from gpuledger.native.line_sums import LineRows
from gpuledger.physics.mending import FINE_STEP_MS, mend
from gpuledger.physics.row_facts import RowFacts
from gpuledger.physics.states import LABELS, State, credible, judge, ppm
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_HOUR, MS_PER_S

# Rows worked on at once: enough to make the calls cheap, few enough for the columns in use to stay near the cores.
BLOCK_ROWS = 1 << 18
_LEVELS = (
    "gpu_util_ratio", "mem_copy_util_ratio", "enc_util_ratio", "dec_util_ratio", "power_w", "sm_clock_mhz",
    "gpu_temp_c", "mem_temp_c", "fb_used_bytes", "fb_free_bytes", "engine_ratio", "sm_ratio", "dram_ratio",
    "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", "nvlink_bytes_per_s", "throttle_bits", "slice_ratio",
    "power_limit_w", "occupancy_ratio", "integer_ratio", *(f"{p}_ratio" for p in PIPES),
)  # fmt: skip
COUNTERS = (*schema.counters(), "xid")
_LABELS = (*schema.DEVICE, *OWNERSHIP, "gpu_model", "host", "gpu_index", "region", "node_group")
COLUMNS = (schema.TIME, *_LABELS, "container", *_LEVELS, *COUNTERS)
_POD_LABELS = (*schema.DEVICE, *schema.OWNER, "pod", "container")
PODS = pa.schema(
    [(n, pa.string()) for n in _POD_LABELS] + [(n, pa.int64()) for n in ("first_ms", "last_ms", "observed_ms")],
    metadata={"gpuledger.pods.version": "2"},
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
    *,
    pods: bool = True,
) -> Posted:
    """Post rows in order and without conflicts.

    `steady`: error counters that stand still in all rows, which the table then need not hold; `fixed`: labels that no
    device changes; `clip`: only the part of the lines within these instants, and neither spells nor pods; `pods`:
    whether these are wanted.
    """
    if not table.num_rows:
        return Posted(**empty_tables(), samples=0)
    batch, after = Batch(table, steady, fixed), edges or {}
    made = [_post_block(block, first, limits, after, clip or Clip()) for first, block in batch.slices(BLOCK_ROWS)]
    blocks = [b for b in made if b is not None]
    if not blocks:
        return Posted(**empty_tables(), samples=0)
    samples = batch.n if batch.copies is None else int((~batch.copies).sum())
    if clip is not None:
        return Posted(**(empty_tables() | {"lines": _lines(blocks, batch)}), samples=samples)
    devices = np.cumsum([0, *(len(b.devices) for b in blocks)])
    quiet = [(b.spells[0] + d, *b.spells[1:]) for b, d in zip(blocks, devices, strict=False)]
    found = spells.Found(*(np.concatenate(parts) for parts in zip(*quiet, strict=True)))
    uuid, instance = (batch.text(c, batch.device_starts) for c in schema.DEVICE)
    held = _pods(batch, np.concatenate([b.own_ms for b in blocks])) if pods else PODS.empty_table()
    return Posted(_lines(blocks, batch), spells.table(found, uuid, instance), held, samples)


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
    grouped = by_line(pieces, batch, kinds(state, readings, limit_w))
    of_lines = LineRows.of(pieces.row, pieces.ms, grouped.runs, grouped.run_line, grouped.count)
    sums = Sums(Rows(readings, silent, of_lines, limit_w))
    measures.add_efficiency(sums, limits)
    measures.add_counters(sums)
    measures.add_pipes(sums, lambda: facts.rated_mhz)
    measures.add_heat(sums)
    sums.settle()
    sums.out["state"] = state[grouped.samples]
    measures.add_states(sums, judged.memory, judged.busy)
    if waits is not None:
        here = state == State.WAIT
        opens = grouped.opening(stamps.per_row(waits.opens) & here)
        measures.add_waits(sums, here, stamps.per_row(waits.length), opens)
    add_errors(sums, batch, stamps, after, grouped)
    add_energy(sums, batch, stamps, after, grouped, start, full)
    _add_keys(sums, batch, grouped, stamps)
    # A little utilization is some work: no stretch without work goes on over it.
    quiet = state if judged.low is None else np.where(judged.low & (state == State.IDLE), np.int8(State.PLAIN), state)
    found = spells.find(stamps, stamps.of(quiet), stamps.of(judged.memory))
    return _Block(sums.out, grouped.samples + first_row, found, batch.devices, own)


def _mended(readings: dict[str, np.ndarray], stamps: Stamps) -> dict[str, np.ndarray]:
    """The readings with missed windows filled; owners that share an instant share its reading."""
    seen = {n: stamps.of(v) for n, v in readings.items()}
    filled = {n: v for n, v in mend(seen, stamps.span_ms, stamps.device_starts).items() if v is not seen[n]}
    if stamps.row is None:
        return readings | filled
    same = {n: stamps.per_row((v == seen[n]) | (np.isnan(v) & np.isnan(seen[n]))) for n, v in filled.items()}
    return readings | {n: np.where(same[n], readings[n], stamps.per_row(v)) for n, v in filled.items()}


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


def _add_keys(sums: Sums, batch: Batch, grouped: Grouped, stamps: Stamps) -> None:
    """Add what is neither a level nor a counter."""
    rows, out, pieces = sums.rows, sums.out, grouped.pieces
    if batch.copies is not None:
        sums.put("samples", grouped.opening(~batch.copies).astype(np.float64))
    elif pieces.opens is None:
        out["samples"] = grouped.lengths()
    else:
        sums.put("samples", pieces.opens.astype(np.float64))
    out["first_ms"], out["last_ms"] = pieces.low_ms[grouped.first], pieces.high_ms[grouped.last]
    out["observed_ms"] = sums.observed
    if stamps.row is not None:
        out["shared_ms"] = sums.time_of(_with_others(batch, stamps))
    out["hour_ms"], out["grain_ms"] = pieces.hour[grouped.first] * MS_PER_HOUR, np.full(grouped.count, MS_PER_HOUR)
    out["limit_mw"] = np.rint(rows.limit_w[grouped.samples] * 1e3)
    if (share := rows.readings.get("slice_ratio")) is not None:
        out["slice_ppm"] = ppm(share[grouped.samples])


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
