"""What is a target worth?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.capacity import roi
from gpuledger.units import Unknown

TARGETS = (0.5, 0.6, 0.7, 0.8)


def test_the_published_case() -> None:
    """50 GPUs from 65.5 to 70 %: 50 x (70 / 65.5 - 1) = 3.4 GPUs."""
    seventy, eighty = roi(50, 65.5, TARGETS)
    assert (seventy.target_rfu_pct, eighty.target_rfu_pct) == (70, 80)
    assert seventy.equivalent_gpus == pytest.approx(3.435, abs=5e-4)
    assert seventy.gpu_hours_per_day == pytest.approx(3.435 * 24, abs=0.01)
    assert seventy.gpu_hours_per_month == pytest.approx(3.435 * 24 * 30, abs=0.4)


def test_targets_at_or_below_the_current_are_left_out() -> None:
    assert [r.target_rfu_pct for r in roi(50, 60.0, TARGETS)] == [70, 80]
    assert roi(50, 95.0, TARGETS) == ()


def test_nothing_scales_from_nothing() -> None:
    assert roi(50, Unknown("no power"), TARGETS) == ()
    assert roi(50, 0.0, TARGETS) == ()


@given(st.integers(1, 10_000), st.floats(0.1, 100), st.lists(st.floats(0.01, 1), min_size=1, max_size=6))
def test_worth_rises_with_the_target_from_zero_at_the_current(gpus: int, rfu: float, targets: list[float]) -> None:
    rows = roi(gpus, rfu, targets)
    worths = [r.equivalent_gpus for r in rows]
    assert worths == sorted(worths)
    assert all(r.target_rfu_pct > rfu and r.equivalent_gpus > 0 for r in rows)
    for row in rows:
        assert (row.equivalent_gpus + gpus) * rfu == pytest.approx(gpus * row.target_rfu_pct)
