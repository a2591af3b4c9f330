"""Is start against winner measured until its interval is narrow, whatever the gain, and does the interval hold?"""

from __future__ import annotations

import math
import random

import pytest

from gpuledger.training.tune.duel import gain_of
from gpuledger.training.tune.total import LEAST_PAIRS, NARROW_RATIO, PAIRS, in_turns


def measured(spread, seed=0, gain=4.0, late=lambda: False):
    dice = random.Random(seed)
    olds, news, failed = in_turns(lambda: 1.0, lambda: gain * math.exp(dice.gauss(0, spread)), 0.05, late, ValueError)
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


def test_turns_change_and_what_breaks_keeps_whole_pairs():
    order = []

    def window(name):
        def run():
            order.append(name)
            if len(order) == 8:
                raise ValueError("broke")
            return 1.0

        return run

    olds, news, failed = in_turns(window("old"), window("new"), 0.05, lambda: False, ValueError)
    assert order == ["old", "new", "new", "old", "old", "new", "new", "old"]
    assert (len(olds), len(news), str(failed)) == (3, 3, "broke")
