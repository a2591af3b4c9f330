"""A small history: two regions, three zones of one instance type, prices that are known by heart."""

from __future__ import annotations

import numpy as np
import pytest

from gpuledger.catalog.prices.history import Changes, Pool, PriceHistory

DAY = 86_400
FIRST = 1_700_000_000 // DAY * DAY
NAN = float("nan")


def changes(*points):
    """(day, on-demand, spot) rows."""
    at, demand, spot = zip(*points, strict=True)
    return Changes(FIRST + DAY * np.array(at, dtype=np.int64), np.array(demand), np.array(spot))


@pytest.fixture
def history():
    """120 days of g5.xlarge; not observed from day 50 to 70."""
    pools = {
        Pool("g5.xlarge", "us-east-1", "use1-az1"): changes((0, 1.0, 0.30), (30, 1.0, 0.40), (90, 1.0, 0.30)),
        Pool("g5.xlarge", "us-east-1", "use1-az2"): changes((0, 1.0, 0.35), (60, 1.0, 0.36), (100, NAN, NAN)),
        Pool("g5.xlarge", "us-west-2", "usw2-az1"): changes((0, 1.0, 0.50), (80, 1.0, 1.20), (110, 1.0, 0.45)),
    }
    days = np.array([d for d in range(121) if not 50 < d < 70], dtype=np.int64)
    return PriceHistory(pools, FIRST + DAY * days, "a test")
