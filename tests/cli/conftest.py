"""What do all tests of the command line need? A way to run it, and a small file of telemetry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuledger.cli.app import run
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
