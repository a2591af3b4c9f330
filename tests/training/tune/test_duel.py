"""Is a real gain separated from noise, is the end early where there is none, and are two loss curves compared right?"""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.training.tune.duel import (
    LEAST_PAIRS,
    NARROW_RATIO,
    PAIRS,
    Demand,
    alternate,
    compare_curves,
    duel,
    gain_of,
    in_words,
    is_gain,
)

DEMAND = Demand()


def noisy(rate, spread, seed):
    dice = random.Random(seed)
    return lambda: rate * math.exp(dice.gauss(0, spread))


def test_gain_by_pencil():
    """Ratios 2 and 8: geometric mean 4; logs 0.693 and 2.079, deviation 0.980, t(1, 0.05) = 12.706."""
    gain = gain_of([1, 1], [2, 8], 0.05)
    assert gain.ratio == pytest.approx(4)
    half = 12.706 * 0.98026 / math.sqrt(2)
    assert gain.low == pytest.approx(4 * math.exp(-half), rel=1e-3)
    assert gain.high == pytest.approx(4 * math.exp(half), rel=1e-3)


def test_one_pair_has_no_interval():
    gain = gain_of([10], [15], 0.05)
    assert (gain.ratio, gain.low, gain.high) == (1.5, None, None)
    assert not is_gain(gain, 0.02)
    assert in_words(gain) == "1.50x (one pair)"


def test_a_plain_gain_is_seen_at_the_first_look():
    found = duel(noisy(100, 0.002, 1), noisy(150, 0.002, 2), DEMAND)
    assert found.faster
    assert found.gain.pairs == DEMAND.looks[0]
    assert found.gain.low < 1.5 < found.gain.high


def test_a_hopeless_way_is_given_up_after_one_pair():
    found = duel(noisy(100, 0.002, 1), noisy(50, 0.002, 2), DEMAND)
    assert (found.faster, found.gain.pairs) == (False, 1)


def test_no_gain_ends_before_the_last_pair():
    found = duel(noisy(100, 0.002, 1), noisy(100, 0.002, 2), DEMAND)
    assert not found.faster
    assert found.gain.pairs < DEMAND.looks[-1]


def test_noise_that_hides_the_answer_is_no_gain():
    rates = itertools.cycle([100, 160, 140, 110])
    found = duel(lambda: 100.0, lambda: next(rates) * 0.95, Demand(min_gain_ratio=0.02, p=0.001))
    assert (found.faster, found.gain.pairs) == (False, DEMAND.looks[-1])
    assert found.gain.ratio > 1.02
    assert found.gain.low < 1


def test_what_was_slower_at_the_first_look_is_given_up():
    found = duel(noisy(100, 0.001, 1), noisy(98, 0.001, 2), DEMAND)
    assert (found.faster, found.gain.pairs) == (False, DEMAND.looks[0])


def test_windows_are_taken_in_turns():
    order = []

    def window(name):
        return lambda: order.append(name) or 1.0

    duel(window("A"), window("B"), Demand(looks=(4,)))
    assert order == list("ABBAABBA")


def test_drift_meets_both_alike():
    """A machine that gets slower all the time does not make the second way look slow."""
    clock = itertools.count()

    def window():
        return 100 * 0.99 ** next(clock)

    found = duel(window, window, Demand(looks=(4,)))
    assert found.gain.ratio == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(ratio=st.floats(0.2, 5), spread=st.floats(0, 0.3), seed=st.integers(0, 10**6), least=st.floats(0, 0.2))
def test_what_is_kept_was_faster_by_its_interval(ratio, spread, seed, least):
    rule = Demand(min_gain_ratio=least)
    found = duel(noisy(1, spread, seed), noisy(ratio, spread, seed + 1), rule)
    assert 1 <= found.gain.pairs <= rule.looks[-1]
    assert len(found.old_rates) == len(found.new_rates) == found.gain.pairs
    if found.faster:
        assert found.gain.low > 1
        assert found.gain.ratio >= 1 + least
    elif found.gain.low is not None:
        assert found.gain.low <= 1 or found.gain.ratio < 1 + least


@given(rates=st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), min_size=2, max_size=8))
def test_exchanging_the_two_turns_the_interval_around(rates):
    old, new = zip(*rates, strict=True)
    there, back = gain_of(old, new, 0.05), gain_of(new, old, 0.05)
    assert there.ratio * back.ratio == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.low <= there.ratio <= there.high


