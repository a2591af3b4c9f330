"""What stands on each account (a device and an owner), in sums that add up over any group?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuledger.ledger.read.rollup import AccountSums
from gpuledger.ledger.read.slices import exact_share
from gpuledger.physics.calibration import Calibration
from gpuledger.physics.evidence import ModelFacts, kinds_of, work
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
    whole = np.array([i is None for i in labels["gpu_instance_id"]], dtype=bool)
    slices = np.where(whole, 1.0, exact_share(found.slice_ppm))
    sums |= _of_board(sums, slices * np.where(whole, 1.0, found.slice_scale[found.board]))
    sums |= _power(sums, found.limit_mw, labels, models, calibration)
    done = work(sums, *kinds_of(labels["gpu_model"], labels["tensor_precision"]), models)
    sums |= {f"worked_{k}_ratio_ms": getattr(done, k) for k in ("low", "middle", "high")}
    sums |= {"worked_ms": done.ms, "bound_ms": np.where(done.bound, done.ms, 0.0)}
    sums |= _over_measured(sums, labels, models, calibration)
    sums |= _memory(sums, labels, models, calibration)
    return Accounts(labels, sums, slices, found.device, found.board, models, done.notes, found.first_ms, found.last_ms)


def _of_board(sums: dict[str, np.ndarray], part: np.ndarray) -> dict[str, np.ndarray]:
    """Power and energy are read for the whole board: its MIG instances count them by their shares, once in all.

    `unshared_ms`: the time for which they are known of instances whose share is not.
    """
    share, known = np.nan_to_num(part), np.maximum(sums["power_ms"], sums["energy_ms"])
    unshared = np.where(np.isnan(part), known, 0.0)
    return {n: sums[n] * share for n in ("power_uj", "power_ms", "energy_mj", "energy_ms")} | {"unshared_ms": unshared}


def _power(
    sums: dict[str, np.ndarray],
    limit_mw: np.ndarray,
    labels: dict[str, list[str | None]],
    models: dict[str | None, ModelFacts],
    calibration: Calibration | None,
) -> dict[str, np.ndarray]:
    """PIF, PIF less idle power, and utilization in the accounts where PIF is known too (for the gap)."""
    board = np.nan_to_num(limit_mw, nan=1.0)
    judged = ~np.isnan(limit_mw)
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
