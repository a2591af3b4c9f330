"""Which few figures of a stretch of time tell what the GPU was doing?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.thresholds import Idle, load_thresholds
from gpuledger.units import MIB, MS_PER_MIN, MS_PER_S, PPM

_SHARES = ("engine", "sm", "occupancy", "tensor", "fp64", "fp32", "fp16", "integer", "dram", "mem_copy")
BINS = 20
UTIL_BINS = tuple(f"util_h{i:02d}" for i in range(BINS))
_WAITS = ("wait_1s_ms", "wait_10s_ms", "wait_30s_ms")


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Means of a stretch of time; None where not known. Idle time, `idle_ratio` of all, is left out of the rest.

    *_ratio of a counter is its activity; wait_ratio is the time waited between pieces of work, bounces_per_min how
    often; power_above_idle_ratio is (power - idle) / (limit - idle); capped_ratio is the time at a power limit below
    the board's own; held_ratio is memory used over the amount from which idle time counts as held. util_bins are shares
    of the time, lowest first.
    """

    idle_ratio: float | None = None
    wait_ratio: float | None = None
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
    capped_ratio: float | None = None
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


@dataclass(frozen=True)
class GpuFacts:
    """What the catalog says of the GPU of each row, NaN where it says nothing."""

    idle_w: np.ndarray
    board_w: np.ndarray
    rated_mhz: np.ndarray
    link_bytes_per_s: np.ndarray

    @classmethod
    def of(cls, gpus: list[Gpu | None], row: np.ndarray) -> GpuFacts:
        """The facts of some GPUs, spread over rows."""

        def facts(get: Any) -> np.ndarray:
            return np.array([np.nan if g is None or (v := get(g)) is None else v for g in gpus], dtype=np.float64)[row]

        return cls(
            facts(lambda g: _value(g.idle_power_w)),
            facts(lambda g: _value(g.board_power_w)),
            facts(lambda g: _value(g.fp32_rated_mhz)),
            facts(_link),
        )


def signal_rows(sums: Mapping[str, np.ndarray], facts: GpuFacts, idle: Idle | None = None) -> dict[str, np.ndarray]:
    """The signals of rows of sums, NaN where not known.

    `sums` are of the time in which the device worked or waited; `all_ms` is all observed time, `resting_ms` the idle
    part of it, `capped_ms` the time at a power limit below the board's own, `limit_mw` the power limit.
    """
    rule = idle or load_thresholds().idle
    observed = sums["observed_ms"]

    def mean(name: str) -> np.ndarray:
        return _over(sums[f"{name}_ppm_ms"] / PPM, sums[f"{name}_ms"])

    def rate(name: str) -> np.ndarray:
        return _over(sums[f"{name}_bytes"] * MS_PER_S, sums[f"{name}_ms"])

    power_w = _over(sums["pif_uj"], sums["pif_ms"]) / 1e3
    limit_w = np.where(np.isnan(sums["limit_mw"]), facts.board_w, sums["limit_mw"] / 1e3)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.clip((power_w - facts.idle_w) / (limit_w - facts.idle_w), 0.0, 1.0)
        above = np.where(facts.idle_w < limit_w, above, np.nan)
    used = _over(sums["fb_mib_ms"] * MIB, sums["fb_ms"])
    card = np.nan_to_num(sums["card_bytes"])
    waits = np.sum([sums[w] for w in _WAITS], axis=0)
    return {
        "idle_ratio": np.minimum(1.0, _over(sums["resting_ms"], sums["all_ms"])),
        "wait_ratio": _over(waits, observed),
        "bounces_per_min": _over(sums["waits"] * MS_PER_MIN, observed),
        "util_ratio": mean("util"),
        "clock_ratio": _over(_over(sums["clock_mhz_ms"], sums["clock_ms"]), facts.rated_mhz),
        "nvlink_ratio": _over(rate("nvlink"), facts.link_bytes_per_s),
        "pcie_bytes_per_s": rate("pcie_rx") + rate("pcie_tx"),
        "power_ratio": _over(power_w, limit_w),
        "power_above_idle_ratio": above,
        "capped_ratio": np.minimum(1.0, _over(sums["capped_ms"], observed)),
        "fb_used_ratio": _over(used, card),
        "held_ratio": _over(used, np.maximum(rule.held_above_bytes, rule.held_above_card_ratio * card)),
        **{f"{name}_ratio": mean(name) for name in _SHARES},
    }


def from_sums(sums: Mapping[str, Any], gpu: Gpu | None = None, idle: Idle | None = None) -> Signals:
    """The signals of one row of sums."""
    return signals_of([sums], [gpu], idle)[0]


def signals_of(
    rows: Sequence[Mapping[str, Any]], gpus: Sequence[Gpu | None], idle: Idle | None = None
) -> list[Signals]:
    """The signals of many rows of sums, all at once; `gpus`: the GPU of each."""
    if not rows:
        return []
    names = [name for name, v in rows[0].items() if not isinstance(v, str)]
    sums = {n: np.array([np.nan if (v := row[n]) is None else float(v) for row in rows]) for n in names}
    kinds = list({id(gpu): gpu for gpu in gpus}.values())
    number = {id(gpu): i for i, gpu in enumerate(kinds)}
    facts = GpuFacts.of(kinds, np.array([number[id(gpu)] for gpu in gpus], dtype=np.int64))
    found = signal_rows(sums, facts, idle)
    out = []
    for row, *values in zip(rows, *(v.tolist() for v in found.values()), strict=True):
        bins = [float(row[name]) for name in UTIL_BINS]
        whole = sum(bins)
        known = {name: v for name, v in zip(found, values, strict=True) if not math.isnan(v)}
        out.append(Signals(**known, util_bins=tuple(b / whole for b in bins) if whole else None))
    return out


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; NaN where either is unknown or the whole is 0."""
    part = np.asarray(part, dtype=np.float64)
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=np.asarray(whole) > 0)


def _value(fact: Any) -> float | None:
    return None if fact is None else float(fact.value)


def _link(gpu: Gpu) -> float | None:
    if gpu.link is None or gpu.link.kind.startswith("PCIe"):
        return None
    return gpu.link.bytes_per_s.value
