"""What do the rows of a line add up to?

Every value is made whole (ppm, mW, MHz, bytes) before it is multiplied with whole milliseconds. The products stay
below 2**53, where float64 adds without rounding, so the sums are exact in any order and fast in numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.ledger import cells, lines
from gpuledger.units import MIB, PPM

PIPES = ("tensor", "hmma", "imma", "dfma", "fp64", "fp32", "fp16")
_SHARES = {"engine": "engine_ratio", "sm": "sm_ratio", "dram": "dram_ratio", "mem_copy": "mem_copy_util_ratio"}
_TRAFFIC = ("pcie_rx", "pcie_tx", "nvlink")
ACTIVE, IDLE, HELD, UNSTATED = 0, 1, 2, 3
# Clock event reasons as NVML numbers them: software power cap and hardware power brake; software and hardware thermal.
POWER_CAP_BITS, THERMAL_BITS = 0x4 | 0x80, 0x20 | 0x40


@dataclass(frozen=True)
class Rows:
    """The readings per piece of a sample: NaN where silent (in columns named so), absent where the source has none."""

    values: dict[str, np.ndarray]
    silent: set[str]
    ms: np.ndarray
    starts: np.ndarray
    line: np.ndarray
    board_w: np.ndarray

    def get(self, name: str) -> np.ndarray | None:
        """One column, or None where nobody said anything."""
        return self.values.get(name)


class Sums:
    """Adds up rows line by line."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.out: dict[str, np.ndarray] = {}
        self.observed = np.add.reduceat(rows.ms, rows.starts)
        self._first_code: dict[int, np.ndarray] = {}
        # Regular sampling gives every row the same time: then one multiplication a line does for all its rows.
        self._even_ms = rows.ms[0] if len(rows.ms) and (rows.ms == rows.ms[0]).all() else None
        # And every line the same number of rows: then they are added up as a table, in two thirds of the time.
        length, rest = divmod(len(rows.ms), max(len(rows.starts), 1))
        self._regular = not rest and bool((rows.starts == np.arange(len(rows.starts)) * length).all())

    def put(self, name: str, amounts: np.ndarray) -> None:
        """Sum whole per-piece amounts."""
        self.out[name] = self.added(amounts)

    def over_time(self, levels: np.ndarray) -> np.ndarray:
        """Sum whole levels x ms."""
        if self._even_ms is not None:
            return self.added(levels) * self._even_ms
        return self.added(levels * self.rows.ms)

    def added(self, amounts: np.ndarray) -> np.ndarray:
        """Sum whole amounts line by line."""
        if self._regular and amounts.dtype == np.float64:
            return np.asarray(np.einsum("ij->i", amounts.reshape(len(self.rows.starts), -1)))
        return np.asarray(np.add.reduceat(amounts, self.rows.starts, dtype=np.float64))

    def without(self, some: np.ndarray) -> np.ndarray:
        """The time observed, less that of some rows."""
        if not len(some):
            return self.observed
        lost = np.bincount(self.rows.line[some], self.rows.ms[some], len(self.observed))
        return np.asarray(self.observed - lost)

    def level(self, known: str, name: str, levels: np.ndarray, silent: bool) -> None:
        """Sum whole levels x ms, and the time in which they were known."""
        if silent:
            blank = np.isnan(levels)
            self.out[known] = self.over_time((~blank).astype(np.float64))
            self.out[name] = self.over_time(np.where(blank, 0.0, levels))
        else:
            self.out[known] = self.observed
            self.out[name] = self.over_time(levels)

    def table(self, code: np.ndarray, width: int) -> np.ndarray:
        """Time per line and code, as a table of lines x codes."""
        n = len(self.rows.starts)
        if width not in self._first_code:
            self._first_code[width] = self.rows.line * width
        flat = self._first_code[width] + code
        if self._even_ms is not None:
            return np.bincount(flat, minlength=n * width).reshape(n, width) * self._even_ms
        return np.bincount(flat, self.rows.ms, minlength=n * width).reshape(n, width)

    def low_high(self, low: str | None, high: str | None, values: np.ndarray) -> None:
        """Smallest and largest value of each line; NaN where there is none."""
        if low:
            self.out[low] = np.fmin.reduceat(values, self.rows.starts)
        if high:
            self.out[high] = np.fmax.reduceat(values, self.rows.starts)


