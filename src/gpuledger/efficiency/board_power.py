"""What follows from the power of a board, and what of it is known of one of its dies?

Several dies of one board have one reading of power and energy: each counts an equal part of it. How intensely one of
them worked is unknown, because the reading does not tell an idle die from a busy one: the intensity is counted only
where all dies of the board are together.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from gpuledger.ledger.read.adding import distinct
from gpuledger.ledger.read.dies import die_boards, dies_of
from gpuledger.ledger.read.rollup import AccountSums

ONE_DIE = "its board has several dies and reports their power together"
# The time for which a board's power is known, in groups that have only some of its dies.
ONE_DIE_MS = "one_die_ms"
_INTENSITY = (
    "pif_ms", "pif_uj", "active_pif_ms", "active_pif_uj", "pif_ratio_ms", "active_pif_ratio_ms", "corrected_ratio_ms",
    "corrected_ms", "gap_util_ppm_ms", "gap_util_ms", "gap_pif_ratio_ms", "gap_pif_ms", "bottleneck_ms",
)  # fmt: skip


def intensity(sums: dict[str, np.ndarray], limit_mw: np.ndarray, idle_mw: np.ndarray) -> dict[str, np.ndarray]:
    """PIF, PIF less idle power, and utilization in the accounts where PIF is known too (for the gap)."""
    board, judged, idle = np.nan_to_num(limit_mw, nan=1.0), ~np.isnan(limit_mw), np.nan_to_num(idle_mw)
    corrected = judged & (idle_mw < board)
    span = np.where(corrected, board - idle, 1.0)
    # A board that draws less than its catalog idle power does no negative work.
    over_idle = np.maximum(sums["pif_uj"] - idle * sums["pif_ms"], 0.0) / span
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


def shared_by_dies(found: AccountSums, sums: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Power and energy of the accounts of dies: an equal part of the board's each, by time within a die."""
    if not found.dies:
        return {}
    out = {name: sums[name].astype(np.float64) for name in ("power_uj", "power_ms", "energy_mj", "energy_ms")}
    uuids, seen = np.array(found.labels["gpu_uuid"], dtype=object), sums["observed_ms"]
    held = [one for one, _ in found.dies]
    for board in die_boards(held):
        if board.weights is None:
            continue
        board_sums = {name: sum(found.dies[i][1][name] for i in board.members) for name in out}
        for uuid in {held[i].gpu_uuid for i in board.members}:
            mine = uuids == uuid
            time = sum(held[i].observed_ms for i in board.members if held[i].gpu_uuid == uuid)
            for amount, covered in (("power_uj", "power_ms"), ("energy_mj", "energy_ms")):
                if board_sums[covered]:
                    # Power is a mean over the time it is known for, energy a sum.
                    whole = (
                        time * board_sums[amount] / board_sums[covered] if covered == "power_ms" else board_sums[amount]
                    )
                    out[amount][mine] = whole / board.dies * seen[mine] / time
                    out[covered][mine] = seen[mine]
    return out


class DieBoards(msgspec.Struct, frozen=True):
    """By account the board its die is of (-1: it is a board or a slice), and by board how many dies it has."""

    board: np.ndarray
    device: np.ndarray
    dies: np.ndarray

    def whole_boards_only(self, sums: Mapping[str, np.ndarray], group: np.ndarray) -> dict[str, np.ndarray]:
        """The sums of intensity, without those of boards of which a group does not have all dies."""
        none = np.zeros(len(group))
        if not len(self.dies):
            return {ONE_DIE_MS: none}
        of_die = np.flatnonzero(self.board >= 0)
        boards, devices = len(self.dies), int(self.device.max()) + 1
        here = group[of_die] * boards + self.board[of_die]
        there = distinct(here * devices + self.device[of_die]) // devices
        pairs, counts = np.unique(there, return_counts=True)
        have = counts[np.searchsorted(pairs, here)]
        cut = none.astype(bool)
        cut[of_die] = have < self.dies[self.board[of_die]]
        return {n: np.where(cut, 0, sums[n]) for n in _INTENSITY} | {ONE_DIE_MS: np.where(cut, sums["power_ms"], 0)}


def boards_of_dies(found: AccountSums) -> DieBoards:
    """The boards of the accounts' dies; one whose place is unknown is of a board of its own that is never whole."""
    board = np.full(len(found.device), -1, dtype=np.int64)
    models = {name: dies_of(name) for name in dict.fromkeys(found.labels["gpu_model"])}
    of_dies = np.array([models[m] for m in found.labels["gpu_model"]], dtype=np.int64)
    of_dies[[i is not None for i in found.labels["gpu_instance_id"]]] = 1
    if not (of_dies > 1).any():
        return DieBoards(board, found.device, np.zeros(0, dtype=np.int64))
    host, index = found.days.host, found.days.gpu_index
    numbers: dict[object, int] = {}
    for i in np.flatnonzero(of_dies > 1).tolist():
        device = int(found.device[i])
        place = index[device] or ""
        known = host[device] and place.isdecimal()
        key = (host[device], int(place) // int(of_dies[i])) if known else device
        board[i] = numbers.setdefault(key, len(numbers))
    dies = np.ones(len(numbers), dtype=np.int64)
    dies[board[board >= 0]] = of_dies[board >= 0]
    return DieBoards(board, found.device, dies)
