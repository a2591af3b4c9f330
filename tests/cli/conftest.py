"""What do all tests of the command line need? A way to run it, and a small file of telemetry."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cli.app import run
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self):
        return json.loads(self.out)


@pytest.fixture
def cli(capfd, tmp_path, monkeypatch):
    """Run a command line in an empty folder; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPULEDGER_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*args: object) -> Ended:
        capfd.readouterr()
        code = run([str(a) for a in args])
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return call


@pytest.fixture(scope="session")
def fleet_csv(tmp_path_factory) -> Path:
    """Three GPUs, 20 minutes, the 36 columns, as text."""
    file = tmp_path_factory.mktemp("fleet") / "fleet.csv"
    write_fleet(FleetSpec(gpus=3, days=20 / 1440), file, "csv")
    return file


@pytest.fixture(scope="session")
def fleet_parquet(tmp_path_factory) -> Path:
    """Three GPUs, two days from 2026-01-20, a sample each ten minutes."""
    file = tmp_path_factory.mktemp("fleet") / "fleet.parquet"
    write_fleet(FleetSpec(gpus=3, days=2, step_s=600), file)
    return file


@pytest.fixture(scope="session")
def fleet_lake(tmp_path_factory, fleet_parquet) -> Path:
    """That file imported and posted, once for all tests: copy it into the test's own folder."""
    lake = Lake(tmp_path_factory.mktemp("fleet") / "lake")
    import_files(lake, [fleet_parquet])
    post_lake(lake, load_thresholds())
    return lake.root


@pytest.fixture
def dcgm_csv(tmp_path):
    """Writes DCGM samples of a few GPUs that all do the same: `dcgm_csv("f.csv", model=..., tensor=0.2, fp32=None)`.

    A reading given as None is not recorded: its column is left out.
    """

    names = {
        "util": "DCGM_FI_DEV_GPU_UTIL", "power": "DCGM_FI_DEV_POWER_USAGE", "clock": "DCGM_FI_DEV_SM_CLOCK",
        "used": "DCGM_FI_DEV_FB_USED", "free": "DCGM_FI_DEV_FB_FREE", "engine": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "tensor": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "fp32": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
        "fp64": "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "fp16": "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
        "dram": "DCGM_FI_PROF_DRAM_ACTIVE",
    }  # fmt: skip
    usual = {
        "util": 60, "power": 150, "clock": 1400, "used": 6000, "free": 34000, "engine": 0.6, "tensor": 0.1,
        "fp32": 0.05, "fp64": 0.0, "fp16": 0.0, "dram": 0.1,
    }  # fmt: skip

    def write(
        name: str, *, gpus: int = 2, minutes: int = 240, step_min: int = 1, model: str = "NVIDIA A100-SXM4-40GB",
        namespace: str = "serving", uuid: str = "GPU", **readings: float | None,
    ) -> Path:  # fmt: skip
        found = {k: v for k, v in (usual | readings).items() if v is not None}
        head = ["timestamp", "UUID", "modelName", "namespace", *(names[k] for k in found)]
        start = dt.datetime(2026, 1, 20, tzinfo=dt.UTC)
        rows = [
            [(start + dt.timedelta(minutes=m)).isoformat(), f"{uuid}-{n}", model, namespace, *map(str, found.values())]
            for m in range(0, minutes + 1, step_min)
            for n in range(gpus)
        ]
        file = tmp_path / name
        file.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n", encoding="utf-8")
        return file

    return write
