"""Is a GPU of the case failing, hot or held down?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.efficiency.health import THERMAL_ABOVE_PCT
from gpuledger.ledger.read.rollup import HEALTH
from gpuledger.units import Unknown

NOT_RECORDED = Unknown("the reasons for held-down clocks are not recorded")


@dataclass(frozen=True)
class Health:
    """Faults counted over the window, and the share of the time clocks were held down.

    Faults are a board's own: where each MIG instance reports them again, the board counts them once. `affected` are
    the GPUs with driver errors, failed remappings or much heat, the worst first; `hottest_ratio` is the largest share
    of one GPU's time held down by heat.
    """

    xid_events: int = 0
    rows_remapped: int = 0
    row_remap_failures: int = 0
    pcie_replays: int = 0
    thermal_ratio: float | Unknown = NOT_RECORDED
    power_capped_ratio: float | Unknown = NOT_RECORDED
    hottest_ratio: float | Unknown = NOT_RECORDED
    affected: tuple[str, ...] = ()


def health_of(parts: Iterable[tuple[str, str | None, Mapping[str, Any]]]) -> Health:
    """From sums by board and MIG instance; a board counts the largest figure of its instances."""
    devices: dict[tuple[str, str | None], dict[str, int]] = {}
    for board, instance, sums in parts:
        device = devices.setdefault((board, instance), dict.fromkeys(HEALTH, 0))
        for name in HEALTH:
            device[name] += int(sums[name])
    boards: dict[str, dict[str, int]] = {}
    for (board, _), sums in devices.items():
        held = boards.setdefault(board, dict.fromkeys(HEALTH, 0))
        boards[board] = {name: max(held[name], sums[name]) for name in HEALTH}
    heat = {name: b["thermal_ms"] / b["throttle_ms"] for name, b in boards.items() if b["throttle_ms"]}
    affected = [
        name
        for name, b in boards.items()
        if b["xid_events"] or b["row_remap_failures"] or 100 * heat.get(name, 0.0) > THERMAL_ABOVE_PCT
    ]
    total = {name: sum(board[name] for board in boards.values()) for name in HEALTH}
    known = total["throttle_ms"]
    return Health(
        total["xid_events"],
        total["rows_remapped"],
        total["row_remap_failures"],
        total["pcie_replays"],
        total["thermal_ms"] / known if known else NOT_RECORDED,
        total["power_capped_ms"] / known if known else NOT_RECORDED,
        max(heat.values()) if heat else NOT_RECORDED,
        tuple(sorted(affected, key=lambda n: (*(-x for x in _urgency(boards[n])), n))),
    )


def _urgency(board: Mapping[str, int]) -> tuple[int, int, int]:
    return board["row_remap_failures"], board["xid_events"], board["thermal_ms"]
