"""Does each statistic give what a pencil gives?"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.anomalies.statistics import (
    best_drift,
    biggest_change,
    chosen,
    normal_tail,
    poisson_tail,
    spread,
    spread_by_pairs,
    spread_without_each,
    start_of_rise,
    student_tail,
)


def test_spread_is_not_moved_by_one_wild_value():
    # Median 3; distances 2, 1, 0, 1, 97: their median is 1.
    assert spread(np.array([1.0, 2.0, 3.0, 4.0, 100.0])) == pytest.approx(1.4826)
    assert spread(np.array([1.0, 2.0, np.nan, 3.0])) == pytest.approx(1.4826)


def test_tails_are_those_of_the_tables():
    assert normal_tail(1.959964) == pytest.approx(0.025, rel=1e-5)
    assert student_tail(2.776445, 4) == pytest.approx(0.025, rel=1e-4)
    assert student_tail(12.7062, 1) == pytest.approx(0.025, rel=1e-4)
    assert student_tail(-2.776445, 4) == pytest.approx(0.975, rel=1e-4)
    assert student_tail(0.0, 7) == 0.5
    assert poisson_tail(3, 1.0) == pytest.approx(1 - 2.5 / math.e)
    assert poisson_tail(0, 1.0) == 1.0
    assert poisson_tail(1, 0.0) == 0.0


def test_the_tests_to_believe():
    # Of 5 tests at 5 %: limits 0.01, 0.02, 0.03, 0.04, 0.05.
    assert chosen([0.2, 0.01, 0.02, 0.03, 0.04], 0.05).tolist() == [False, True, True, True, True]
    assert chosen([0.03, 0.04], 0.05).tolist() == [True, True]
    assert chosen([0.03, 0.06], 0.05).tolist() == [False, False]
    assert chosen([], 0.05).tolist() == []


def test_a_step_is_found_where_it_is():
    found = biggest_change(np.array([0.0] * 6 + [-1.0] * 6), 0.1, -1)
    assert (found.at, found.before, found.after, found.drift) == (6, 0.0, -1.0, False)
    # 1 / sqrt(1/6 + 1/6) deviations of 0.1, at one of 7 places, on either side.
    assert found.chance == pytest.approx(14 * normal_tail(math.sqrt(3) / 0.1))


def test_a_step_for_the_better_is_not_one():
    assert biggest_change(np.array([0.0] * 6 + [-1.0] * 6), 0.1, 1) is None
    assert biggest_change(np.array([1.0, 2.0]), 0.1, 1) is None


def test_one_wild_value_is_not_a_change():
    values = np.zeros(20)
    values[[3, 19]] = -50
    assert biggest_change(values, 0.1, -1) is None


def test_places_count_what_is_not_known():
    values = np.array([0.0, np.nan, 0.0, 0.0, np.nan, -1.0, -1.0, -1.0])
    assert biggest_change(values, 0.1, -1).at == 5


def test_neighbors_that_are_alike_make_a_change_less_sure():
    walk = np.cumsum(np.random.default_rng(3).normal(0, 0.1, 60))
    shuffled = np.random.default_rng(4).permutation(walk)
    found = biggest_change(walk, 0.01, 1 if walk[-1] > walk[0] else -1)
    assert found.sigma > 2 * biggest_change(shuffled, 0.01, 1).sigma


def test_a_drift_has_its_bend_and_its_end():
    values = np.concatenate([np.zeros(10), -0.1 * np.arange(1, 11)])
    found = biggest_change(values, 0.01, -1)
    assert found.drift
    assert (found.at, found.before) == (9, pytest.approx(0, abs=1e-9))
    assert found.after == pytest.approx(-1.0)
    bend = best_drift(np.arange(20.0), values)
    assert bend.per_place == pytest.approx(-0.1)
    assert bend.error == pytest.approx(0, abs=1e-9)


def test_where_errors_begin():
    assert start_of_rise(np.array([0, 0, 5, 5]), np.ones(4), 0.1) == 2
    assert start_of_rise(np.zeros(4), np.ones(4), 0.1) == 0


@given(st.integers(0, 10**6), st.integers(3, 40), st.floats(0.01, 100), st.floats(-1e3, 1e3))
def test_the_spread_by_pairs_moves_with_the_scale_and_not_with_the_place(seed, n, scale, place):
    values = np.random.default_rng(seed).normal(0, 1, n)
    assert spread_by_pairs(scale * values + place) == pytest.approx(scale * spread_by_pairs(values), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("n", [7, 8, 15, 60])
def test_the_spread_by_pairs_is_right_on_average_and_surer_than_the_median_absolute_deviation(n):
    draws = np.random.default_rng(n).normal(0, 1, (400, n))
    pairs, middles = (np.array([form(row) for row in draws]) for form in (spread_by_pairs, spread))
    assert np.mean(pairs) == pytest.approx(1, abs=0.08)
    assert np.std(pairs) / np.mean(pairs) < 0.9 * np.std(middles) / np.mean(middles)


def test_wild_values_do_not_move_it_and_a_value_is_not_judged_by_itself():
    values = np.array([-1.0, -0.6, -0.2, 0.1, 0.4, 0.9, 1.2])
    calm = spread_by_pairs(values)
    assert spread_by_pairs(np.append(values, [1e6, 1e6])) < 3 * calm
    apart = spread_without_each(np.append(values, 1e6))
    assert apart[-1] == calm
    assert spread_by_pairs(np.array([1.0])) == 0
    many = np.random.default_rng(1).normal(0, 2, 5000)
    assert spread_without_each(many) == pytest.approx(np.full(5000, 2), rel=0.1)
