"""How do job tables given on a command line reach the ledger?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cli.screen import Stages
from gpuledger.lake.jobs.adding import JobsResult, add_jobs
from gpuledger.lake.layout import Lake
from gpuledger.ledger.jobs.joining import Owners, owners_of


def add_tables(
    lake_dir: Path, files: Sequence[Path], zone: str | None, stages: Stages, taken: str | None = None
) -> tuple[JobsResult, Owners]:
    """Add the tables, post the days they touch, and say what they explain."""
    lake = Lake(lake_dir)
    result = add_jobs(lake, files, zone=zone, taken=taken)
    if lake.exists():
        stages.post(lake, load_thresholds())
    return result, owners_of(lake)
