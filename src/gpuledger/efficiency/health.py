"""Which GPUs report faults or are held down by heat?

Faults and reasons for held-down clocks are those of a board. Where a board is cut into MIG instances each of them
reports them again, so a board counts the largest figure of its instances, not their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuledger.ledger.read.rollup import HEALTH, HOTTEST, AccountSums
from gpuledger.units import MS_PER_HOUR, Unknown, count

Figure = float | Unknown
FAULTS: Mapping[str, tuple[str, str]] = {
    "xid_events": ("XID error", "XID errors"),
    "rows_remapped": ("remapped memory row", "remapped memory rows"),
    "row_remap_failures": ("failed row remapping", "failed row remappings"),
    "pcie_replays": ("PCIe replay", "PCIe replays"),
}
# Clocks held down by heat for a larger share of the time than this are worth naming a GPU for.
THERMAL_ABOVE_PCT = 1.0
NO_REASONS = Unknown("the reasons for held-down clocks are not recorded (DCGM_FI_DEV_CLOCKS_EVENT_REASONS)")
_NO_GPU = Unknown("no GPU was seen")
_NO_TEMPERATURE = {
    "gpu_temp_max_c": Unknown("the GPU temperature is not recorded"),
    "mem_temp_max_c": Unknown("the memory temperature is not recorded"),
}


@dataclass(frozen=True)
class HealthRow:
    """One GPU with faults, or held down by heat. Shares are of the time with the reasons known."""

    gpu_uuid: str
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    xid_events: int
    rows_remapped: int
    row_remap_failures: int
    pcie_replays: int
    thermal_pct: Figure
    power_capped_pct: Figure
    gpu_temp_max_c: Figure
    mem_temp_max_c: Figure


@dataclass(frozen=True)
class HealthAnalysis:
    """Faults of the fleet and shares of `throttle_known_h`, GPU-hours with the reasons for held-down clocks known."""

    gpus: int = 0
    xid_events: int = 0
    rows_remapped: int = 0
    row_remap_failures: int = 0
    pcie_replays: int = 0
    thermal_pct: Figure = _NO_GPU
    power_capped_pct: Figure = _NO_GPU
    throttle_known_h: float = 0.0
    gpu_temp_max_c: Figure = _NO_GPU
    mem_temp_max_c: Figure = _NO_GPU
    rows: tuple[HealthRow, ...] = ()


def health_analysis(found: AccountSums) -> HealthAnalysis:
    """Totals of the fleet, and one row for each GPU with a fault or held down by heat; the worst first."""
    boards = _Boards(found)
    total = {name: int(values.sum()) for name, values in boards.sums.items()}
    most = {name: float(values.max(initial=-1.0)) for name, values in boards.hottest.items()}
    rows = [boards.row(int(board)) for board in np.flatnonzero(boards.worth_a_look())]
    return HealthAnalysis(
        gpus=len(boards.first),
        **{name: total[name] for name in FAULTS},
        thermal_pct=_share(total["thermal_ms"], total["throttle_ms"]),
        power_capped_pct=_share(total["power_capped_ms"], total["throttle_ms"]),
        throttle_known_h=total["throttle_ms"] / MS_PER_HOUR,
        gpu_temp_max_c=_degrees("gpu_temp_max_c", most),
        mem_temp_max_c=_degrees("mem_temp_max_c", most),
        rows=tuple(sorted(rows, key=_worst_first)),
    )


class _Boards:
    """Sums and maxima of each board, as its instances report them. `first` is the first device of each board."""

    def __init__(self, found: AccountSums) -> None:
        self._found = found
        self._account = np.flatnonzero(np.diff(found.device, prepend=-1))  # the first of each device
        self.first = np.flatnonzero(np.diff(found.board[self._account], prepend=-1))
        by_device = {name: np.add.reduceat(found.sums[name], self._account) for name in HEALTH}
        hottest = {name: np.maximum.reduceat(found.sums[name], self._account) for name in HOTTEST}
        self.sums = {name: np.maximum.reduceat(values, self.first) for name, values in by_device.items()}
        self.hottest = {name: np.maximum.reduceat(values, self.first) for name, values in hottest.items()}

    def worth_a_look(self) -> np.ndarray:
        """Which boards have a fault, or are held down by heat for more than a moment."""
        faults = np.sum([self.sums[name] for name in FAULTS], axis=0) > 0
        heat: np.ndarray = 100 * self.sums["thermal_ms"] > THERMAL_ABOVE_PCT * self.sums["throttle_ms"]
        return faults | heat

    def row(self, board: int) -> HealthRow:
        """One board."""
        found, account = self._found, self._account[self.first[board]]
        last = self.first[board + 1] if board + 1 < len(self.first) else len(self._account)
        devices = slice(self.first[board], last)
        spots = list(zip(found.days.host[devices], found.days.gpu_index[devices], strict=True))
        host = next((host for host, _ in spots if host), None)
        known, highest = int(self.sums["throttle_ms"][board]), {n: float(v[board]) for n, v in self.hottest.items()}
        return HealthRow(
            gpu_uuid=found.labels["gpu_uuid"][account] or "",
            gpu_model=found.labels["gpu_model"][account],
            host=host,
            gpu_index=next((index for at, index in spots if at == host and index), None),
            **{name: int(self.sums[name][board]) for name in FAULTS},
            thermal_pct=_share(int(self.sums["thermal_ms"][board]), known),
            power_capped_pct=_share(int(self.sums["power_capped_ms"][board]), known),
            gpu_temp_max_c=_degrees("gpu_temp_max_c", highest),
            mem_temp_max_c=_degrees("mem_temp_max_c", highest),
        )


def _share(part_ms: int, known_ms: int) -> Figure:
    return 100 * part_ms / known_ms if known_ms else NO_REASONS


def _degrees(name: str, highest: Mapping[str, float]) -> Figure:
    return _NO_TEMPERATURE[name] if highest[name] < 0 else highest[name]


def hot(row: HealthRow) -> bool:
    """Whether heat holds the GPU down for more than a moment."""
    return not isinstance(row.thermal_pct, Unknown) and row.thermal_pct > THERMAL_ABOVE_PCT


def _worst_first(row: HealthRow) -> tuple[int, int, float, int, str]:
    heat = 0.0 if isinstance(row.thermal_pct, Unknown) else row.thermal_pct
    return -row.row_remap_failures, -row.xid_events, -heat, -row.rows_remapped - row.pcie_replays, row.gpu_uuid


def faults_of(holder: HealthRow | HealthAnalysis) -> list[str]:
    """The faults there were, each with its count."""
    counts = ((getattr(holder, name), words) for name, words in FAULTS.items())
    return [count(number, *words) for number, words in counts if number]


def health_words(health: HealthAnalysis) -> str:
    """One or two sentences for the whole fleet."""
    faults = faults_of(health)
    if faults:
        broken = sum(any(getattr(r, name) for name in FAULTS) for r in health.rows)
        text = f"{', '.join(faults)} on {broken:,} of {count(health.gpus, 'GPU')}."
    else:
        text = "No faults recorded (XID errors, row remappings and PCIe replays count where the source exports them)."
    if isinstance(health.thermal_pct, Unknown):
        return f"{text} Throttling: {health.thermal_pct}."
    held = sum(hot(r) for r in health.rows)
    limit = f"for more than {THERMAL_ABOVE_PCT:g} % of the recorded time"
    if not held:
        return f"{text} Heat held down the clocks of no GPU {limit}."
    return f"{text} Heat held down the clocks of {count(held, 'GPU')} {limit}."
