"""Are quantiles, intervals and exact tests what they should be?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.scaling.statistics import (
    MANY,
    VERY_MANY,
    fisher_p,
    interval_of,
    mean_of,
    needed,
    quantile,
    quantile_of,
    rate_draws,
    ratio_of_means,
    resampled,
    sd_range,
    wilson,
)  # fmt: skip
from gpuledger.units import Unknown

SECONDS = st.floats(0.001, 100)


def test_a_quantile_of_nothing_is_unknown_and_not_zero():
    assert isinstance(quantile([], 0.5), Unknown)
    assert isinstance(mean_of([], 1), Unknown)
    assert isinstance(quantile_of([], 0.99, 1), Unknown)


def test_a_tail_needs_a_sample_beyond_it():
    assert [needed(q) for q in (0.5, 0.9, 0.95, 0.99, 0.999)] == [1, 10, 20, 100, 1000]
    assert isinstance(quantile(range(99), 0.99), Unknown)
    assert quantile(range(101), 0.99) == 99


@settings(max_examples=40, deadline=None)
@given(st.lists(SECONDS, min_size=1, max_size=40), st.integers(0, 5))
def test_an_interval_holds_its_figure_and_the_seed_decides(values, seed):
    found = mean_of(values, seed)
    assert found.low <= found.value <= found.high
    assert min(values) - 1e-9 <= found.low
    assert found.high <= max(values) + 1e-9
    assert found == mean_of(values, seed)


def test_the_interval_of_a_mean_is_as_wide_as_theory_says():
    values = np.random.default_rng(0).normal(10, 2, 400)
    found = mean_of(values, 3)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 2 / 20, rel=0.15)


def test_wilson_against_a_published_case():
    found = wilson(15, 20)
    assert (found.value, round(found.low, 3), round(found.high, 3)) == (0.75, 0.531, 0.888)
    assert wilson(10, 10).high == 1
    assert wilson(10, 10).low < 1
    assert isinstance(wilson(0, 0), Unknown)


def test_fisher_against_counting_by_hand():
    # 5 of 10 against 10 of 10: of the ways to place 5 failures among 20, those with all 5 on the first ten.
    assert fisher_p(5, 10, 10, 10) == pytest.approx(math.comb(10, 5) / math.comb(20, 5))
    assert fisher_p(10, 10, 10, 10) == 1
    assert fisher_p(9_000, 10_000, 9_900, 10_000) < 1e-6  # the normal approximation


def test_rates_keep_the_time_that_comes_once():
    even = rate_draws([3.0, 4.0, 5.0], 2.0, 6.0, 1)
    assert np.allclose(even, 3 / 6)  # equal gaps cannot be drawn otherwise, and 2 s + 1 s stay
    bursts = [t for t in range(1, 21) for _ in range(8)]  # eight together, once a second
    alone, blocks = rate_draws(bursts, 0.0, 20.0, 1), rate_draws(bursts, 0.0, 20.0, 1, together=8)
    assert blocks.std() < alone.std() / 5
    assert np.allclose(blocks, 8)
    assert len(rate_draws([float("nan")] * 5, 0.0, 6.0, 1)) > 100


def test_ratio_of_means_by_hand():
    found = ratio_of_means([2.0, 2.0], [1.0, 1.0], 1)
    assert (found.value, found.low, found.high) == (2, 2, 2)


def test_the_published_deviation_of_jw2_is_impossible():
    least, most = sd_range(5, 860, 1610, 1024)
    over_n, over_less = (least, most / math.sqrt(5 / 4)), (least * math.sqrt(5 / 4), most)
    assert not any(a - 1 <= 309 <= b + 1 for a, b in (over_n, over_less))
    assert sd_range(10, 867, 1348, 936)[0] <= 149 <= sd_range(10, 867, 1348, 936)[1]
    assert isinstance(sd_range(4, 1, 2, 5), Unknown)


@settings(max_examples=60, deadline=None)
@given(st.lists(SECONDS, min_size=3, max_size=12))
def test_every_sample_lies_within_the_bounds_of_its_deviation(values):
    found = sd_range(len(values), min(values), max(values), float(np.mean(values)))
    assert not isinstance(found, Unknown)
    assert found[0] <= np.std(values) + 1e-6
    assert np.std(values, ddof=1) <= found[1] + 1e-6


def test_an_interval_without_draws_is_the_figure():
    assert interval_of(2.0, np.array([np.inf])).high == 2.0


def test_quantiles_of_many_values_have_the_interval_that_drawing_them_has():
    values = np.random.default_rng(5).lognormal(0, 0.4, MANY)
    for share in (0.5, 0.95, 0.99):
        quick = quantile_of(values, share, 1)
        slow = interval_of(quick.value, resampled(values, lambda x, s=share: np.quantile(x, s, axis=-1), 1))
        width = slow.high - slow.low
        assert quick.low == pytest.approx(slow.low, abs=0.15 * width)
        assert quick.high == pytest.approx(slow.high, abs=0.15 * width)


def test_means_of_very_many_values_have_the_interval_that_drawing_them_has():
    values = np.random.default_rng(6).lognormal(0, 0.8, VERY_MANY)
    quick = mean_of(values, 1)
    slow = interval_of(quick.value, resampled(values, lambda x: x.mean(axis=-1), 1))
    assert (quick.low, quick.high) == pytest.approx((slow.low, slow.high), abs=0.1 * (slow.high - slow.low))
