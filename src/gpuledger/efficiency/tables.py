"""Which rows do the CSV files hold: the per-GPU summary, the bottlenecked GPUs, the fleet by hour, GPUs with faults?

A cell is empty where the figure is not known. Column names end in their unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow, HealthRow, HourRow, Range
from gpuledger.units import Unknown, utc

Cell = str | int | float | None
Table = tuple[list[str], list[list[Cell]]]
T = TypeVar("T")


def per_gpu_rows(statement: EfficiencyStatement) -> Table:
    """gpu_summary.csv: every device."""
    return _table(_GPU | _MEANS | _TIME, statement.per_gpu)


def bottlenecked_rows(statement: EfficiencyStatement) -> Table:
    """bottlenecked_gpus.csv: the devices bottlenecked on most of their active days, worst first."""

    def worst_first(gpu: GpuRow) -> tuple[float, str, str]:
        share = gpu.bottlenecked_pct_of_active
        return (0.0 if isinstance(share, Unknown) else -share, gpu.gpu_uuid, gpu.gpu_instance_id or "")

    return _table(_GPU | _BOTTLENECK | _MEANS, sorted(statement.bottlenecked_gpus, key=worst_first))


def hourly_rows(statement: EfficiencyStatement) -> Table:
    """hourly_fleet.csv: the fleet in each hour (each day, where lines were folded)."""
    return _table(_HOUR, statement.hours)


def health_rows(statement: EfficiencyStatement) -> Table:
    """gpu_health.csv: the GPUs with faults or held down by heat, worst first."""
    return _table(_HEALTH, statement.health.rows)


def _table(columns: dict[str, Callable[[T], object]], rows: Sequence[T]) -> Table:
    return list(columns), [[_cell(get(row)) for get in columns.values()] for row in rows]


def _cell(value: object) -> Cell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str | int | float) else None


def _level(level: str) -> Callable[[GpuRow], object]:
    def get(gpu: GpuRow) -> object:
        found = gpu.means.rfu_counters_pct
        return getattr(found, level) if isinstance(found, Range) else None

    return get


def _attribute(name: str) -> Callable[[Any], object]:
    return lambda row: getattr(row, name)


def _mean(name: str) -> Callable[[GpuRow], object]:
    return lambda gpu: getattr(gpu.means, name)


_GPU: dict[str, Callable[[GpuRow], object]] = {
    name: _attribute(name) for name in ("gpu_uuid", "gpu_instance_id", "gpu_model", "host", "cluster", "namespace")
} | {"class": _attribute("klass")}
_MEANS: dict[str, Callable[[GpuRow], object]] = {
    name: _mean(name)
    for name in (
        "samples", "observed_h", "gpu_util_pct", "util_p50_pct", "util_p95_pct", "pif", "rfu_power_pct",
        "rfu_power_idle_corrected_pct", "efficiency_gap_pp", "memory_pct", "power_w", "energy_kwh",
    )
} | {
    "rfu_counters_low_pct": _level("low"),
    "rfu_counters_pct": _level("middle"),
    "rfu_counters_high_pct": _level("high"),
    "rfu_counters_note": _level("note"),
}  # fmt: skip
_BOTTLENECK: dict[str, Callable[[GpuRow], object]] = {
    name: _attribute(name)
    for name in ("bottlenecked_pct_of_active", "bottlenecked_days", "active_days", "likely_cause", "cause_evidence")
}
_TIME: dict[str, Callable[[GpuRow], object]] = {
    name: _attribute(name)
    for name in (
        "bottlenecked_pct_of_active", "bottlenecked_days", "active_days", "consistently_bottlenecked", "likely_cause",
        "idle_h", "idle_held_h", "longest_idle_h", "unobserved_h",
    )
}  # fmt: skip
_HEALTH: dict[str, Callable[[HealthRow], object]] = {f.name: _attribute(f.name) for f in fields(HealthRow)}
_HOUR: dict[str, Callable[[HourRow], object]] = {
    "start_utc": lambda hour: f"{utc(hour.start_ms):%Y-%m-%dT%H:%M:%SZ}",
} | {
    name: _attribute(name)
    for name in (
        "start_ms", "hours", "gpus", "samples", "gpu_util_pct", "pif", "rfu_power_pct", "rfu_counters_pct",
        "efficiency_gap_pp", "realized_power_tflops", "power_kw",
    )
}  # fmt: skip
