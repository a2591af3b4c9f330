"""Samples for the ledger's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpuledger.catalog.thresholds import Thresholds, load_thresholds

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def limits() -> Thresholds:
    return load_thresholds()
