"""Does a duel tell a real gain from noise, and end early where there is none?"""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.training.tune.duel import Gain, Rule, duel, gain_of, in_words, is_gain

RULE = Rule()


def noisy(rate, spread, seed):
    dice = random.Random(seed)
    return lambda: rate * math.exp(dice.gauss(0, spread))


def test_a_pencil_case():
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
    found = duel(noisy(100, 0.002, 1), noisy(150, 0.002, 2), RULE)
    assert found.verdict == "faster"
    assert found.gain.pairs == RULE.looks[0]
    assert found.gain.low < 1.5 < found.gain.high


def test_a_hopeless_way_is_given_up_after_one_pair():
    found = duel(noisy(100, 0.002, 1), noisy(50, 0.002, 2), RULE)
    assert (found.verdict, found.gain.pairs) == ("no gain", 1)


def test_no_gain_ends_before_the_last_pair():
    found = duel(noisy(100, 0.002, 1), noisy(100, 0.002, 2), RULE)
    assert found.verdict == "no gain"
    assert found.gain.pairs < RULE.looks[-1]


def test_noise_that_hides_the_answer_is_no_gain():
    rates = itertools.cycle([100, 160, 140, 110])
    found = duel(lambda: 100.0, lambda: next(rates) * 0.95, Rule(min_gain_ratio=0.02, p=0.001))
    assert (found.verdict, found.gain.pairs) == ("no gain", RULE.looks[-1])
    assert found.gain.ratio > 1.02
    assert found.gain.low < 1


def test_what_was_slower_at_the_first_look_is_given_up():
    found = duel(noisy(100, 0.001, 1), noisy(98, 0.001, 2), RULE)
    assert (found.verdict, found.gain.pairs) == ("no gain", RULE.looks[0])


def test_windows_are_taken_in_turns():
    order = []

    def window(name):
        return lambda: order.append(name) or 1.0

    duel(window("A"), window("B"), Rule(looks=(4,)))
    assert order == list("ABBAABBA")


def test_drift_meets_both_alike():
    """A machine that gets slower all the time does not make the second way look slow."""
    clock = itertools.count()

    def window():
        return 100 * 0.99 ** next(clock)

    found = duel(window, window, Rule(looks=(4,)))
    assert found.gain.ratio == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(ratio=st.floats(0.2, 5), spread=st.floats(0, 0.3), seed=st.integers(0, 10**6), least=st.floats(0, 0.2))
def test_what_is_kept_was_faster_by_its_interval(ratio, spread, seed, least):
    rule = Rule(min_gain_ratio=least)
    found = duel(noisy(1, spread, seed), noisy(ratio, spread, seed + 1), rule)
    assert 1 <= found.gain.pairs <= rule.looks[-1]
    assert len(found.old_rates) == len(found.new_rates) == found.gain.pairs
    if found.verdict == "faster":
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
    found = [duel(noisy(1, 0.03, 2 * i), noisy(1, 0.03, 2 * i + 1), RULE).verdict for i in range(400)]
    assert found.count("faster") <= 20


def test_gain_in_percent():
    assert Gain(1.25, None, None, 1).pct == 25
