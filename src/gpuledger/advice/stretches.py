"""What did each device do for each owner, stretch by stretch?

A stretch is a device's hours of one period for one owner, those it mostly idled in apart from the others: the mean of
a night and a day would be neither. Lines are added up in DuckDB, whole numbers only; each stretch is then judged once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.activity import PIPES
from gpuledger.efficiency.behaviour import Behaviour, classify
from gpuledger.efficiency.rows import HISTOGRAM
from gpuledger.efficiency.scope import SOURCE, Scope, nothing_found, open_books
from gpuledger.efficiency.signals import from_line
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_DAY, Unknown

# Judging a stretch takes about 50 us; a large fleet is judged by several days at once to stay within a few seconds.
MAX_STRETCHES = 20_000
KEYS = ("gpu_uuid", "gpu_instance_id", "namespace", "workload", "gpu_model", "tensor_precision")
SUMS = (
    "observed_ms", "unstated_ms", "idle_ms", "idle_held_ms", "busy_ppm_ms", "shared_ms", "util_ms", "util_ppm_ms",
    "active_ms", "active_util_ppm_ms", "pif_ms", "pif_uj", "engine_ms", "engine_ppm_ms", "sm_ms", "sm_ppm_ms",
    "mem_copy_ms", "mem_copy_ppm_ms", "dram_ms", "dram_ppm_ms", "tensor_ms", "tensor_ppm_ms", "fp64_ms", "fp64_ppm_ms",
    "fp32_ms", "fp32_ppm_ms", "fp16_ms", "fp16_ppm_ms", "imma_ppm_ms", "dfma_ppm_ms", "clock_ms", "clock_mhz_ms",
    "fb_ms", "fb_mib_ms", "pcie_rx_ms", "pcie_rx_bytes", "pcie_tx_ms", "pcie_tx_bytes", "nvlink_ms", "nvlink_bytes",
    "power_capped_ms", "thermal_ms", "phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms",
    "phase_compute_bound_ms", "energy_ms", "energy_mj", *HISTOGRAM,
)  # fmt: skip
# Work by pipe, in the terms the catalog rates it, and the time it was recorded for.
WORK = {f"work_{pipe}": expr for pipe, expr in PIPES.items()} | {
    "work_ms": "CASE WHEN hmma_ms > 0 AND hmma_ms >= tensor_ms THEN hmma_ms WHEN tensor_ms > 0 THEN tensor_ms "
    "ELSE greatest(fp32_ms, fp16_ms, fp64_ms) END"
}
_DEVICE_DAY = f"gpu_uuid, gpu_instance_id, hour_ms // {MS_PER_DAY}"
MOST = ("board_mw", "card_bytes", "fb_max_bytes", "slice_ppm")

Key = tuple[str, str | None, str | None, str | None]


@dataclass(frozen=True)
class Stretch:
    """One stretch: whose it is, its sums by column name, and the verdict on it."""

    gpu_uuid: str
    gpu_instance_id: str | None
    namespace: str | None
    workload: str | None
    gpu_model: str | None
    precision: str | None
    sums: Mapping[str, Any]
    behaviour: Behaviour

    @property
    def key(self) -> Key:
        """The device and the owner, as charges name them."""
        return self.gpu_uuid, self.gpu_instance_id, self.namespace, self.workload


@dataclass(frozen=True)
class Stretches:
    """All stretches of a window, and how many days one stands for at most."""

    found: tuple[Stretch, ...]
    period_days: int


def window_test(scope: Scope) -> tuple[str, dict[str, Any]]:
    """Lines that reach into the window, of the owners asked for: the same lines the bill is made of."""
    owners, given = Scope(None, None, scope.clusters, scope.namespaces, scope.owners).where()
    tests = [owners.removeprefix("WHERE ")] if owners else []
    for name, test in (("since_ms", "last_ms > $since_ms"), ("until_ms", "first_ms < $until_ms")):
        if (value := getattr(scope, name)) is not None:
            tests.append(test)
            given[name] = value
    return " AND ".join(tests) or "true", given


def read_stretches(lake: Lake, scope: Scope, thresholds: Thresholds | None = None) -> Stretches:
    """The stretches of everyone in scope; an error where there is not one line."""
    idle, (test, given) = (thresholds or load_thresholds()).idle, window_test(scope)
    db, files = open_books(lake, scope)
    with db:
        given["files"] = files
        count = f"SELECT count(DISTINCT ({_DEVICE_DAY})) FROM {SOURCE} WHERE {test}"  # noqa: S608
        (device_days,) = db.execute(count, given).fetchall()[0]
        if not device_days:
            raise nothing_found(lake, scope)
        days = -(-2 * int(device_days) // MAX_STRETCHES)
        table = db.sql(_sql(test, days), params=given).to_arrow_table()
    gpus: dict[str | None, Gpu | None] = {}
    found = []
    for row in table.to_pylist():
        model = row["gpu_model"]
        if model not in gpus:
            gpu = find_gpu(model) if model else None
            gpus[model] = None if isinstance(gpu, Unknown) else gpu
        uuid, instance, namespace, workload, _, precision = (row[k] for k in KEYS)
        judged = classify(from_line(row, gpus[model], idle))
        found.append(Stretch(uuid, instance, namespace, workload, model, precision, row, judged))
    return Stretches(tuple(found), days)


def _sql(test: str, days: int) -> str:
    sums = {name: name for name in SUMS} | WORK
    columns = [
        *KEYS,
        f"hour_ms // {days * MS_PER_DAY} AS period",
        "2 * (idle_ms + idle_held_ms) >= observed_ms AS quiet",
        *(f"coalesce(sum({expr}), 0)::BIGINT AS {name}" for name, expr in sums.items()),
        *(f"max({name}) AS {name}" for name in MOST),
    ]
    order = ", ".join(f"{i + 1} NULLS FIRST" for i in range(len(KEYS) + 2))
    # A slice keeps its model; a source may change its mind about it within a period, which makes two stretches.
    return f"SELECT {', '.join(columns)} FROM {SOURCE} WHERE {test} GROUP BY ALL ORDER BY {order}"  # noqa: S608
