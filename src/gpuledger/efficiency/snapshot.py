"""What does one instant say, where each GPU was read only once? Readings and states; a single sample covers no time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.means import NO_BOARD, NO_POWER, NO_UTIL
from gpuledger.efficiency.naming import sort_name
from gpuledger.efficiency.statement import EfficiencyStatement, Figure
from gpuledger.lake.batch import Batch, device_name
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.lake.rows import drop_repeats, without_conflicts
from gpuledger.lake.sorting.order import in_order
from gpuledger.ledger.facts import row_facts
from gpuledger.ledger.read.instants import devices_without_time
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.states import HELD, State, credible, judge
from gpuledger.telemetry import schema
from gpuledger.units import Unknown

BUSY, IDLE, IDLE_HELD = "busy", "idle", "idle, memory held"
LIGHT, CAPPED = "busy, light", "busy, capped"
NO_STATE = "neither activity nor utilization in the sample"
NO_MEMORY = "no memory use in the sample"
NO_FREE = "no free memory in the sample"
NO_TEMPERATURE = "no temperature in the sample"
NO_CLOCK = "no SM clock in the sample"
NOT_PRICED = "this statement uses no prices; gpuledger audit shows them"
_NAMED = {State.IDLE: IDLE, State.LIGHT: LIGHT, State.LIGHT_UNSEEN: LIGHT, State.CAPPED: CAPPED}


@dataclass(frozen=True)
class GpuReading:
    """One device at its instant: a board, or a MIG instance. The limit is the one in force, else the board's own."""

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    namespace: str | None
    workload: str | None
    at_ms: int
    state: str | Unknown
    gpu_util_pct: Figure
    power_w: Figure
    power_limit_w: Figure
    power_of_limit_pct: Figure
    memory_used_bytes: int | Unknown
    memory_free_bytes: int | Unknown
    gpu_temp_c: Figure
    sm_clock_mhz: Figure
    slice_ratio: float | None = None
    usd_per_h: Decimal | Unknown = Unknown(NOT_PRICED)  # noqa: RUF009  (frozen, so one for all is safe)

    @property
    def device(self) -> str:
        """The name of the device."""
        return device_name(self.gpu_uuid, self.gpu_instance_id)


@dataclass(frozen=True)
class SnapshotMeans:
    """Means over the devices (utilization) and boards (power) that report them."""

    gpu_util_pct: Figure
    power_w: Figure


@dataclass(frozen=True)
class SnapshotPrice:
    """One price that GPUs of the snapshot have, and what it rests on."""

    gpu_model: str | None
    gpus: int
    usd_per_h: Decimal
    low_usd_per_h: Decimal
    high_usd_per_h: Decimal
    basis: str
    words: str


@dataclass(frozen=True)
class Snapshot:
    """Every GPU once. Counts are of boards; one in MIG slices is busy while one of them is, and idle if all are.

    Dollars are of the `gpus_priced` boards with a price. The first reading is of `at_ms`, the last of `last_ms`.
    """

    at_ms: int
    last_ms: int
    gpus: int
    busy: int
    idle: int
    idle_held: int
    unknown: int
    fleet: SnapshotMeans
    by_gpu: tuple[GpuReading, ...]
    usd_per_h: Decimal | Unknown = Unknown(NOT_PRICED)  # noqa: RUF009
    idle_usd_per_h: Decimal | Unknown = Unknown(NOT_PRICED)  # noqa: RUF009
    gpus_priced: int = 0
    prices: tuple[SnapshotPrice, ...] = ()


def statement_or_snapshot(
    lake: Lake, scope: Scope, thresholds: Thresholds, **more: Any
) -> EfficiencyStatement | Snapshot:
    """The efficiency statement; the snapshot where no GPU in scope was read twice. `more`: see that statement."""
    made = efficiency_statement(lake, scope, thresholds=thresholds, **more)
    return made if made.fleet.observed_h else snapshot_of(lake, scope, thresholds) or made


