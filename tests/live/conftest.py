"""A small synthetic fleet, posted: 6 GPUs over 2 days."""

from __future__ import annotations

import pytest

import gpuledger
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Tests only read it."""
    folder = tmp_path_factory.mktemp("live")
    gpuledger.write_fleet(gpuledger.FleetSpec(gpus=6, days=2), folder / "fleet", files="day")
    gpuledger.open(folder / "lake").ingest(*sorted((folder / "fleet").glob("*.parquet")))
    made = Lake(folder / "lake")
    post_lake(made, load_thresholds())
    return made
