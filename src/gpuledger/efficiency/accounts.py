"""What stands on each account (a device and an owner), in sums that add up over any group?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuledger.efficiency.account_sums import AccountSums
from gpuledger.efficiency.activity import PIPES
from gpuledger.efficiency.calibration import Calibration
from gpuledger.efficiency.evidence import NO_TENSOR, PART_VECTOR, TENSOR_ONLY, ModelFacts, PipeRates
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


def make_accounts(found: AccountSums, calibration: Calibration | None = None) -> Accounts:
    """The accounts, with what follows from their sums and the catalog."""
    labels, sums = found.labels, dict(found.sums)
    models = {name: ModelFacts(name) for name in dict.fromkeys(labels["gpu_model"])}
    sums |= _power(sums, found.board_mw, labels, models, calibration)
    worked, notes = _counters(sums, labels, models)
    sums |= worked
    sums |= _over_measured(sums, labels, models, calibration)
    sums |= _memory(sums, labels, models, calibration)
    whole = np.array([i is None for i in labels["gpu_instance_id"]], dtype=bool)
    slices = np.where(whole, 1.0, found.slice_ppm / 1e6)
    return Accounts(labels, sums, slices, found.device, found.board, models, notes, found.first_ms, found.last_ms)


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
    listed = {model: _idle_mw(facts) for model, facts in models.items()}
    idle = np.array([listed[model] for model in labels["gpu_model"]])
    for i, uuid in enumerate(labels["gpu_uuid"] if calibration else ()):
        measured = calibration.of(uuid) if calibration and uuid else None
        if measured and measured.idle_power_w is not None:
            idle[i] = measured.idle_power_w * 1e3
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


def _idle_mw(facts: ModelFacts) -> float:
    idle = facts.idle_mw
    return float("nan") if isinstance(idle, Unknown) else idle


def _counters(
    sums: dict[str, np.ndarray], labels: dict[str, list[str | None]], models: dict[str | None, ModelFacts]
) -> tuple[dict[str, np.ndarray], tuple[frozenset[str], ...]]:
    """Share of the dense peak by pipe activity, low, middle and high, and what was assumed row by row."""
    pairs = list(zip(labels["gpu_model"], labels["tensor_precision"], strict=True))
    worth = worth_of_pipes(sums, pairs, models)
    recorded, matrix, vector = (
        v.tolist() for v in (worth["worked_ms"] > 0, sums["matrix_ms"] > 0, sums["vector_ms"] > 0)
    )
    part = (sums["vector_ms"] < sums["counters_ms"]).tolist()
    cases, notes = dict[tuple[object, ...], frozenset[str]](), []
    for case in zip(pairs, recorded, matrix, vector, part, strict=True):
        if case not in cases:
            cases[case] = _notes(models[case[0][0]].rates(case[0][1]), *case[1:])
        notes.append(cases[case])
    return worth, tuple(notes)


def _notes(rates: PipeRates | Unknown, recorded: bool, matrix: bool, vector: bool, part: bool) -> frozenset[str]:
    """What was assumed of an account: by its rates, and by what of it was recorded."""
    if not recorded or isinstance(rates, Unknown):
        return frozenset()
    gaps = [] if matrix else [NO_TENSOR]
    if part or not vector:
        gaps.append(PART_VECTOR if vector else TENSOR_ONLY)
    return frozenset((*rates.notes, *gaps))


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
