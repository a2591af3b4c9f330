"""Is a counter's refresh period told from the readings?"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.devices.reading import MIN_GAPS, Period


def watch(refresh_s: float, tick_s: float = 0.1, seconds: float = 60.0, repeat: float = 0.0, seed: int = 1) -> Period:
    """A counter refreshed each `refresh_s`, keeping its value with chance `repeat`, read each `tick_s`."""
    chance = random.Random(seed)
    values = {}
    period = Period(tick_s)
    for k in range(int(seconds / tick_s)):
        at = k * tick_s + 1e-9
        n = int(at / refresh_s)
        if n not in values:
            values[n] = values[n - 1] if n and chance.random() < repeat else chance.random()
        period.see(at, values[n])
    return period


@pytest.mark.parametrize("refresh_s", [0.1, 1 / 6, 0.2, 0.5, 1.0])
def test_a_period_is_found_through_the_ticks(refresh_s: float) -> None:
    assert watch(refresh_s).seconds() == pytest.approx(refresh_s, rel=0.05)


def test_values_that_stay_the_same_over_refreshes_do_not_stretch_the_period() -> None:
    assert watch(0.2, repeat=0.6).seconds() == pytest.approx(0.2, rel=0.05)


def test_too_few_changes_say_nothing() -> None:
    period = Period(0.1)
    for k in range(MIN_GAPS + 1):  # that many values are MIN_GAPS changes and one gap less
        period.see(k * 0.2, k)
    assert period.seconds() is None
    period.see(9.9, 99)
    assert period.seconds() is not None


def test_a_failed_reading_is_no_change_and_no_gap() -> None:
    period = Period(0.1)
    for k in range(40):
        period.see(k * 0.1, None if k % 4 == 3 else k // 4)
    assert period.changes == 0
    assert period.seconds() is None


@given(st.floats(0.1, 1.0), st.integers(0, 1000))
def test_the_period_is_never_shorter_than_a_tick_less_nor_longer_than_the_gaps(refresh_s: float, seed: int) -> None:
    found = watch(refresh_s, seed=seed, seconds=30).seconds()
    assert found is not None
    assert 0.1 - 1e-6 <= found <= refresh_s + 0.1