def snapshot_of(lake: Lake, scope: Scope, limits: Thresholds | None = None) -> Snapshot | None:
    """What every GPU in scope read at its only instant; None where one has more than that, or the samples are gone."""
    rules = limits or load_thresholds()
    devices = devices_without_time(lake, scope, rules)
    if not devices:
        return None
    samples = samples_table(lake, scope.since_ms, scope.until_ms).unify_dictionaries()
    batch = Batch(without_conflicts(drop_repeats(in_order(samples)))[0])
    read = set(zip(_device_of_rows(batch), batch.at_ms.tolist(), strict=True))
    if len([device for device, _ in read if device in devices]) != len(devices):
        return None
    rows = [row for row in _readings(batch, rules) if row.device in devices]
    mine = sorted(rows, key=lambda r: (sort_name(r), r.gpu_instance_id or ""))
    boards = boards_of(mine)
    states = [board_state(board) for board in boards.values()]
    return Snapshot(
        at_ms=min(r.at_ms for r in mine),
        last_ms=max(r.at_ms for r in mine),
        gpus=len(boards),
        busy=states.count(BUSY),
        idle=states.count(IDLE) + states.count(IDLE_HELD),
        idle_held=states.count(IDLE_HELD),
        unknown=states.count(None),
        fleet=SnapshotMeans(
            _mean((r.gpu_util_pct for r in mine), NO_UTIL),
            _mean((_mean((r.power_w for r in board), NO_POWER) for board in boards.values()), NO_POWER),
        ),
        by_gpu=tuple(mine),
    )


def boards_of(rows: Iterable[GpuReading]) -> dict[str, list[GpuReading]]:
    """The rows of each board, in order."""
    out: dict[str, list[GpuReading]] = {}
    for row in rows:
        out.setdefault(row.gpu_uuid, []).append(row)
    return out


def board_state(rows: Sequence[GpuReading]) -> str | None:
    """What a board does as a whole: busy, idle, idle with memory held; None where that is unknown."""
    sliced = [row for row in rows if row.gpu_instance_id]
    states = [row.state for row in sliced or rows]
    if any(not isinstance(state, Unknown) and state.startswith(BUSY) for state in states):
        return BUSY
    if any(isinstance(state, Unknown) for state in states):
        return None
    return IDLE_HELD if IDLE_HELD in states else IDLE


def _mean(figures: Iterable[Figure], why: str) -> Figure:
    known = [figure for figure in figures if not isinstance(figure, Unknown)]
    return sum(known) / len(known) if known else Unknown(why)


def _device_of_rows(batch: Batch) -> list[str]:
    names = batch.devices
    return [names[i] for i in batch.devices_at(np.arange(batch.n)).tolist()]


def _readings(batch: Batch, limits: Thresholds) -> list[GpuReading]:
    """The first row of each device: holders that share an instant have the readings of their device."""
    levels = {c.name for c in schema.columns().values() if c.kind == "level"}
    found = credible({name: v for name in levels if (v := batch.numbers(name)) is not None})
    facts, at = row_facts(batch), batch.device_starts
    judged = judge(found, facts, limits.idle, batch.n)
    texts = {
        name: batch.text(name, at).to_pylist()
        for name in (*schema.DEVICE, "gpu_model", "host", "gpu_index", "namespace", "workload")
    }
    blank = np.full(batch.n, np.nan)

    def figures(name: str, why: str, factor: float = 1.0) -> list[Figure]:
        return _figures(found.get(name, blank)[at] * factor, why)

    limit = found.get("power_limit_w", blank).astype(np.float64)
    limit = np.where(np.isnan(limit), facts.board_w, limit)[at]
    power = found.get("power_w", blank)[at]
    used, free = (found.get(name, blank)[at].astype(np.float64) for name in ("fb_used_bytes", "fb_free_bytes"))
    why = NO_POWER if np.isnan(power).all() else NO_BOARD
    rows = zip(
        *texts.values(), batch.at_ms[at].tolist(),
        [_state(*pair) for pair in zip(judged.state[at].tolist(), judged.memory[at].tolist(), strict=True)],
        figures("gpu_util_ratio", NO_UTIL, 100.0), figures("power_w", NO_POWER), _figures(limit, NO_BOARD),
        _figures(100 * power / limit, why), _bytes(used, NO_MEMORY), _bytes(free, NO_FREE),
        figures("gpu_temp_c", NO_TEMPERATURE), figures("sm_clock_mhz", NO_CLOCK),
        [None if isinstance(share, Unknown) else share for share in figures("slice_ratio", "")],
        strict=True,
    )  # fmt: skip
    return [GpuReading(*row) for row in rows]


def _state(state: int, memory: int) -> str | Unknown:
    if state == State.UNSTATED:
        return Unknown(NO_STATE)
    name = _NAMED.get(State(state), BUSY)
    return IDLE_HELD if name == IDLE and memory == HELD else name


def _figures(values: np.ndarray, why: str) -> list[Figure]:
    """Readings as they are written: a float32 of 0.98 is 98, not 98.00000190734863."""
    unknown = Unknown(why)
    return [unknown if np.isnan(v) else float(f"{v:.7g}") for v in values.tolist()]


def _bytes(values: np.ndarray, why: str) -> list[int | Unknown]:
    unknown = Unknown(why)
    return [unknown if np.isnan(v) else round(v) for v in values.tolist()]
