"""What do the rows of a line add up to?

Every value is made whole (ppm, mW, MHz, bytes) before it is multiplied with whole milliseconds. The products stay
below 2**53, where float64 adds without rounding, so the sums are exact in any order and fast in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.ledger import cells, lines
from gpuledger.ledger.spells import COLUMNS as WAITS
from gpuledger.physics.states import POWER_CAP_BITS, RESTING, THERMAL_BITS, State, ppm
from gpuledger.units import MIB

PIPES = ("tensor", "hmma", "imma", "dfma", "fp64", "fp32", "fp16")
_SHARES = {
    "engine": "engine_ratio", "sm": "sm_ratio", "occupancy": "occupancy_ratio", "integer": "integer_ratio",
    "dram": "dram_ratio", "mem_copy": "mem_copy_util_ratio",
}  # fmt: skip
_BUSY = {"engine_ratio": "engine_ppm_ms", "sm_ratio": "sm_ppm_ms", "gpu_util_ratio": "util_ppm_ms"}
_TRAFFIC = ("pcie_rx", "pcie_tx", "nvlink")


@dataclass(frozen=True)
class Rows:
    """The readings of samples, spread over pieces in order of line when they are asked for.

    NaN where silent (in columns named so), absent where the source has none.
    """

    readings: Mapping[str, np.ndarray]
    silent: set[str]
    spread: Callable[[np.ndarray], np.ndarray]
    ms: np.ndarray
    starts: np.ndarray
    line: np.ndarray
    limit_w: np.ndarray
    _seen: dict[str, np.ndarray] = field(default_factory=dict)

    def get(self, name: str) -> np.ndarray | None:
        """One column, or None where no source has it."""
        return self[name] if name in self.readings else None

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._seen:
            self._seen[name] = self.spread(self.readings[name])
        return self._seen[name]


class Sums:
    """Adds up rows line by line."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.out: dict[str, np.ndarray] = {}
        self.observed = np.add.reduceat(rows.ms, rows.starts)
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
        """Time per code and line, as a table of codes x lines."""
        n = len(self.rows.starts)
        flat = np.multiply(code, n, dtype=np.int64)
        flat += self.rows.line
        if self._even_ms is not None:
            return np.bincount(flat, minlength=n * width).reshape(width, n) * self._even_ms
        return np.bincount(flat, self.rows.ms, minlength=n * width).reshape(width, n)

    def highest(self, name: str, values: np.ndarray, silent: bool) -> None:
        """The largest value of each line; NaN where there is none."""
        self.out[name] = (np.fmax if silent else np.maximum).reduceat(values, self.rows.starts)