def whole(values: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Values as whole numbers of a finer unit, still as float64."""
    out = np.multiply(values, factor, dtype=np.float64)
    return np.rint(out, out=out)


def states(
    readings: dict[str, np.ndarray], silent: set[str], limits: Thresholds, n: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Per sample: active, idle, idle-held or unstated; and the activity that decided it, where it is known."""
    idle = limits.idle
    engine, sm, util = (readings.get(c) for c in ("engine_ratio", "sm_ratio", "gpu_util_ratio"))
    activity = engine if sm is None or "engine_ratio" not in silent else sm
    if engine is None:
        activity = sm
    elif sm is not None and "engine_ratio" in silent:
        activity = np.where(np.isnan(engine), sm, engine)
    if activity is None and util is None:
        return np.full(n, UNSTATED, dtype=np.int8), None
    if activity is None:
        assert util is not None
        still, unknown = util < idle.util_below_ratio, np.isnan(util) if "gpu_util_ratio" in silent else None
    else:
        still, unknown = activity < idle.activity_below_ratio, None
        if silent & {"engine_ratio", "sm_ratio"} and (blank := np.isnan(activity)).any():
            unknown = blank if util is None else blank & np.isnan(util)
            still = still if util is None else np.where(blank, util < idle.util_below_ratio, still)
    state = still.astype(np.int8)
    used = readings.get("fb_used_bytes")
    if used is not None and len(where := np.flatnonzero(still)):
        free = readings.get("fb_free_bytes")
        card = np.nan_to_num(used[where] + free[where]) if free is not None else np.zeros(len(where))
        limit = np.maximum(idle.held_above_bytes, idle.held_above_card_ratio * card)
        state[where[used[where] > limit]] = HELD
    if unknown is not None:
        state[unknown] = UNSTATED
    return state, activity


def add_states(sums: Sums, state: np.ndarray, activity: np.ndarray | None) -> None:
    """Idle, held, unstated, and the busy part of what is active."""
    rows, out = sums.rows, sums.out
    time = sums.table(state, 4)
    out["idle_ms"], out["idle_held_ms"], out["unstated_ms"] = time[:, IDLE], time[:, HELD], time[:, UNSTATED]
    util = rows.get("gpu_util_ratio")
    busy = util if activity is None else activity
    if activity is not None:
        out["engine_known_ms"] = sums.observed
        if rows.silent & {"engine_ratio", "sm_ratio"} and (blank := np.isnan(activity)).any():
            out["engine_known_ms"] = sums.over_time((~blank).astype(np.float64))
            busy = activity if util is None else np.where(blank, util, activity)
    if busy is not None:
        share = whole(busy, PPM)
        if rows.silent:
            share[state != ACTIVE] = 0.0
        else:
            share *= state == ACTIVE
        out["busy_ppm_ms"] = sums.over_time(share)


def add_efficiency(sums: Sums, limits: Thresholds) -> None:
    """Utilization and its histogram, power, PIF, the classes and phases."""
    rows, out, n = sums.rows, sums.out, len(sums.rows.ms)
    util, power = rows.get("gpu_util_ratio"), rows.get("power_w")
    plane = cells.plane(limits)
    active, quiet = None, False
    if util is not None:
        quiet = "gpu_util_ratio" in rows.silent
        ppm = whole(util, PPM)
        sums.level("util_ms", "util_ppm_ms", ppm, quiet)
        sums.low_high("util_min_ppm", "util_max_ppm", ppm)
        _histogram(sums, util, quiet)
        active = util > limits.activity.active_util_above_ratio
        out["active_util_ppm_ms"] = sums.over_time(np.where(active, ppm, 0.0) if quiet else ppm * active)
    pif = None
    if power is not None:
        milli = whole(power, 1e3)
        quiet = "power_w" in rows.silent
        sums.level("power_ms", "power_uj", milli, quiet)
        sums.low_high("power_min_mw", "power_max_mw", milli)
        # Every row, not every line: a source may change its mind about the model within the hour.
        quiet = quiet or bool(np.isnan(rows.board_w).any())
        clipped = np.minimum(milli, rows.board_w * 1e3)
        sums.level("pif_ms", "pif_uj", clipped, quiet)
        pif = np.minimum(power / rows.board_w, 1.0)
        if active is not None:
            counted = active & ~np.isnan(clipped) if quiet else active
            out["active_pif_uj"] = sums.over_time(np.where(counted, clipped, 0.0) if quiet else clipped * counted)
    pif_silent = pif is not None and quiet
    code = cells.place(util, plane.util_edges, "gpu_util_ratio" in rows.silent, n).astype(np.int16) * plane.pif_cells
    code += cells.place(pif, plane.pif_edges, pif_silent, n)
    for name, column in zip(plane.columns, (sums.table(code, plane.size) @ plane.holds).T, strict=True):
        out[name] = column


def _histogram(sums: Sums, share: np.ndarray, silent: bool) -> None:
    """The time at each level of utilization."""
    bins = lines.bins()
    if silent:
        blank = np.isnan(share)
        code = np.minimum(np.where(blank, 0.0, share) * bins, bins - 1).astype(np.int64)
        code[blank] = bins
    else:
        code = np.minimum(share * bins, bins - 1).astype(np.int8)
    for i, column in enumerate(np.ascontiguousarray(sums.table(code, bins + 1).T[:bins])):
        sums.out[f"util_h{i:02d}"] = column


def add_counters(sums: Sums) -> None:
    """Engine, SM and memory activity, every pipe's activity and activity x clock, traffic, memory."""
    rows = sums.rows
    for name, column in _SHARES.items():
        if (values := rows.get(column)) is not None:
            sums.level(f"{name}_ms", f"{name}_ppm_ms", whole(values, PPM), column in rows.silent)
    for name in _TRAFFIC:
        if (values := rows.get(f"{name}_bytes_per_s")) is not None:
            sums.level(f"{name}_ms", f"{name}_bytes", whole(values, 1e-3), f"{name}_bytes_per_s" in rows.silent)
    if (clock := rows.get("sm_clock_mhz")) is not None:
        _add_pipes(sums, whole(clock), "sm_clock_mhz" in rows.silent)
    if (used := rows.get("fb_used_bytes")) is not None:
        sums.level("fb_ms", "fb_mib_ms", whole(used, 1 / MIB), "fb_used_bytes" in rows.silent)
        sums.low_high(None, "fb_max_bytes", used)
        if (free := rows.get("fb_free_bytes")) is not None:
            sums.low_high(None, "card_bytes", used + free)
    if (bits := rows.get("throttle_bits")) is not None:
        _add_throttling(sums, np.nan_to_num(bits).astype(np.int64))


def add_heat(sums: Sums) -> None:
    """The hottest die and memory."""
    for name in ("gpu_temp", "mem_temp"):
        if (values := sums.rows.get(f"{name}_c")) is not None:
            sums.low_high(None, f"{name}_max_c", values)


def _add_throttling(sums: Sums, bits: np.ndarray) -> None:
    sums.put("power_capped_ms", sums.rows.ms * ((bits & POWER_CAP_BITS) != 0))
    sums.put("thermal_ms", sums.rows.ms * ((bits & THERMAL_BITS) != 0))


def _add_pipes(sums: Sums, mhz: np.ndarray, no_clock: bool) -> None:
    """The SM clock, and every pipe's activity with and without it."""
    rows = sums.rows
    sums.level("clock_ms", "clock_mhz_ms", mhz, no_clock)
    for pipe in PIPES:
        if (values := rows.get(f"{pipe}_ratio")) is not None:
            ppm, blank = whole(values, PPM), no_clock or f"{pipe}_ratio" in rows.silent
            sums.level(f"{pipe}_ms", f"{pipe}_ppm_mhz_ms", ppm * mhz, blank)
            alone = np.where(np.isnan(mhz), np.nan, ppm) if no_clock else ppm
            sums.level(f"{pipe}_ms", f"{pipe}_ppm_ms", alone, blank)
