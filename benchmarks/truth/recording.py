"""How is a recording of the truth set read, and how does it become telemetry that any importer takes?

A recording is a folder: samples.csv.gz (a row per sample, by workload) and truth.json (what really ran). README.md in
this folder documents both. Telemetry is written as CSV with DCGM field names.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Any

# Counters lag: the first rows of a workload still show what ran before it.
LAG_S = 0.8
NO_WORKLOAD = "gap"
# samples.csv column -> DCGM field, and the factor to the field's unit.
FIELDS: dict[str, tuple[str, float]] = {
    "gpu_util": ("DCGM_FI_DEV_GPU_UTIL", 1.0),
    "mem_copy_util": ("DCGM_FI_DEV_MEM_COPY_UTIL", 1.0),
    "power_w": ("DCGM_FI_DEV_POWER_USAGE", 1.0),
    "power_limit_w": ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1.0),
    "energy_j": ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000.0),
    "sm_clock_mhz": ("DCGM_FI_DEV_SM_CLOCK", 1.0),
    "mem_clock_mhz": ("DCGM_FI_DEV_MEM_CLOCK", 1.0),
    "gpu_temp_c": ("DCGM_FI_DEV_GPU_TEMP", 1.0),
    "mem_temp_c": ("DCGM_FI_DEV_MEMORY_TEMP", 1.0),
    "fb_used_mib": ("DCGM_FI_DEV_FB_USED", 1.0),
    "fb_free_mib": ("DCGM_FI_DEV_FB_FREE", 1.0),
    "throttle": ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1.0),
    "gr_engine_active": ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.01),
    "sm_active": ("DCGM_FI_PROF_SM_ACTIVE", 0.01),
    "sm_occupancy": ("DCGM_FI_PROF_SM_OCCUPANCY", 0.01),
    "integer_active": ("DCGM_FI_PROF_PIPE_INT_ACTIVE", 0.01),
    "tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.01),
    "dfma_tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", 0.01),
    "hmma_tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", 0.01),
    "imma_tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", 0.01),
    "dram_active": ("DCGM_FI_PROF_DRAM_ACTIVE", 0.01),
    "fp64_active": ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 0.01),
    "fp32_active": ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 0.01),
    "fp16_active": ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 0.01),
    "pcie_tx_mib_s": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1048576.0),
    "pcie_rx_mib_s": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1048576.0),
}
COUNTERS = frozenset(name for name, (dcgm, _) in FIELDS.items() if dcgm.startswith("DCGM_FI_PROF_"))
LABELS = ("timestamp", "UUID", "modelName", "Hostname", "namespace", "workload", "tensor_precision")

Row = dict[str, float]


@dataclass(frozen=True)
class Recording:
    """Rows and facts by workload; `info` is about the GPU. Rows hold `t` (s) and the columns of FIELDS."""

    name: str
    info: Mapping[str, Any]
    facts: Mapping[str, Mapping[str, Any]]
    rows: Mapping[str, list[Row]]

    def without(self, columns: Collection[str]) -> Recording:
        """The same as if these columns had not been recorded."""
        if unknown := sorted(set(columns) - set(FIELDS)):
            raise BadRecording(f"no column {', '.join(unknown)}; columns are {', '.join(FIELDS)}")
        rows = {
            name: [{k: v for k, v in row.items() if k not in columns} for row in found]
            for name, found in self.rows.items()
        }
        return replace(self, rows=rows)

    def settled(self, workload: str) -> list[Row]:
        """A workload's rows after the lag."""
        rows = self.rows[workload]
        return [row for row in rows if row["t"] >= rows[0]["t"] + LAG_S]


@dataclass(frozen=True)
class Track:
    """What one device reports while one workload owns it."""

    workload: str
    uuid: str
    rows: list[Row]
    precision: str | None = None
    model: str = "NVIDIA H200"
    labels: Mapping[str, str] = field(default_factory=dict)


class BadRecording(Exception):
    """A folder that is not a recording; the message names the file and what to do."""


def read_recording(folder: Path) -> Recording:
    """A folder of the truth set."""
    samples, truth = folder / "samples.csv.gz", folder / "truth.json"
    how = "record one: python benchmarks/truth/record_truth.py OUT"
    for path in (samples, truth):
        if not path.is_file():
            raise BadRecording(f"{path}: no such file; {how}")
    try:
        told = json.loads(truth.read_text(encoding="utf-8"))
        info, facts = told["info"], told["workloads"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadRecording(f"{truth}: not a truth file ({error}); README.md has the format") from error
    try:
        with gzip.open(samples, "rt", encoding="utf-8", newline="") as file:
            raw = list(csv.DictReader(file))
        if not raw or not {"t", "workload"} <= set(raw[0]):
            raise BadRecording(f"{samples}: no rows with the columns t and workload; {how}")
        rows: dict[str, list[Row]] = {}
        for cells in raw:
            if cells["workload"] != NO_WORKLOAD:
                rows.setdefault(cells["workload"], []).append(_row(cells, info.get("power_limit_w")))
    except (OSError, EOFError, ValueError) as error:
        raise BadRecording(f"{samples}: not a sample file ({error}); README.md has the format") from error
    return Recording(folder.name, info, facts, rows)


def _row(cells: Mapping[str, str], limit_w: float | None) -> Row:
    row = {name: value for name in ("t", *FIELDS) if cells.get(name) and not isnan(value := float(cells[name]))}
    if limit_w is not None:
        row.setdefault("power_limit_w", float(limit_w))
    return row


def write_telemetry(path: Path, tracks: Iterable[Track], counters: bool = True) -> int:
    """Telemetry as CSV with DCGM names; without counters only what NVML reports. Returns the number of rows."""
    names = [name for name in FIELDS if counters or name not in COUNTERS]
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*LABELS, *(FIELDS[name][0] for name in names)])
        for track in tracks:
            given = {"Hostname": "truth", "namespace": "truth", **track.labels}
            for row in track.rows:
                at = datetime.fromtimestamp(row["t"], UTC).isoformat(timespec="milliseconds")
                who = [at, track.uuid, track.model, given["Hostname"], given["namespace"], track.workload]
                cells = [_cell(row.get(name), FIELDS[name][1]) for name in names]
                writer.writerow([*who, track.precision or "", *cells])
                count += 1
    return count


def _cell(value: float | None, factor: float) -> str:
    return "" if value is None else f"{value * factor:.10g}"
