"""What is a namespace for, and how does its use go?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpuledger.efficiency.groups import pattern_of
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.units import MS_PER_HOUR, PPM

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
WEEK = np.arange(168)


def noise(seed: int, scale: float, n: int = 168) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, n)


def test_steady() -> None:
    assert pattern_of(WEEK, 70 + noise(1, 2)).startswith("steady: hourly utilization 6")


def test_day_and_night() -> None:
    words = pattern_of(WEEK, 50 + 30 * np.sin((WEEK % 24 - 8) / 24 * 2 * np.pi) + noise(2, 3))
    assert words.startswith("day/night: 8")
    assert "around 14:00" in words
    assert words.endswith("UTC")


def test_noise_over_two_days_is_not_the_time_of_day() -> None:
    for seed in range(30):
        assert not pattern_of(np.arange(48), 50 + noise(seed, 8, 48)).startswith("day/night")


def test_bursty_and_uneven() -> None:
    spikes = np.where(np.random.default_rng(3).random(168) < 0.2, 90.0, 5.0)
    assert pattern_of(WEEK, spikes).startswith("bursty: hourly utilization 5 to 90 %")
    assert pattern_of(WEEK, 60 + noise(4, 10)).startswith("uneven: ")


def test_one_hour_has_no_pattern() -> None:
    assert "unknown" in pattern_of(np.array([5]), np.array([50.0]))


@pytest.mark.parametrize(
    ("name", "target", "how"),
    [
        ("ml-training", 70, "by its name: training"),
        ("ML_Inference", 50, "by its name: inference"),
        ("chat.api", 50, "by its name: api"),
        ("constraint-solver", 70, "by its use: 90 % utilization while active"),
        ("research", 70, "by its use: 90 % utilization while active"),
    ],
)
def test_targets_by_name_and_use(state: State, line: Line, name: str, target: float, how: str) -> None:
    (row,) = state(line(0, util=0.9, pif=0.5, namespace=name)).by_namespace
    assert row.target_rfu_pct == target
    assert how in row.pattern


def test_memory_ahead_of_the_tensor_pipe_is_inference(state: State, line: Line) -> None:
    used = {"dram_ms": MS_PER_HOUR, "dram_ppm_ms": 45 * PPM // 100 * MS_PER_HOUR}
    used |= {"tensor_ms": MS_PER_HOUR, "tensor_ppm_ms": 15 * PPM // 100 * MS_PER_HOUR}
    (row,) = state(line(0, util=0.9, pif=0.5, namespace="blue", **used)).by_namespace
    assert row.target_rfu_pct == 50
    assert "3.0 times" in row.pattern


def test_a_namespace_that_never_worked_has_no_target(state: State, line: Line) -> None:
    (row,) = state(line(0, util=0.0, namespace="blue")).by_namespace
    assert row.target_rfu_pct is None
    assert "no target" in row.pattern


def test_folded_days_tell_no_time_of_day(state: State, line: Line) -> None:
    rows = [line(24 * d, util=0.5, grain_ms=24 * MS_PER_HOUR, ms=24 * MS_PER_HOUR) for d in range(3)]
    found = state(*rows)
    assert "pattern unknown" in found.by_namespace[0].pattern
    assert [h.hours for h in found.hours] == [24, 24, 24]
