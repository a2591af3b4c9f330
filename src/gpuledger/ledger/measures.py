"""What do the rows of a line add up to?

Every value is made whole (ppm, mW, MHz, bytes) before it is multiplied with whole milliseconds. The products stay
below 2**53, where float64 adds without rounding, so the sums are exact in any order and fast in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.ledger import cells, lines
from gpuledger.ledger.spells import COLUMNS as WAITS
from gpuledger.native.line_sums import Level, LineRows, bins_of, places
from gpuledger.physics.states import POWER_CAP_BITS, RESTING, THERMAL_BITS, State
from gpuledger.units import MIB
from gpuledger.units import PPM as _PPM

PIPES = ("tensor", "hmma", "imma", "dfma", "fp64", "fp32", "fp16")
_SHARES = {
    "engine": "engine_ratio", "sm": "sm_ratio", "occupancy": "occupancy_ratio", "integer": "integer_ratio",
    "dram": "dram_ratio", "mem_copy": "mem_copy_util_ratio",
}  # fmt: skip
_BUSY = {"engine_ratio": "engine_ppm_ms", "sm_ratio": "sm_ppm_ms", "gpu_util_ratio": "util_ppm_ms"}
PPM, _MILLI = float(_PPM), 1e3
_TRAFFIC = ("pcie_rx", "pcie_tx", "nvlink")


class Rows(msgspec.Struct, frozen=True):
    """The readings of samples, the power limit in force, and which samples make which line.

    Readings are NaN where silent (in columns named so), absent where the source has none.
    """

    readings: Mapping[str, np.ndarray]
    silent: set[str]
    lines: LineRows
    limit_w: np.ndarray

    def get(self, name: str) -> np.ndarray | None:
        """One column, or None where no source has it."""
        return self.readings.get(name)


class Sums:
    """Adds up samples line by line."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.lines = rows, rows.lines
        self.out: dict[str, np.ndarray] = {}
        self._waiting: dict[str, Level] = {}
        self.observed = self.lines.added(self.lines.ms)

    def put(self, name: str, amounts: np.ndarray) -> None:
        """Sum whole per-piece amounts."""
        self.out[name] = self.lines.added(amounts)

    def level(self, known: str, name: str, column: str, factor: float, cap: np.ndarray | None = None) -> None:
        """Sum a reading, made whole, over time, and the time in which it was known."""
        level = Level(self.rows.readings[column], factor, cap=cap)
        self.later(name, level)
        if column in self.rows.silent or (cap is not None and bool(np.isnan(cap).any())):
            self.later(known, replace(level, time=True))
        else:  # what is always known is known for all the time observed: one array under many names
            self.out[known] = self.observed

    def later(self, name: str, level: Level) -> None:
        """Sum a level over time when all are together: several at once take half the time."""
        self._waiting[name] = level

    def settle(self) -> None:
        """Sum what waits."""
        self.out |= dict(zip(self._waiting, self.lines.over_time(list(self._waiting.values())), strict=True))
        self._waiting = {}

    def time_of(self, marked: np.ndarray) -> np.ndarray:
        """The time of marked samples."""
        return self.lines.times(marked, 2)[1]

    def highest(self, name: str, values: np.ndarray) -> None:
        """The largest value of each line; NaN where there is none."""
        self.out[name] = self.lines.highest(values)


def add_states(sums: Sums, memory: np.ndarray, busy: np.ndarray | None) -> None:
    """Idle time by how memory stood, unstated time, and the busy part of what is active (both by sample)."""
    out, rows = sums.out, sums.rows
    of_line = out["state"]
    out["unstated_ms"] = np.where(of_line == State.UNSTATED, sums.observed, 0.0)
    idle = of_line == State.IDLE
    if idle.any():
        names = ("idle_ms", "idle_held_ms", "idle_unknown_ms")
        for name, time in zip(names, sums.lines.times(memory, len(names)), strict=True):
            out[name] = np.where(idle, time, 0.0)
    if busy is None:
        return
    added = next((out[c] for name, c in _BUSY.items() if busy is rows.readings.get(name)), None)  # most often
    if added is None:
        (added,) = sums.lines.over_time([Level(busy, PPM)])
    out["busy_ppm_ms"] = np.where(np.isin(of_line, RESTING), 0.0, added)


def add_waits(sums: Sums, waiting: np.ndarray, length: np.ndarray, opens: np.ndarray) -> None:
    """Waits by their length (by sample), and how many begin in each line (`opens`: by piece)."""
    code = np.where(waiting, length, np.int8(len(WAITS)))
    for name, time in zip(WAITS, sums.lines.times(code, len(WAITS) + 1), strict=False):
        sums.out[name] = time
    sums.put("waits", opens.astype(np.float64))


def add_efficiency(sums: Sums, limits: Thresholds) -> None:
    """Utilization and its histogram, power, PIF, the classes and phases."""
    rows = sums.rows
    util, power = rows.get("gpu_util_ratio"), rows.get("power_w")
    active, pif = None, None
    if util is not None:
        sums.level("util_ms", "util_ppm_ms", "gpu_util_ratio", PPM)
        _histogram(sums, util)
        active = util > limits.activity.active_util_above_ratio
        sums.later("active_util_ppm_ms", Level(util, PPM, mask=active))
    if power is not None:
        sums.level("power_ms", "power_uj", "power_w", _MILLI)
        sums.level("pif_ms", "pif_uj", "power_w", _MILLI, cap=rows.limit_w)
        if active is not None:
            sums.later("active_pif_uj", Level(power, _MILLI, mask=active, cap=rows.limit_w))
        pif = power / rows.limit_w
        np.minimum(pif, 1.0, out=pif)
    _classes(sums, util, pif, limits)


