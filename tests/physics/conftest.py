"""Makers of samples are those of the ledger's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ledger"))

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.thresholds import Thresholds, load_thresholds


@pytest.fixture(scope="session")
def limits() -> Thresholds:
    return load_thresholds()


@pytest.fixture(scope="session")
def h200() -> Gpu:
    return get_gpu("NVIDIA H200")
