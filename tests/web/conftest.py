"""A small fleet, and the dashboard of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import gpuledger
from dashboards import Server, wait_ready
from gpuledger.web.app import create_app
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views
from odd_fleet import odd_rows, write_odd


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 6 GPUs over 2 days, one a day."""
    folder = tmp_path_factory.mktemp("fleet")
    spec = gpuledger.FleetSpec(gpus=6, days=2)
    gpuledger.write_fleet(spec, folder, files="day")
    return folder


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory, fleet: Path) -> Path:
    """The lake of the fleet; tests only read it."""
    root = tmp_path_factory.mktemp("lakes") / "lake"
    gpuledger.open(root).ingest(*sorted(fleet.glob("*.parquet")))
    return root


@pytest.fixture(scope="session")
def client(lake: Path) -> Iterator[TestClient]:
    """The dashboard of the lake, ready."""
    with TestClient(create_app(Views(LiveLake(lake)), every_s=0.1), base_url="http://localhost") as made:
        wait_ready(made)
        yield made


@pytest.fixture(scope="session")
def served(lake: Path) -> Iterator[Server]:
    """The dashboard of the lake as a process, for tests that only look at it; its window is not the usual one."""
    server = Server(lake, "--last", "36h")
    server.wait_ready()
    yield server
    code, errors = server.stop()
    assert "Traceback" not in errors, errors
    assert code in (0, -15)


@pytest.fixture(scope="session")
def odd_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours of GPUs of which much is unknown: activity, power, a price, whether busy time did work."""
    root = tmp_path_factory.mktemp("odd")
    file = write_odd(root / "odd.csv", odd_rows(dt.datetime(2026, 11, 15, 6, tzinfo=dt.UTC), 180))
    gpuledger.open(root / "lake").ingest(file)
    return root / "lake"


@pytest.fixture(scope="session")
def odd(odd_lake: Path) -> Iterator[TestClient]:
    """The dashboard of the odd fleet, ready."""
    with TestClient(create_app(Views(LiveLake(odd_lake)), every_s=0.1), base_url="http://localhost") as made:
        wait_ready(made)
        yield made