def _classes(sums: Sums, util: np.ndarray | None, pif: np.ndarray | None, limits: Thresholds) -> None:
    """The time in each class and phase."""
    n, plane = len(sums.rows.limit_w), cells.plane(limits)
    cell = places(util, plane.util_edges, n)
    cell *= np.uint8(plane.pif_cells)
    cell += places(pif, plane.pif_edges, n)
    times = sums.lines.times(plane.kind.take(cell), plane.kinds)
    for name, some in plane.holds.items():
        sums.out[name] = times[some].sum(axis=0)


def _histogram(sums: Sums, share: np.ndarray) -> None:
    """The time at each level of utilization."""
    bins = lines.bins()
    for i, time in enumerate(sums.lines.times(bins_of(share, bins), bins + 1)[:bins]):
        sums.out[f"util_h{i:02d}"] = time


def add_counters(sums: Sums) -> None:
    """Engine, SM and memory activity, every pipe's activity and activity x clock, traffic, memory."""
    said = sums.rows.readings
    for name, column in _SHARES.items():
        if column in said:
            sums.level(f"{name}_ms", f"{name}_ppm_ms", column, PPM)
    for name in _TRAFFIC:
        if f"{name}_bytes_per_s" in said:
            sums.level(f"{name}_ms", f"{name}_bytes", f"{name}_bytes_per_s", 1e-3)
    if (used := said.get("fb_used_bytes")) is not None:
        sums.level("fb_ms", "fb_mib_ms", "fb_used_bytes", 1 / MIB)
        sums.highest("fb_max_bytes", used)
        if (free := said.get("fb_free_bytes")) is not None:
            sums.highest("card_bytes", used + free)
    if (bits := said.get("throttle_bits")) is not None:
        _add_throttling(sums, bits)


def add_heat(sums: Sums) -> None:
    """The hottest die and memory."""
    for name in ("gpu_temp", "mem_temp"):
        if (values := sums.rows.get(f"{name}_c")) is not None:
            sums.highest(f"{name}_max_c", values)


def _add_throttling(sums: Sums, bits: np.ndarray) -> None:
    """Time with clocks held down, over the time in which the reasons are known."""
    known = ~np.isnan(bits)
    reasons = np.where(known, bits, 0).astype(np.int64)
    capped = (reasons & POWER_CAP_BITS) != 0
    sums.out["throttle_ms"] = sums.time_of(known)
    sums.out["power_capped_ms"] = sums.time_of(capped)
    sums.out["thermal_ms"] = sums.time_of((reasons & THERMAL_BITS) != 0)
    if (tensor := sums.rows.get("tensor_ratio")) is not None:
        sums.later("tensor_capped_ppm_ms", Level(tensor, PPM, mask=capped))


def add_pipes(sums: Sums, rated_mhz: Callable[[], np.ndarray]) -> None:
    """The SM clock, and every pipe's activity with and without it; the rated clock stands in where none is recorded."""
    rows, clock = sums.rows, sums.rows.get("sm_clock_mhz")
    no_clock = clock is None or "sm_clock_mhz" in rows.silent
    if clock is not None:
        sums.level("clock_ms", "clock_mhz_ms", "sm_clock_mhz", 1.0)
    pipes = [p for p in PIPES if f"{p}_ratio" in rows.readings]
    if not pipes:
        return
    if no_clock:
        silent = np.ones(len(rows.limit_w), dtype=bool) if clock is None else np.isnan(clock)
        sums.out["unclocked_ms"] = sums.time_of(silent & _some(rows, pipes))
        clock = rated_mhz() if clock is None else np.where(silent, rated_mhz(), clock)
    assert clock is not None
    for pipe in pipes:
        sums.level(f"{pipe}_ms", f"{pipe}_ppm_ms", f"{pipe}_ratio", PPM)
        sums.later(f"{pipe}_ppm_mhz_ms", Level(rows.readings[f"{pipe}_ratio"], PPM, others=clock))


def _some(rows: Rows, pipes: list[str]) -> np.ndarray:
    """Where any pipe is known."""
    known = np.zeros(len(rows.limit_w), dtype=bool)
    for pipe in pipes:
        known |= ~np.isnan(rows.readings[f"{pipe}_ratio"])
    return known


def unrecorded(said: frozenset[str]) -> frozenset[str]:
    """The sums that are zero where samples hold only these columns."""
    of: dict[str, tuple[str, ...]] = {f"{p}_ratio": (f"{p}_ms", f"{p}_ppm_ms", f"{p}_ppm_mhz_ms") for p in PIPES}
    of |= {column: (f"{name}_ms", f"{name}_ppm_ms") for name, column in _SHARES.items()}
    of |= {f"{name}_bytes_per_s": (f"{name}_ms", f"{name}_bytes") for name in _TRAFFIC}
    of["throttle_bits"] = ("throttle_ms", "power_capped_ms", "thermal_ms", "tensor_capped_ppm_ms")
    of["sm_clock_mhz"] = ("clock_ms", "clock_mhz_ms")
    return frozenset(name for column, names in of.items() if column not in said for name in names)
