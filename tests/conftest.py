"""Laws are tried on the same examples everywhere, and no machine is too slow for them.

A fresh clone must give the same answer as the last one: examples follow from the test itself, not from chance, and no
time is measured. To look for new counterexamples: pytest --hypothesis-profile=search
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["GPULEDGER_CONFIG"] = ""  # no settings of the machine's user; tests of settings take this away

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", parent=settings.get_profile("search"), derandomize=True)
settings.load_profile("same")

HERE = Path(__file__).parent
# Kills, clusters, object stores, hostile files, built wheels: `make test-scale` runs these, `make test` does not.
SCALE = tuple(HERE / place for place in ("agent", "crash", "fuzz", "lake/stores", "lake/test_ray_engine.py", "release"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start many processes or take long."""
    for item in items:
        if any(item.path.is_relative_to(place) for place in SCALE):
            item.add_marker("scale")
