"""Is a loop left alone only where watching it would show, for as long as that asks, and never in step with the loop?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.training.meter.rest import FROM_RATIO, MOST_STEPS, RESTS_RATIO, ROW_STEPS, Own, Rests

US = 1e-6


def turns(plain_us: float, timed_us: float) -> Rests:
    made = Rests()
    for _ in range(3):
        made.took(plain_us * US, timed=False)
        made.took(timed_us * US, timed=True)
    return made


def test_by_pencil():
    # A row of 3 x 40 + 180 = 300 us is a thousandth of 300 ms: 50 steps of 6 ms, 4 of them the row itself.
    made = turns(40, 180)
    lengths = [made.rest_steps(0.006) for _ in range(400)]
    assert sum(lengths) / 400 == pytest.approx(46, abs=1)
    assert min(lengths) >= 23
    assert max(lengths) < 69
    assert made.timing_s == pytest.approx(140 * US)


def test_a_loop_of_long_steps_is_always_watched():
    assert turns(40, 180).rest_steps(0.020) == 0
    assert turns(49, 400).rest_steps(0.020) == 0, "how often steps are timed is not decided here"
    assert turns(51, 400).rest_steps(0.020) > 0


def test_nothing_is_decided_before_both_kinds_of_steps_were_seen():
    made = Rests()
    assert made.rest_steps(0.001) == 0
    made.took(1.0, timed=True)
    assert not made.known
    assert made.rest_steps(0.001) == 0
    assert made.timing_s == 0
    made.took(1.0, timed=False)
    assert made.known


def test_one_hiccup_changes_nothing():
    made, other = turns(40, 180), turns(40, 180)
    other.took(0.5, timed=False)
    assert made.rest_steps(0.006) == other.rest_steps(0.006)


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4), st.floats(1e-6, 10))
def test_what_it_takes_stays_within_what_is_allowed(plain_us, timed_us, step_s):
    made = turns(plain_us, timed_us)
    lengths = [made.rest_steps(step_s) for _ in range(100)]
    assert max(lengths) <= MOST_STEPS
    if not any(lengths):
        assert plain_us * US <= FROM_RATIO * step_s
        return
    own_s = 100 * ((ROW_STEPS - 1) * plain_us + timed_us) * US
    ratio = own_s / (step_s * (sum(lengths) + 100 * ROW_STEPS))
    # Where a step is so short that the longest rest is not enough, a thing that appears later is still seen soon.
    assert ratio <= 1.2 * RESTS_RATIO or sum(lengths) / 100 > 0.9 * MOST_STEPS / 1.5 or max(lengths) <= 4


def test_a_step_of_no_time_at_all():
    assert 0 < turns(40, 180).rest_steps(0.0) <= MOST_STEPS


@pytest.mark.parametrize("period", [2, 5, 10, 25, 50, 64, 100, 128])
def test_what_comes_each_so_many_steps_is_met_as_often_as_it_comes(period):
    made = turns(40, 180)
    index = watched = met = 0
    while index < 200_000:
        row = range(index, index + ROW_STEPS)
        watched, met = watched + ROW_STEPS, met + sum(i % period == 0 for i in row)
        index = row.stop + made.rest_steps(0.006)
    assert met / watched == pytest.approx(1 / period, rel=0.1)


def test_own_time_has_a_clock_of_its_own():
    own = Own(iter([1.0, 3.5]).__next__)
    at = own.clock()
    own.seconds += own.clock() - at
    assert own.seconds == 2.5


def test_what_of_a_timed_step_is_the_loops_own_by_pencil():
    made = turns(40, 100)
    assert made.unslowed_ratio(0.001) == 1, "none was left alone yet"
    made.left_alone(32 * 950_000, 32)
    assert made.unslowed_ratio(0.001) == pytest.approx(0.95), "0.95 ms where nobody looked, 1 ms where we did"
    assert made.unslowed_ratio(0.0009) == 1, "others were slower: that is not our doing"
    made.left_alone(968 * 500_000, 968)
    assert made.unslowed_ratio(0.001) == pytest.approx(0.9), "no more than the 100 us that the meter took"
    assert made.unslowed_ratio(0.0) == 1


@given(st.floats(1, 1e3), st.floats(1, 1e3), st.floats(1, 1e6), st.floats(1, 1e6))
def test_never_more_is_taken_off_than_the_meter_took(plain, timed, step_us, alone_us):
    made = turns(plain, timed)
    made.left_alone(round(100 * alone_us * 1000), 100)
    ratio = made.unslowed_ratio(step_us * US)
    assert ratio <= 1
    assert step_us * (1 - ratio) <= timed * (1 + 1e-9)
