"""Tests of batch plans find the oracle of the benchmark by name, and make small jobs and pools in one line."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.plan.batching.jobs import Job
from gpuledger.plan.batching.pools import Pool, Terms
from gpuledger.units import MS_PER_HOUR

sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "plans"))
START_MS = 1_794_787_200_000  # 2026-11-16, a Monday, midnight UTC


@pytest.fixture
def job():
    """A job: GPUs, hours, and when it may start and must end, in hours from the start."""

    def make(name: str, gpus: int, hours: float, first: float = 0, due: float = 24, **more: object) -> Job:
        at, end = (START_MS + round(h * MS_PER_HOUR) for h in (first, due))
        due_given = bool(more.pop("due_given", True))
        return Job(name, gpus, round(hours * MS_PER_HOUR), at, end, due=due_given, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture
def pool():
    """A pool of 8 GPUs at $2, unless given otherwise."""

    def make(name: str = "cloud", gpus: int = 8, usd: str = "2", terms: str = "on-demand", **more: object) -> Pool:
        return Pool(name, str(more.pop("gpu", "a")), gpus, Decimal(usd), Terms(terms), **more)  # type: ignore[arg-type]

    return make
