"""Files of telemetry, read as `gpuledger.read` reads them: recognized, bound, converted, sorted and written."""

from __future__ import annotations

import zlib
from pathlib import Path

import gpuledger
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.mapping import given
from targets import Target, files_of

FIXTURES = "tests/telemetry/fixtures"
SAID = {"at": "2026-01-20T00:00:00Z", "every": "10s", "host": "node-1", "gpu_model": "NVIDIA H100 80GB HBM3"}


def read(path: Path) -> object:
    """The rows of the file, bound and converted as an import does it; of every eighth file in a lake of its own."""
    if zlib.crc32(path.read_bytes()) % 8:
        return explain(path, given=given(**SAID))
    return taken(path)


def taken(path: Path) -> int:
    """The rows of the file in a lake of its own."""
    return gpuledger.read(path, **SAID).found.rows_added


def read_local(path: Path) -> int:
    """The same with times of a zone that sets its clocks, where an hour comes twice."""
    return gpuledger.read(path, tz="Europe/Berlin", **SAID).found.rows_added


_TOOLS = {
    "nvidia-smi": ("nvidia_smi_query", "nvidia_smi_dmon", "nvidia_smi_pmon"),
    "dcgmi": ("dcgmi_dmon",),
    "exporter page": ("exporter_page", "amd_exporter", "nvidia_gpu_exporter", "openmetrics", "tsdb_dump"),
    "Prometheus answer": ("prometheus_json",),
    "Grafana CSV": ("grafana",),
    "amd-smi, rocm-smi": ("amd_smi", "rocm_smi"),
    "W&B, nvitop, Zeus": ("wandb_events", "nvitop", "zeus"),
}
TARGETS = [
    *(Target(name, read, files_of(*(f"{FIXTURES}/{f}" for f in found)), 1.2) for name, found in _TOOLS.items()),
    Target("local times", read_local, files_of("fuzz/seeds/local"), 0.3),
    Target("import --explain", explain, files_of(FIXTURES, "fuzz/seeds/csv"), 1.2),
]
