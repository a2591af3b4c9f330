"""What stands on each account (a device and an owner), in sums that add up over any group?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from gpuledger.efficiency.calibration import Calibration
from gpuledger.efficiency.evidence import NO_TENSOR, PART_VECTOR, TENSOR_ONLY, ModelFacts, PipeRates
from gpuledger.efficiency.rows import KEYS, LABELS, PIPES, numbers
from gpuledger.units import Unknown


@dataclass(frozen=True)
class Accounts:
    """Rows in order of device. `sums` hold the ledger's sums and what follows from them row by row; all add up.

    ratio_ms sums are a share x ms; each has the time it stands on beside it.
    """

    labels: dict[str, list[str | None]]
    sums: dict[str, np.ndarray]
    slice_ratio: np.ndarray
    device: np.ndarray
    board: np.ndarray
    models: dict[str | None, ModelFacts]
    notes: tuple[frozenset[str], ...] = field(repr=False)
    first_ms: np.ndarray
    last_ms: np.ndarray

    def __len__(self) -> int:
        return len(self.device)

    @property
    def devices(self) -> int:
        """How many devices: boards, and MIG instances one by one."""
        return int(self.device[-1]) + 1 if len(self.device) else 0

    def facts(self, row: int) -> ModelFacts:
        """The catalog's facts for the model of a row."""
        return self.models[self.labels["gpu_model"][row]]


def make_accounts(table: pa.Table, calibration: Calibration | None = None) -> Accounts:
    """The accounts of a table in order of device."""
    labels = {k: table[k].to_pylist() for k in LABELS}
    other = {*KEYS, "first_ms", "last_ms"}
    sums = {name: numbers(table[name]) for name in table.column_names if name not in other}
    models = {name: ModelFacts(name) for name in dict.fromkeys(labels["gpu_model"])}
    board_mw = numbers(table["board_mw"])
    sums |= _power(sums, board_mw, labels, models, calibration)
    worked, notes = _counters(sums, labels, models)
    sums |= worked
    sums |= _over_measured(sums, labels, models, calibration)
    sums |= _memory(sums, labels, models, calibration)
    boards = _numbered(labels["gpu_uuid"])
    pairs = [f"{u}/{i or ''}" for u, i in zip(labels["gpu_uuid"], labels["gpu_instance_id"], strict=True)]
    whole = np.array([i is None for i in labels["gpu_instance_id"]], dtype=bool)
    share = numbers(table["slice_ppm"]) / 1e6
    first, last = (numbers(table[c]) for c in ("first_ms", "last_ms"))
    slices = np.where(whole, 1.0, share)
    return Accounts(labels, sums, slices, _numbered(pairs), boards, models, notes, first, last)


def _numbered(names: list[str | None] | list[str]) -> np.ndarray:
    """Equal names that stand together get one number, counted up."""
    return np.cumsum([i > 0 and names[i] != names[i - 1] for i in range(len(names))], dtype=np.int64)


def _power(
    sums: dict[str, np.ndarray],
    board_mw: np.ndarray,
    labels: dict[str, list[str | None]],
    models: dict[str | None, ModelFacts],
    calibration: Calibration | None,
) -> dict[str, np.ndarray]:
    """PIF, PIF less idle power, and utilization in the accounts where PIF is known too (for the gap)."""
    board = np.nan_to_num(board_mw, nan=1.0)
    judged = ~np.isnan(board_mw)
    idle = np.array(
        [_idle_mw(models[m], u, calibration) for m, u in zip(labels["gpu_model"], labels["gpu_uuid"], strict=True)]
    )
    corrected = judged & (idle < board)
    span = np.where(corrected, board - np.nan_to_num(idle), 1.0)
    # A board that draws less than its catalog idle power does no negative work.
    over_idle = np.maximum(sums["pif_uj"] - np.nan_to_num(idle) * sums["pif_ms"], 0.0) / span
    both = (sums["pif_ms"] > 0) & (sums["util_ms"] > 0)
    pif_ratio_ms = np.where(judged, sums["pif_uj"] / board, 0.0)
    return {
        "pif_ratio_ms": pif_ratio_ms,
        "active_pif_ratio_ms": np.where(judged, sums["active_pif_uj"] / board, 0.0),
        "corrected_ratio_ms": np.where(corrected, over_idle, 0.0),
        "corrected_ms": np.where(corrected, sums["pif_ms"], 0.0),
        "gap_util_ppm_ms": np.where(both, sums["util_ppm_ms"], 0.0),
        "gap_util_ms": np.where(both, sums["util_ms"], 0.0),
        "gap_pif_ratio_ms": np.where(both, pif_ratio_ms, 0.0),
        "gap_pif_ms": np.where(both, sums["pif_ms"], 0.0),
    }


