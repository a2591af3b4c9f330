"""Which rows do the CSV files hold: the per-GPU summary, the bottlenecked GPUs, the fleet by hour, GPUs with faults?

A cell is empty where the figure is unknown. Column names end in their unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from gpuledger.efficiency.health import HealthRow
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.encode import iso
from gpuledger.units import Range, Unknown

Cell = str | int | float | None
Table = tuple[list[str], list[list[Cell]]]
Columns = dict[str, Callable[[Any], object]]


def per_gpu_rows(statement: EfficiencyStatement) -> Table:
    """gpu_summary.csv: every device."""
    return _table(_GPU | _MEANS | _TIME, statement.per_gpu)


def bottlenecked_rows(statement: EfficiencyStatement) -> Table:
    """bottlenecked_gpus.csv: the devices bottlenecked on most of their active days, worst first."""

    def worst_first(gpu: GpuRow) -> tuple[float, str, str]:
        share = gpu.bottlenecked_pct_of_active
        return (0.0 if isinstance(share, Unknown) else -share, gpu.gpu_uuid, gpu.gpu_instance_id or "")

    ordered = sorted(statement.bottlenecked_gpus, key=worst_first)
    return _table(_GPU | _BOTTLENECK | _MEANS, ordered)


def hourly_rows(statement: EfficiencyStatement) -> Table:
    """hourly_fleet.csv: the fleet in each hour (each day, where lines were folded)."""
    return _table(_HOUR, statement.hours)


def health_rows(statement: EfficiencyStatement) -> Table:
    """gpu_health.csv: the GPUs with faults or held down by heat, worst first."""
    return _table(_HEALTH, statement.health.rows)


def _table(columns: Columns, rows: Sequence[object]) -> Table:
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


def _columns(names: str, of: str = "") -> Columns:
    return {name: attrgetter(of + name) for name in names.split()}


_GPU = _columns("gpu_uuid gpu_instance_id gpu_model host cluster namespace") | {"class": attrgetter("klass")}
_MEANS = _columns(
    "samples observed_h gpu_util_pct util_p50_pct util_p95_pct pif rfu_power_pct rfu_power_idle_corrected_pct "
    "efficiency_gap_pp memory_pct power_w energy_kwh",
    "means.",
) | {
    "rfu_counters_low_pct": _level("low"),
    "rfu_counters_pct": _level("middle"),
    "rfu_counters_high_pct": _level("high"),
    "rfu_counters_note": _level("note"),
}
_BOTTLENECK = _columns("bottlenecked_pct_of_active bottlenecked_days active_days likely_cause cause_evidence")
_TIME = _columns(
    "bottlenecked_pct_of_active bottlenecked_days active_days consistently_bottlenecked likely_cause idle_h "
    "idle_held_h longest_idle_h unobserved_h"
)
_HEALTH = _columns(" ".join(f.name for f in fields(HealthRow)))
_HOUR: Columns = {"start_utc": lambda hour: iso(hour.start_ms)} | _columns(
    "start_ms hours gpus samples gpu_util_pct pif rfu_power_pct rfu_counters_pct efficiency_gap_pp "
    "realized_power_tflops power_kw"
)