def test_equal_ways_are_called_faster_rarely():
    """The error is shared among the looks: of 400 equal pairs at most a few pass by chance."""
    found = [duel(noisy(1, 0.03, 2 * i), noisy(1, 0.03, 2 * i + 1), DEMAND).faster for i in range(400)]
    assert sum(found) <= 20


def measured(spread, seed=0, gain=4.0, late=lambda: False):
    dice = random.Random(seed)
    olds, news, failed = alternate(lambda: 1.0, lambda: gain * math.exp(dice.gauss(0, spread)), 0.05, late, ValueError)
    assert failed is None
    return gain_of(olds, news, 0.05)


def test_a_noisy_pair_is_repeated_and_a_quiet_one_is_not():
    quiet, noisy = measured(0.01), measured(0.14)
    assert quiet.pairs == PAIRS[0]
    assert noisy.pairs == PAIRS[-1]
    assert math.log(quiet.ratio / quiet.low) <= math.log1p(NARROW_RATIO)


def test_the_spread_of_an_h200_with_a_loader_in_the_loop_leaves_the_bar_outside():
    """0.14 between pairs, as in the first run kept in docs/results: 4.39x then reached down to 3.68."""
    lows = [measured(0.14, seed, gain=4.39).low for seed in range(200)]
    assert sum(low > 3.75 for low in lows) >= 190


@pytest.mark.parametrize("spread", [0.02, 0.08, 0.14])
def test_looking_for_a_narrow_interval_hardly_costs_truth(spread):
    """95 % is meant; stopping where the spread looks small costs a few percent of it."""
    found = [measured(spread, seed) for seed in range(1000)]
    assert sum(gain.low <= 4.0 <= gain.high for gain in found) >= 900


def test_late_it_ends_with_as_few_as_have_an_interval():
    assert measured(0.14, late=lambda: True).pairs == LEAST_PAIRS


def test_the_order_alternates_and_what_breaks_keeps_whole_pairs():
    order = []

    def window(name):
        def run():
            order.append(name)
            if len(order) == 8:
                raise ValueError("broke")
            return 1.0

        return run

    olds, news, failed = alternate(window("old"), window("new"), 0.05, lambda: False, ValueError)
    assert order == ["old", "new", "new", "old", "old", "new", "new", "old"]
    assert (len(olds), len(news), str(failed)) == (3, 3, "broke")


CURVES = st.lists(st.floats(0.01, 100), min_size=1, max_size=10)


def test_curves_by_pencil():
    """The widest gap is 0.3 at update 2, the largest old loss 5: 6 %."""
    found = compare_curves([5.0, 4.0, 3.0], [5.0, 4.3, 2.9], 0.02)
    assert found.deviation_ratio == pytest.approx(0.06)
    assert not found.kept
    assert found.why == "the loss at update 2 is 4.3 where it was 4: 6.0% apart, allowed is 2.0%"
    assert compare_curves([5.0, 4.0, 3.0], [5.0, 4.3, 2.9], 0.06 + 1e-9).kept


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_refused(bad):
    found = compare_curves([5.0, 4.0], [5.0, bad], 1e9)
    assert not found.kept
    assert found.why == f"the loss is {bad} at update 2"
    assert found.deviation_ratio is None


@given(curve=CURVES)
def test_a_curve_agrees_with_itself(curve):
    assert compare_curves(curve, curve, 0.0).kept


@given(curve=CURVES, scale=st.floats(0.1, 10), off=st.floats(0, 0.5))
def test_the_unit_of_the_loss_does_not_matter(curve, scale, off):
    new = [loss * (1 + off) for loss in curve]
    one = compare_curves(curve, new, 0.02).deviation_ratio
    other = compare_curves([scale * x for x in curve], [scale * x for x in new], 0.02).deviation_ratio
    assert one == pytest.approx(other, abs=1e-9)


def test_curves_of_different_length_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        compare_curves([1.0, 2.0], [1.0], 0.02)


def test_a_loss_of_zero_all_along():
    assert compare_curves([0.0], [0.0], 0.02).kept
    assert compare_curves([0.0], [0.1], 0.02).deviation_ratio is None