def _idle_mw(facts: ModelFacts, uuid: str | None, calibration: Calibration | None) -> float:
    measured = calibration.of(uuid) if calibration and uuid else None
    if measured and measured.idle_power_w is not None:
        return measured.idle_power_w * 1e3
    idle = facts.idle_mw
    return float("nan") if isinstance(idle, Unknown) else idle


def _counters(
    sums: dict[str, np.ndarray], labels: dict[str, list[str | None]], models: dict[str | None, ModelFacts]
) -> tuple[dict[str, np.ndarray], tuple[frozenset[str], ...]]:
    """Share of the dense peak by pipe activity, low, middle and high, and what was assumed row by row."""
    pairs = list(zip(labels["gpu_model"], labels["tensor_precision"], strict=True))
    worth = worth_of_pipes(sums, pairs, models)
    recorded = worth["worked_ms"] > 0
    notes = []
    for i, (model, precision) in enumerate(pairs):
        rates = models[model].rates(precision)
        if not recorded[i] or isinstance(rates, Unknown):
            notes.append(frozenset[str]())
            continue
        gaps = []
        if sums["matrix_ms"][i] == 0:
            gaps.append(NO_TENSOR)
        if sums["vector_ms"][i] == 0:
            gaps.append(TENSOR_ONLY)
        elif sums["vector_ms"][i] < sums["counters_ms"][i]:
            gaps.append(PART_VECTOR)
        notes.append(frozenset((*rates.notes, *gaps)))
    return worth, tuple(notes)


def worth_of_pipes(
    sums: dict[str, np.ndarray],
    pairs: list[tuple[str | None, str | None]],
    models: dict[str | None, ModelFacts],
) -> dict[str, np.ndarray]:
    """Share of the dense peak x ms by pipe activity, and the time it stands on; `pairs`: model and precision by row."""
    kinds = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    row_kind = np.array([kinds[pair] for pair in pairs], dtype=np.int64)
    rates = [models[model].rates(precision) for model, precision in kinds]
    rated = np.array([isinstance(r, PipeRates) for r in rates], dtype=bool)
    out = {"worked_ms": np.where(rated[row_kind], sums["counters_ms"], 0.0)}
    for place, level in enumerate(("low", "middle", "high")):
        total = np.zeros(len(pairs))
        for pipe in PIPES:
            factor = [
                r.per_activity.get(pipe, (0.0, 0.0, 0.0))[place] if isinstance(r, PipeRates) else 0.0 for r in rates
            ]
            total += sums[pipe] * np.array(factor)[row_kind]
        out[f"worked_{level}_ratio_ms"] = total
    return out


def _over_measured(
    sums: dict[str, np.ndarray],
    labels: dict[str, list[str | None]],
    models: dict[str | None, ModelFacts],
    calibration: Calibration | None,
) -> dict[str, np.ndarray]:
    """The same work over the TFLOPS measured on the board, and the time it stands on; no time where none were."""
    factor = np.zeros(len(sums["worked_ms"]))
    if calibration:
        for i, (model, uuid) in enumerate(zip(labels["gpu_model"], labels["gpu_uuid"], strict=True)):
            measured, peak = calibration.of(uuid or ""), models[model].peak_tflops
            if measured and measured.achievable_tflops and not isinstance(peak, Unknown):
                factor[i] = peak / measured.achievable_tflops
    levels = {f"measured_{k}_ratio_ms": sums[f"worked_{k}_ratio_ms"] * factor for k in ("low", "middle", "high")}
    return levels | {"measured_ms": np.where(factor > 0, sums["worked_ms"], 0.0)}


def _memory(
    sums: dict[str, np.ndarray],
    labels: dict[str, list[str | None]],
    models: dict[str | None, ModelFacts],
    calibration: Calibration | None,
) -> dict[str, np.ndarray]:
    """Memory interface activity, over the measured bandwidth where a calibration gives one."""
    factor = np.ones(len(sums["dram_ms"]))
    if calibration:
        for i, (model, uuid) in enumerate(zip(labels["gpu_model"], labels["gpu_uuid"], strict=True)):
            measured, gpu = calibration.of(uuid or ""), models[model].gpu
            if measured and measured.bandwidth_bytes_per_s and not isinstance(gpu, Unknown):
                factor[i] = gpu.memory_bandwidth_bytes_per_s.value / measured.bandwidth_bytes_per_s
    return {"memory_ratio_ms": sums["dram_ppm_ms"] / 1e6 * factor}
