"""The fields of dcgm-exporter's default list under their names of 4.8 and 4.9, and pages and files that have them.

Names and units: release notes of dcgm-exporter 4.9.0 and dcgm_fields.h of DCGM 4.6.0; those of DCGM 4.7 (*_UTIL_RATIO
of the device, *_HERTZ, *_BYTES, *_JOULES_TOTAL) from NVIDIA's list of field identifiers of 4.7.0.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

START_MS = 1_768_896_000_000  # 2026-01-20T08:00:00Z
MIB = 1 << 20
# old name, new name, new unit / old unit, reading of a busy GPU in the old unit
FIELDS = [
    ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6, 1755),
    ("DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1e6, 2619),
    ("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", 1, 70),
    ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1, 61),
    ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", 1, 512.5),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3, 1_000_000_000),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 1, 3),
    ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", 1e-2, 97),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", 1e-2, 41),
    ("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO", 1e-2, 7),
    ("DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO", 1e-2, 9),
    ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", 1, 79),
    ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", MIB, 40960),
    ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", MIB, 40000),
    ("DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES", MIB, 599),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1_024_000, 120),
    ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_DEV_VGPU_LICENSE_STATUS", 1, 0),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 1, 1),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", 1, 2),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED", 1, 0),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1, 0.95),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1, 0.42),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO", 1, 0.3),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES", 1, 2.1e8),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES", 1, 1.9e8),
]
# Opt-in fields whose canonical name since DCGM 4.6 means the same number in the same unit.
SAME = [
    ("DCGM_FI_DEV_POWER_USAGE_INSTANT", "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", 500),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", 650),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", 650),
    ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 4),
    ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO", 0.8),
    ("DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", 0.5),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO", 0.01),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO", 0.2),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO", 0.1),
    ("DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", "DCGM_FI_PROF_IMMA_UTIL_RATIO", 0.02),
    ("DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", "DCGM_FI_PROF_HMMA_UTIL_RATIO", 0.4),
    ("DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", "DCGM_FI_PROF_DFMA_UTIL_RATIO", 0.03),
    ("DCGM_FI_PROF_PIPE_INT_ACTIVE", "DCGM_FI_PROF_INT_UTIL_RATIO", 0.04),
]
MODEL = "NVIDIA H100 80GB HBM3"
OWNER = {"namespace": "vision", "pod": "train-0", "container": "main"}


def labels(gpu: int = 0, **more: str) -> dict[str, str]:
    """The labels that name a GPU."""
    return {"gpu": str(gpu), "UUID": f"GPU-{gpu}", "modelName": MODEL, "Hostname": "node01", **more}


def series(name: str, own: dict[str, str], value: object, at_ms: int | None = None) -> str:
    """One line of metric text."""
    inner = ",".join(f'{key}="{text}"' for key, text in own.items())
    return f"{name}{{{inner}}} {value}" + ("" if at_ms is None else f" {at_ms}")


def readings(new: bool, i: int = 0) -> dict[str, float]:
    """The readings of a busy GPU after `i` minutes, under the names and in the units of 4.9 or 4.8."""
    energy = 512.5 * 1000 * 60 * i
    return {
        (now if new else old): (value + energy * (old == "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")) * (by if new else 1)
        for old, now, by, value in FIELDS
    }


def minutes(is_new: list[bool]) -> str:
    """Text with times, without comments: a scrape per minute of one GPU, of the old or the new exporter."""
    return "".join(
        series(name, labels(**OWNER), value, START_MS + 60_000 * i) + "\n"
        for i, new in enumerate(is_new)
        for name, value in readings(new, i).items()
    )


def answer(is_new: list[bool]) -> str:
    """The same as a saved answer of Prometheus that renames the workload's labels."""
    found: dict[str, list[list[object]]] = {}
    for i, new in enumerate(is_new):
        for name, value in readings(new, i).items():
            found.setdefault(name, []).append([START_MS / 1000 + 60 * i, repr(value)])
    own = labels(job="dcgm-exporter", instance="10.0.0.7:9400", namespace="gpu-operator", pod="nvidia-dcgm-exporter-x7")
    own |= {f"exported_{key}": text for key, text in OWNER.items()}
    result = [{"metric": {"__name__": name, **own}, "values": values} for name, values in found.items()]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def wide(is_new: list[bool]) -> str:
    """The same as CSV with a column per field; fields of the other exporter are empty."""
    rows = [readings(new, i) for i, new in enumerate(is_new)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    own = labels(**OWNER)
    lines = [",".join(["timestamp", *own, *names])]
    for i, row in enumerate(rows):
        at = datetime.fromtimestamp(START_MS / 1000 + 60 * i, UTC).isoformat()
        lines.append(",".join([at, *own.values(), *(repr(row[n]) if n in row else "" for n in names)]))
    return "\n".join(lines) + "\n"
