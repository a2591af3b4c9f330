"""Which few figures of a stretch of time tell what the GPU was doing?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.thresholds import Idle, load_thresholds
from gpuledger.efficiency.window import Window
from gpuledger.ledger import lines
from gpuledger.units import MIB, MS_PER_S, PPM

# A pause longer than this is idle time of its own, not a gap between two pieces of work.
LONG_IDLE_S = 30.0
_SHARES = ("engine", "sm", "tensor", "fp64", "fp32", "fp16", "dram")


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Means of a stretch of time; None where not known. Pauses of `idle_ratio` of the time are left out of the rest.

    *_ratio of a counter is its activity; power_above_idle_ratio is (power - idle) / (limit - idle); held_ratio is
    memory used over the amount from which idle time counts as held. util_bins are shares of the time, lowest first.
    """

    idle_ratio: float | None = None
    engine_ratio: float | None = None
    sm_ratio: float | None = None
    occupancy_ratio: float | None = None
    tensor_ratio: float | None = None
    fp64_ratio: float | None = None
    fp32_ratio: float | None = None
    fp16_ratio: float | None = None
    integer_ratio: float | None = None
    dram_ratio: float | None = None
    util_ratio: float | None = None
    mem_copy_ratio: float | None = None
    power_ratio: float | None = None
    power_above_idle_ratio: float | None = None
    clock_ratio: float | None = None
    fb_used_ratio: float | None = None
    held_ratio: float | None = None
    nvlink_ratio: float | None = None
    pcie_bytes_per_s: float | None = None
    bounces_per_min: float | None = None
    util_bins: tuple[float, ...] | None = None

    def known(self) -> frozenset[str]:
        """The names of what is known."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) is not None)


def from_window(
    window: Window, gpu: Gpu | None = None, power_limit_w: float | None = None, idle: Idle | None = None
) -> Signals:
    """The signals of samples; long pauses are left out unless there is nothing else."""
    rule = idle or load_thresholds().idle
    quiet = _long_pauses(window, rule)
    total, paused = float(window.span_s.sum()), float(window.span_s[quiet].sum())
    if not len(window) or total <= 0:
        return Signals()
    if quiet.any() and not quiet.all():
        window = window.take(~quiet)
    mean = window.mean
    used, free = mean("fb_used_bytes"), mean("fb_free_bytes")
    card = used + free if used is not None and free is not None else None
    received, sent = mean("pcie_rx_bytes_per_s"), mean("pcie_tx_bytes_per_s")
    return Signals(
        idle_ratio=paused / total,
        occupancy_ratio=mean("occupancy_ratio"),
        integer_ratio=mean("integer_ratio"),
        util_ratio=mean("gpu_util_ratio"),
        mem_copy_ratio=mean("mem_copy_util_ratio"),
        clock_ratio=_over(mean("sm_clock_mhz"), _value(gpu.fp32_rated_mhz) if gpu else None),
        nvlink_ratio=_over(mean("nvlink_bytes_per_s"), _link(gpu)),
        pcie_bytes_per_s=received + sent if received is not None and sent is not None else None,
        bounces_per_min=_bounces_per_min(window),
        util_bins=_bins(window),
        **_power(mean("power_w"), gpu, power_limit_w),
        **_memory(used, card, rule),
        **{f"{name}_ratio": mean(f"{name}_ratio") for name in _SHARES},
    )


def from_line(row: Mapping[str, Any], gpu: Gpu | None = None, idle: Idle | None = None) -> Signals:
    """The signals of a ledger line, or of lines added up; truly idle time is left out unless there is nothing else.

    An idle GPU adds next to nothing to the activity sums, so what a line holds of them is set against its other time.
    """
    rule = idle or load_thresholds().idle
    observed, resting = _sum(row, "observed_ms"), _sum(row, "idle_ms") + _sum(row, "idle_held_ms")
    if observed <= 0:
        return Signals()
    idle_ratio = min(1.0, resting / observed)
    working = 1.0 - idle_ratio if idle_ratio < 1.0 else 1.0

    def mean(name: str, per: float = PPM) -> float | None:
        ms = _sum(row, f"{name}_ms")
        return _sum(row, f"{name}_ppm_ms") / per / ms if ms else None

    def busy(name: str) -> float | None:
        value = mean(name)
        return None if value is None else min(1.0, value / working)

    def rate(name: str) -> float | None:
        ms = _sum(row, f"{name}_ms")
        return _sum(row, f"{name}_bytes") * MS_PER_S / ms / working if ms else None

    board_mw, pif_ms, fb_ms = row.get("board_mw"), _sum(row, "pif_ms"), _sum(row, "fb_ms")
    power_w = _sum(row, "pif_uj") / pif_ms / 1e3 if pif_ms else None
    used = _sum(row, "fb_mib_ms") * MIB / fb_ms if fb_ms else None
    clock_ms, received, sent = _sum(row, "clock_ms"), rate("pcie_rx"), rate("pcie_tx")
    clock = _sum(row, "clock_mhz_ms") / clock_ms if clock_ms else None
    bins = [_sum(row, f"util_h{i:02d}") for i in range(lines.bins())]
    return Signals(
        idle_ratio=idle_ratio,
        util_ratio=mean("util"),
        mem_copy_ratio=busy("mem_copy"),
        clock_ratio=_over(clock, _value(gpu.fp32_rated_mhz) if gpu else None),
        nvlink_ratio=_over(rate("nvlink"), _link(gpu)),
        pcie_bytes_per_s=received + sent if received is not None and sent is not None else None,
        util_bins=tuple(b / sum(bins) for b in bins) if sum(bins) else None,
        **_power(power_w, gpu, board_mw / 1e3 if board_mw else None),
        **_memory(used, row.get("card_bytes"), rule),
        **{f"{name}_ratio": busy(name) for name in _SHARES},
    )


def _sum(row: Mapping[str, Any], name: str) -> float:
    return float(row.get(name) or 0)


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _value(fact: Any) -> float | None:
    return None if fact is None else float(fact.value)


def _link(gpu: Gpu | None) -> float | None:
    if gpu is None or gpu.link is None or gpu.link.kind.startswith("PCIe"):
        return None
    return gpu.link.bytes_per_s.value


def _power(power_w: float | None, gpu: Gpu | None, limit_w: float | None) -> dict[str, float | None]:
    limit = limit_w or (gpu.board_power_w.value if gpu else None)
    idle = _value(gpu.idle_power_w) if gpu else None
    above = None
    if power_w is not None and limit and idle is not None and idle < limit:
        above = min(1.0, max(0.0, (power_w - idle) / (limit - idle)))
    return {"power_ratio": _over(power_w, limit), "power_above_idle_ratio": above}


def _memory(used: float | None, card: float | None, rule: Idle) -> dict[str, float | None]:
    # The card's size not known, the fixed amount decides alone.
    return {"fb_used_ratio": _over(used, card), "held_ratio": _over(used, rule.held_limit_bytes(card or 0.0))}


def _bins(window: Window) -> tuple[float, ...] | None:
    util, count = window.known("gpu_util_ratio"), lines.bins()
    if util is None:
        return None
    known = ~np.isnan(util)
    place = np.clip((util[known] * count).astype(np.int64), 0, count - 1)
    shares = np.bincount(place, weights=window.span_s[known], minlength=count)
    return tuple((shares / shares.sum()).tolist()) if shares.sum() > 0 else None


def _busy(window: Window) -> np.ndarray | None:
    """Engine activity, else utilization, row by row."""
    engine = window.known("engine_ratio")
    return engine if engine is not None else window.known("gpu_util_ratio")


def _bounces_per_min(window: Window) -> float | None:
    """How often work started again after a stop; a steady load has no stops, whatever its level."""
    busy, minutes = _busy(window), float(window.span_s.sum()) / 60
    if busy is None or minutes <= 0:
        return None
    values = busy[~np.isnan(busy)]
    top = float(np.quantile(values, 0.9))
    level = np.where(values >= 0.75 * top, 1, np.where(values <= 0.25 * top, -1, 0))
    level = level[level != 0] if top > 0 else level[:0]
    return float((np.diff(level) > 0).sum()) / minutes


def _long_pauses(window: Window, rule: Idle) -> np.ndarray:
    """Rows of pauses longer than LONG_IDLE_S."""
    engine, util = window.columns.get("engine_ratio"), window.columns.get("gpu_util_ratio")
    quiet = np.zeros(len(window), dtype=bool)
    if engine is not None:
        quiet = np.nan_to_num(engine, nan=1.0) < rule.activity_below_ratio
    if util is not None:
        unsaid = np.ones(len(window), dtype=bool) if engine is None else np.isnan(engine)
        quiet = quiet | (unsaid & (np.nan_to_num(util, nan=1.0) < rule.util_below_ratio))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], quiet.astype(np.int8), [0]])))
    for start, end in edges.reshape(-1, 2):
        if window.span_s[start:end].sum() <= LONG_IDLE_S:
            quiet[start:end] = False
    return quiet
