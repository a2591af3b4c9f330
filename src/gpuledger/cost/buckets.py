"""How does the time of each line divide into buckets?

A line holds one state, so what limits it is known: in compute-bound time the share of the peak is put to use, in
memory-bound time the share of the memory interface, at a power limit all of the busy time. What the evidence cannot
rate is neither put to use nor wasted: unrated. Sums are linear in the line but for the cap at its busy time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuledger.physics.activity import COLUMNS as ACTIVITY
from gpuledger.physics.activity import CONDITIONS
from gpuledger.physics.calibration import Calibration
from gpuledger.physics.evidence import ModelFacts, Worked, work
from gpuledger.physics.states import BY_MEMORY, BY_PIPES, NOT_ALL_SEEN, State
from gpuledger.units import PPM, Unknown

WAITS = ("wait_1s_ms", "wait_10s_ms", "wait_30s_ms")
IDLE = ("idle_ms", "idle_held_ms", "idle_unknown_ms")
_PHASES = ("phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms", "phase_compute_bound_ms")
_PASSED_ON = (
    "samples",
    "observed_ms",
    "unstated_ms",
    "idle_unknown_ms",
    "unclocked_ms",
    *_PHASES,
    "energy_ms",
    "energy_mj",
)
NUMBERS = tuple(
    dict.fromkeys((
        "first_ms", "last_ms", *_PASSED_ON, *IDLE, *WAITS, "pif_ms", "pif_uj", "active_pif_ms", "active_pif_uj",
        *ACTIVITY, *CONDITIONS,
    ))
)  # fmt: skip

Sums = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Kinds:
    """The GPU model and tensor precision of each row, as numbers into a list of pairs."""

    of_row: np.ndarray
    pairs: Sequence[tuple[str | None, str | None]]


@dataclass(frozen=True)
class Boards:
    """By row the power an idle board draws and how its attainable bandwidth compares with the rated one."""

    idle_mw: np.ndarray
    attainable: np.ndarray


def divide(
    rows: Sums, kinds: Kinds, models: Mapping[str | None, ModelFacts], boards: Boards, done: Worked | None = None
) -> dict[str, np.ndarray]:
    """Whole milliseconds by bucket, what they rest on, and the work done, line by line; `done`: where known already."""
    state = rows["state"]
    waiting = sum(rows[w] for w in WAITS)
    resting = sum(rows[i] for i in IDLE)
    engaged = np.maximum(rows["observed_ms"] - rows["unstated_ms"] - resting - waiting, 0)
    busy = np.minimum(engaged, (rows["busy_ppm_ms"] + PPM // 2) // PPM)
    done = done or work(rows, kinds.of_row, kinds.pairs, models, with_notes=False)
    real, basis = _real(rows, state, busy, engaged, done.middle, done.ms, boards)
    used = np.minimum(busy, np.rint(np.nan_to_num(real)).astype(np.int64))
    rest = busy - used
    unrated = np.isin(state, NOT_ALL_SEEN) | np.isnan(real) | (basis == _FLOOR)
    # Lines of version 1 do not tell states apart; without vector pipes their work is a lower bound.
    unrated |= (state < 0) & (basis == _COUNTERS) & (rows["fp32_ms"] == 0)
    peak = _by_kind(kinds, models, lambda f: f.peak_tflops)
    counted = ~np.isnan(peak) & (done.ms > 0)
    out = {name: rows[name] for name in _PASSED_ON}
    return out | {
        "productive_ms": used,
        "stalled_ms": np.where(unrated, 0, rest),
        "unrated_ms": np.where(unrated, rest, 0),
        "underused_ms": waiting + engaged - busy,
        "idle_ms": rows["idle_ms"] + rows["idle_unknown_ms"],
        "idle_held_ms": rows["idle_held_ms"],
        "waiting_ms": waiting,
        "by_counters_ms": np.where(basis == _COUNTERS, engaged, 0),
        "by_power_ms": np.where(basis == _POWER, engaged, 0),
        "by_none_ms": np.where((basis == _NONE) | (basis == _FLOOR), engaged, 0),
        "stateless_ms": np.where(state < 0, rows["observed_ms"], 0),
        "capped_ms": np.where(state == State.CAPPED, engaged, 0),
        "tensor_only_ms": np.where(np.isin(state, NOT_ALL_SEEN), engaged, 0),
        "counted_ms": np.where(counted, done.ms, 0).astype(np.int64),
        **{
            f"{case}_gflop": np.rint(np.where(counted, getattr(done, case) * peak, 0.0)).astype(np.int64)
            for case in ("low", "middle", "high", "loose")
        },
    }


_NONE, _COUNTERS, _POWER, _FLOOR = 0, 1, 2, 3  # a floor: memory activity alone, which proves use and no waste


def _real(
    rows: Sums,
    state: np.ndarray,
    busy: np.ndarray,
    engaged: np.ndarray,
    worked: np.ndarray,
    worked_ms: np.ndarray,
    boards: Boards,
) -> tuple[np.ndarray, np.ndarray]:
    """Time put to use (NaN where nothing tells), and what that rests on."""
    memory = np.where(rows["dram_ms"] > 0, rows["dram_ppm_ms"] / PPM * boards.attainable, np.nan)
    real, basis = np.full(len(state), np.nan), np.full(len(state), _NONE, np.int8)
    rated = worked_ms > 0
    pipes = np.isin(state, BY_PIPES) & rated
    real[pipes], basis[pipes] = worked[pipes], _COUNTERS
    by_memory = np.isin(state, BY_MEMORY)
    real[by_memory], basis[by_memory] = memory[by_memory], _COUNTERS
    mixed = (state < 0) & rated
    real[mixed], basis[mixed] = np.fmax(worked, memory)[mixed], _COUNTERS
    # Neither pipe nor rate: power above idle power bears witness, and memory activity for what it proves.
    blind = (state == State.PLAIN) | ((np.isin(state, BY_PIPES) | (state < 0)) & ~rated)
    power = _by_power(rows, state, engaged, boards)
    seen = blind & ~np.isnan(power) & ~np.isin(state, BY_PIPES)
    real[seen], basis[seen] = np.fmax(power, memory)[seen], _POWER
    floor = blind & ~seen & ~np.isnan(memory)
    real[floor], basis[floor] = memory[floor], _FLOOR
    capped = state == State.CAPPED
    real[capped], basis[capped] = busy[capped], np.where(rated | (rows["counters_ms"] > 0), _COUNTERS, _POWER)[capped]
    return real, basis


def _by_power(rows: Sums, state: np.ndarray, engaged: np.ndarray, boards: Boards) -> np.ndarray:
    """Power above idle over the room above idle, x time; NaN where power, its limit or the idle power is unknown."""
    old = state < 0
    ms = np.where(old, rows["active_pif_ms"], rows["pif_ms"])
    uj = np.where(old, rows["active_pif_uj"], rows["pif_uj"])
    limit = rows["limit_mw"]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.maximum(uj / ms - boards.idle_mw, 0.0) / (limit - boards.idle_mw)
    return np.where((ms > 0) & (limit > boards.idle_mw), above * engaged, np.nan)


def _by_kind(
    kinds: Kinds, models: Mapping[str | None, ModelFacts], fact: Callable[[ModelFacts], float | Unknown]
) -> np.ndarray:
    values = [fact(models[model]) for model, _ in kinds.pairs]
    return np.array([np.nan if isinstance(v, Unknown) else v for v in values])[kinds.of_row]


def boards_of(
    kinds: Kinds,
    models: Mapping[str | None, ModelFacts],
    board: np.ndarray,
    uuids: Sequence[str | None],
    calibration: Calibration | None,
) -> Boards:
    """Idle power and bandwidth of each row's board: as measured where a calibration tells, else of its model."""
    idle = _by_kind(kinds, models, lambda f: f.idle_mw)
    attainable = np.ones(len(board))
    for number, uuid in enumerate(uuids if calibration and calibration.gpus else ()):
        measured = calibration.of(uuid or "") if calibration else None
        if measured is None:
            continue
        mine = board == number
        if measured.idle_power_w is not None:
            idle[mine] = measured.idle_power_w * 1e3
        if measured.bandwidth_bytes_per_s:
            rated = _by_kind(kinds, models, _bandwidth)[mine]
            attainable[mine] = np.nan_to_num(rated / measured.bandwidth_bytes_per_s, nan=1.0)
    return Boards(idle, attainable)


def _bandwidth(facts: ModelFacts) -> float | Unknown:
    return facts.gpu if isinstance(facts.gpu, Unknown) else facts.gpu.figure("memory_bandwidth_bytes_per_s")
