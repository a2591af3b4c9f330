"""Is a cold start found where there is one, and only there?"""

from __future__ import annotations

import numpy as np
import pytest

from gpuledger.scaling.analysis.latency import change_point, cold_start
from gpuledger.units import Unknown


def test_one_cold_request_by_hand():
    found = cold_start([1.61, 0.86, 0.885, 0.885, 0.881])
    assert found.requests == 1
    assert round(found.over_mean_pct) == 57
    assert round(found.over_min_pct) == 87
    assert found.warm_mean_s == pytest.approx((0.86 + 0.885 + 0.885 + 0.881) / 4)


def test_several_cold_requests_are_all_found():
    values = [3.0, 2.9, 3.1, *(1 + 0.02 * np.sin(np.arange(37)))]
    assert change_point(values) == 3


def test_a_steady_series_has_none():
    assert cold_start([1.0] * 12) is None  # looked for and not found: a finding, nothing unknown
    assert cold_start([0.5, 1, 1.01, 0.99, 1.0, 1.02]) is None  # a fast start is no cold one


def test_too_few_samples_say_so():
    assert "too few" in cold_start([2, 1, 1]).why
    assert isinstance(cold_start([0.0, 1, 1, 1]), Unknown)


def test_noise_is_seldom_called_a_cold_start():
    rng = np.random.default_rng(5)
    called = sum(change_point(rng.lognormal(0, 0.3, 40)) != 0 for _ in range(400))
    assert called <= 12  # 1 % is allowed; three times that is a fault


def test_the_change_point_is_the_one_that_leaves_least():
    """Against every split tried one by one, as the definition says."""
    rng = np.random.default_rng(11)
    for cold in (1, 2, 5):
        values = np.concatenate([rng.lognormal(1, 0.05, cold), rng.lognormal(0, 0.05, 30)])
        logs = np.log(values)
        left = [k * logs[:k].var() + (len(logs) - k) * logs[k:].var() for k in range(1, len(logs) // 4 + 1)]
        assert change_point(values) == int(np.argmin(left)) + 1 == cold
