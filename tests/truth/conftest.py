"""The truth set's own code builds what is judged; rows come from tests/data/truth_rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks" / "truth"))


@pytest.fixture(scope="session")
def recorded() -> Path:
    return ROOT / "tests" / "data" / "truth_rows"