def whole(values: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Values as whole numbers of a finer unit, still as float64."""
    out = np.multiply(values, factor, dtype=np.float64)
    return np.rint(out, out=out)


def _or_zero(values: np.ndarray) -> np.ndarray:
    """Values, 0 where NaN."""
    return np.where(np.isnan(values), 0.0, values)


def add_states(sums: Sums, memory: Callable[[], np.ndarray], busy: np.ndarray | None) -> None:
    """Idle time by how memory stood, unstated time, and the busy part of what is active (`busy`: by sample)."""
    out, rows = sums.out, sums.rows
    of_line = out["state"]
    out["unstated_ms"] = np.where(of_line == State.UNSTATED, sums.observed, 0.0)
    idle = of_line == State.IDLE
    if idle.any():
        stands = memory()
        for code, name in enumerate(("idle_ms", "idle_held_ms", "idle_unknown_ms")):
            out[name] = np.where(idle, sums.over_time((stands == code).astype(np.float64)), 0.0)
    if busy is None:
        return
    added = next((out[c] for name, c in _BUSY.items() if busy is rows.readings.get(name)), None)  # most often
    if added is None:
        added = sums.over_time(_or_zero(ppm(rows.spread(busy))))
    out["busy_ppm_ms"] = np.where(np.isin(of_line, RESTING), 0.0, added)


def add_waits(sums: Sums, waiting: np.ndarray, length: np.ndarray, opens: np.ndarray) -> None:
    """Waits by their length, and how many begin in each line."""
    for code, name in enumerate(WAITS):
        sums.out[name] = sums.over_time((waiting & (length == code)).astype(np.float64))
    sums.put("waits", opens.astype(np.float64))


def add_efficiency(sums: Sums, limits: Thresholds) -> None:
    """Utilization and its histogram, power, PIF, the classes and phases."""
    rows, out, n = sums.rows, sums.out, len(sums.rows.ms)
    util, power = rows.get("gpu_util_ratio"), rows.get("power_w")
    active, pif, quiet = None, None, False
    if util is not None:
        quiet = "gpu_util_ratio" in rows.silent
        share = ppm(util)
        sums.level("util_ms", "util_ppm_ms", share, quiet)
        _histogram(sums, util, quiet)
        active = util > limits.activity.active_util_above_ratio
        share = np.where(active, share, 0.0) if quiet else np.multiply(share, active, out=share)
        out["active_util_ppm_ms"] = sums.over_time(share)
    if power is not None:
        milli = whole(power, 1e3)
        quiet = "power_w" in rows.silent
        sums.level("power_ms", "power_uj", milli, quiet)
        # A line holds one limit, to the mW.
        limit_mw = whole(rows.limit_w[rows.starts], 1e3)
        quiet = quiet or bool(np.isnan(limit_mw).any())
        clipped = np.minimum(milli, np.repeat(limit_mw, np.diff(rows.starts, append=n)), out=milli)
        sums.level("pif_ms", "pif_uj", clipped, quiet)
        pif = power / rows.limit_w
        np.minimum(pif, 1.0, out=pif)
        if active is not None:
            counted = active & ~np.isnan(clipped) if quiet else active
            clipped = np.where(counted, clipped, 0.0) if quiet else np.multiply(clipped, counted, out=clipped)
            out["active_pif_uj"] = sums.over_time(clipped)
    _classes(sums, util, pif, limits, pif_silent=pif is not None and quiet)


def _classes(
    sums: Sums, util: np.ndarray | None, pif: np.ndarray | None, limits: Thresholds, *, pif_silent: bool
) -> None:
    """The time in each class and phase."""
    n, plane = len(sums.rows.ms), cells.plane(limits)
    cell = cells.place(util, plane.util_edges, "gpu_util_ratio" in sums.rows.silent, n).astype(np.int16)
    cell *= plane.pif_cells
    cell += cells.place(pif, plane.pif_edges, pif_silent, n)
    times = sums.table(plane.kind.take(cell), plane.kinds)
    for name, some in plane.holds.items():
        sums.out[name] = times[some].sum(axis=0)


def _histogram(sums: Sums, share: np.ndarray, silent: bool) -> None:
    """The time at each level of utilization."""
    bins = lines.bins()
    if silent:
        blank = np.isnan(share)
        code = np.minimum(np.where(blank, 0.0, share) * bins, bins - 1).astype(np.int64)
        code[blank] = bins
    else:
        code = np.minimum(share * bins, bins - 1).astype(np.int8)
    for i, column in enumerate(sums.table(code, bins + 1)[:bins]):
        sums.out[f"util_h{i:02d}"] = column


def add_counters(sums: Sums) -> None:
    """Engine, SM and memory activity, every pipe's activity and activity x clock, traffic, memory."""
    rows = sums.rows
    for name, column in _SHARES.items():
        if (values := rows.get(column)) is not None:
            sums.level(f"{name}_ms", f"{name}_ppm_ms", ppm(values), column in rows.silent)
    for name in _TRAFFIC:
        if (values := rows.get(f"{name}_bytes_per_s")) is not None:
            sums.level(f"{name}_ms", f"{name}_bytes", whole(values, 1e-3), f"{name}_bytes_per_s" in rows.silent)
    if (used := rows.get("fb_used_bytes")) is not None:
        sums.level("fb_ms", "fb_mib_ms", whole(used, 1 / MIB), "fb_used_bytes" in rows.silent)
        sums.highest("fb_max_bytes", used, "fb_used_bytes" in rows.silent)
        if (free := rows.get("fb_free_bytes")) is not None:
            sums.highest("card_bytes", used + free, not rows.silent.isdisjoint(("fb_used_bytes", "fb_free_bytes")))
    if (bits := rows.get("throttle_bits")) is not None:
        _add_throttling(sums, bits)


def add_heat(sums: Sums) -> None:
    """The hottest die and memory."""
    for name in ("gpu_temp", "mem_temp"):
        if (values := sums.rows.get(f"{name}_c")) is not None:
            sums.highest(f"{name}_max_c", values, f"{name}_c" in sums.rows.silent)


def _add_throttling(sums: Sums, bits: np.ndarray) -> None:
    """Time with clocks held down, over the time in which the reasons are known."""
    known = ~np.isnan(bits)
    reasons = np.where(known, bits, 0).astype(np.int64)
    capped = ((reasons & POWER_CAP_BITS) != 0).astype(np.float64)
    sums.out["throttle_ms"] = sums.over_time(known.astype(np.float64))
    sums.out["power_capped_ms"] = sums.over_time(capped)
    sums.out["thermal_ms"] = sums.over_time(((reasons & THERMAL_BITS) != 0).astype(np.float64))
    if (tensor := sums.rows.get("tensor_ratio")) is not None:
        sums.out["tensor_capped_ppm_ms"] = sums.over_time(np.nan_to_num(ppm(tensor)) * capped)


def add_pipes(sums: Sums, rated_mhz: Callable[[], np.ndarray]) -> None:
    """The SM clock, and every pipe's activity with and without it; the rated clock stands in where none is recorded."""
    rows, clock = sums.rows, sums.rows.get("sm_clock_mhz")
    no_clock = clock is None or "sm_clock_mhz" in rows.silent
    if clock is not None:
        sums.level("clock_ms", "clock_mhz_ms", whole(clock), no_clock)
    pipes = [p for p in PIPES if rows.get(f"{p}_ratio") is not None]
    if not pipes:
        return
    if no_clock:
        silent = np.ones(len(rows.ms), dtype=bool) if clock is None else np.isnan(clock)
        sums.out["unclocked_ms"] = sums.over_time((silent & _some(rows, pipes)).astype(np.float64))
        clock = rated_mhz() if clock is None else np.where(silent, rated_mhz(), clock)
    assert clock is not None
    mhz = whole(clock)
    unrated = no_clock and bool(np.isnan(mhz).any())
    for pipe in pipes:
        share, blank = ppm(rows[f"{pipe}_ratio"]), f"{pipe}_ratio" in rows.silent
        sums.level(f"{pipe}_ms", f"{pipe}_ppm_ms", share, blank)
        sums.out[f"{pipe}_ppm_mhz_ms"] = sums.over_time(np.nan_to_num(share * mhz) if blank or unrated else share * mhz)


def _some(rows: Rows, pipes: list[str]) -> np.ndarray:
    """Where any pipe is known."""
    known = np.zeros(len(rows.ms), dtype=bool)
    for pipe in pipes:
        known |= ~np.isnan(rows[f"{pipe}_ratio"])
    return known


def unrecorded(said: frozenset[str]) -> frozenset[str]:
    """The sums that are zero where samples hold only these columns."""
    of: dict[str, tuple[str, ...]] = {f"{p}_ratio": (f"{p}_ms", f"{p}_ppm_ms", f"{p}_ppm_mhz_ms") for p in PIPES}
    of |= {column: (f"{name}_ms", f"{name}_ppm_ms") for name, column in _SHARES.items()}
    of |= {f"{name}_bytes_per_s": (f"{name}_ms", f"{name}_bytes") for name in _TRAFFIC}
    of["throttle_bits"] = ("throttle_ms", "power_capped_ms", "thermal_ms", "tensor_capped_ppm_ms")
    of["sm_clock_mhz"] = ("clock_ms", "clock_mhz_ms")
    return frozenset(name for column, names in of.items() if column not in said for name in names)
