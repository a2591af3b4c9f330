"""Do the replays do what a queue does: in closed form, by hand, against another way, and in the limits?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.autoscale.demand.trace import Arrivals, arrivals_of
from gpuledger.plan.autoscale.policies.static_peak import StaticPeak
from gpuledger.plan.autoscale.replays.by_request import replay_requests
from gpuledger.plan.autoscale.replays.by_step import replay_rates
from gpuledger.plan.autoscale.replays.erlang import mean_wait_s, wait_tail
from gpuledger.plan.autoscale.setting import Slo, Spot


class Script:
    """A policy that follows a list, one number per interval."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = iter(numbers)
        self._last = numbers[0]

    def desired(self, _view) -> int:
        self._last = next(self._numbers, self._last)
        return self._last


def _waits(rates, setting, replicas, rate, seconds, seed):
    """Waits in a steady system, without the first tenth."""
    trace = rates(np.full(int(seconds // 600), rate))
    arrivals = arrivals_of(trace, setting.service.service_s, seed)
    _, waits = replay_requests(arrivals, setting, StaticPeak(replicas), trace.length_s, first_replicas=replicas)
    return waits[len(waits) // 10 :]


@pytest.mark.parametrize(
    ("servers", "load", "requests"), [(1, 0.5, 150_000), (5, 0.7, 500_000), (20, 0.75, 500_000)], ids=["1", "5", "20"]
)
def test_a_steady_system_waits_as_erlang_says_within_2_percent(rates, setting, servers, load, requests):
    one, rate = setting(slo=Slo(0.2, 95.0)), load * servers
    batches = [_waits(rates, one, servers, rate, requests / rate, seed) for seed in range(8)]
    offered, number = np.array([rate]), np.array([servers])
    for measure, exact in (
        (lambda w: w.mean(), mean_wait_s(offered, number, 1.0)[0]),
        (lambda w: (w > 0.2).mean(), wait_tail(offered, number, 1.0, 0.2)[0]),
    ):
        means = np.array([measure(w) for w in batches])
        half = 2.36 * means.std(ddof=1) / np.sqrt(len(means))  # 95 %, 7 degrees of freedom
        assert abs(means.mean() - exact) <= 0.02 * exact
        assert abs(means.mean() - exact) <= 1.3 * half
        assert half < 0.03 * exact  # the interval is narrow enough to say something


def test_constant_service_waits_half_as_long_as_exponential(rates, setting):
    # M/D/1 at 0.6: rho / (2 (1 - rho)) = 0.75 services (Pollaczek-Khinchine).
    at = arrivals_of(rates(np.full(600, 0.6)), 1.0, 3).at_s
    _, waits = replay_requests(Arrivals(at, np.ones(len(at))), setting(), StaticPeak(1), 360_000, first_replicas=1)
    assert waits.mean() == pytest.approx(0.75, rel=0.02)


def test_waits_by_hand(setting):
    arrivals = Arrivals(np.array([0.0, 0.5, 1.0, 20.0]), np.array([2.0, 2.0, 2.0, 2.0]))
    run, waits = replay_requests(arrivals, setting(slo=Slo(2.0, 95.0)), StaticPeak(1), 30.0, first_replicas=1)
    assert waits.tolist() == [0.0, 1.5, 3.0, 0.0]
    assert run.missed.tolist() == [1.0, 0.0]
    assert run.wait_s.tolist() == [4.5, 0.0]
    assert run.totals().replica_h == pytest.approx(30 / 3600)


def test_a_cold_start_serves_those_who_waited_for_it(setting):
    # From zero: asked for at 15 s, ready at 75 s, and the queue is served in order, one second each.
    arrivals = Arrivals(np.array([1.0, 2.0, 80.0]), np.ones(3))
    run, waits = replay_requests(arrivals, setting(min_replicas=0), StaticPeak(1), 90.0, first_replicas=0)
    assert waits.tolist() == [74.0, 74.0, 0.0]
    assert run.paid.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert run.ready.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_requests_that_no_replica_serves_are_missed(setting):
    none = setting(min_replicas=0)
    run, waits = replay_requests(Arrivals(np.array([1.0]), np.ones(1)), none, StaticPeak(0), 30.0, first_replicas=0)
    assert np.isinf(waits[0])
    assert (run.totals().missed, run.totals().mean_wait_s) == (1.0, 29.0)


def test_a_stopped_replica_is_paid_until_its_request_is_done(setting):
    arrivals = Arrivals(np.array([10.0, 10.0]), np.array([8.0, 8.0]))
    run, _ = replay_requests(arrivals, setting(), Script([1]), 30.0, first_replicas=2)
    assert run.paid.tolist() == [2.0 + 3 / 15, 1.0]


requests = st.lists(st.tuples(st.floats(0, 20), st.floats(0.01, 30)), min_size=1, max_size=40)
growing = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(requests, growing, st.integers(1, 3), st.sampled_from([0.0, 7.0, 40.0]))
def test_requests_take_the_slot_that_is_free_first(setting, found, growth, slots, cold_s):
    """Against a plain list of slots whose opening is known in advance."""
    at = np.cumsum([gap for gap, _ in found])
    takes = np.array([s for _, s in found])
    numbers = (1 + np.cumsum(growth)).tolist()
    rules = setting(slots=slots, cold_start_s=cold_s)
    length = 15.0 * max(1, int(at[-1] // 15) + 2)
    _, waits = replay_requests(Arrivals(at, takes), rules, Script(numbers), length, first_replicas=1)
    asked, free = 1, [0.0] * slots
    for k in range(round(length / 15) - 1):
        number = numbers[min(k, len(numbers) - 1)]
        free += [15.0 * (k + 1) + cold_s] * (slots * (number - asked))
        asked = max(asked, number)
    expected = []
    for arrival, service in zip(at, takes, strict=True):
        i = min(range(len(free)), key=lambda j: free[j])
        start = max(arrival, free[i])
        free[i] = start + service
        expected.append(start - arrival)
    open_until = length - 15 >= max(at)  # slots asked for in the last interval open after it
    if open_until and all(np.array(expected) + at < length):
        assert waits == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([1, 4]))
@settings(max_examples=30)
def test_one_more_replica_never_makes_any_request_wait_longer(rates, setting, seed, replicas, slots):
    arrivals = arrivals_of(rates(np.full(3, 1.0)), 3.0, seed)
    rules = setting(slots=slots, service_s=3.0)
    few, more = (
        replay_requests(arrivals, rules, StaticPeak(n), 1800, first_replicas=n)[1] for n in (replicas, replicas + 1)
    )
    assert (more <= few + 1e-9).all()


steps_up = st.lists(st.integers(0, 3), min_size=2, max_size=20)


@given(st.integers(0, 2**32), steps_up, st.floats(0, 200), st.floats(0, 200))
@settings(max_examples=30)
def test_a_longer_cold_start_never_misses_fewer(rates, setting, seed, growth, one_s, other_s):
    trace = rates(np.full(2, 0.7))
    arrivals, numbers = arrivals_of(trace, 2.0, seed), (1 + np.cumsum(growth)).tolist()
    missed = []
    for cold_s in sorted((one_s, other_s)):
        rules = setting(service_s=2.0, cold_start_s=cold_s)
        run, _ = replay_requests(arrivals, rules, Script(list(numbers)), 1200, first_replicas=1)
        flow = replay_rates(trace, rules, Script(list(numbers)), first_replicas=1)
        missed.append((run.totals().missed, flow.totals().mean_wait_s))
    assert missed[0][0] <= missed[1][0]
    assert missed[0][1] <= missed[1][1] + 1e-6


@given(st.lists(st.integers(0, 6), min_size=2, max_size=20), st.integers(0, 5))
def test_more_minimum_replicas_never_cost_fewer_hours(rates, setting, numbers, least):
    trace = rates(np.full(2, 0.5))
    low, high = (
        replay_rates(trace, setting(min_replicas=n), Script(list(numbers)), first_replicas=max(n, 1)).totals().replica_h
        for n in (least, least + 1)
    )
    assert high >= low


def test_a_flow_by_hand(rates, setting):
    # 2 requests/s for ten minutes onto capacity for 1/s, then none: 600 are left over, the last waits 600 s.
    trace = rates([2.0, 0.0])
    run = replay_rates(trace, setting(), StaticPeak(1), first_replicas=1)
    assert run.totals().requests == pytest.approx(1200)
    assert run.totals().mean_wait_s == pytest.approx(300, rel=1e-3)
    assert run.totals().missed == pytest.approx(1200 * (1 - 1 / 600), rel=1e-3)


def test_what_waits_is_served_by_replicas_that_come_later(rates, setting):
    # Nothing is open for 60 s, then two slots: 60 requests of 1/s wait; the first one 75 s (asked for at 15 s).
    run = replay_rates(rates([1.0]), setting(min_replicas=0), StaticPeak(2), first_replicas=0)
    assert run.ready[:5].tolist() == [0, 0, 0, 0, 0]
    assert run.wait_s[0] == pytest.approx(15 * (75 + 67.5) / 2, rel=1e-6)


@pytest.mark.parametrize(("rate", "replicas"), [(6.0, 8), (18.0, 20)])
def test_flow_and_requests_agree_on_a_steady_demand(rates, setting, rate, replicas):
    rules = setting(slots=4, service_s=4.0, slo=Slo(0.5, 95.0))
    trace = rates(np.full(40, rate))
    flow = replay_rates(trace, rules, StaticPeak(replicas), first_replicas=replicas).totals()
    seen = [
        replay_requests(
            arrivals_of(trace, 4.0, seed), rules, StaticPeak(replicas), trace.length_s, first_replicas=replicas
        )[0]
        .totals()
        .missed_ratio
        for seed in range(3)
    ]
    assert flow.missed_ratio == pytest.approx(np.mean(seen), rel=0.15, abs=0.001)


def test_flow_and_requests_agree_where_the_demand_rises_and_falls(rates, setting):
    from gpuledger.plan.autoscale.policies.queue_length import QueueLength

    trace = rates(12 + 9 * np.sin(np.arange(48) / 8))
    rules = setting(slots=4, service_s=4.0, slo=Slo(2.0, 95.0), cold_start_s=300.0, max_replicas=40)
    flow = replay_rates(trace, rules, QueueLength(rules, 2.8), first_replicas=18).totals()
    seen = replay_requests(
        arrivals_of(trace, 4.0, 1), rules, QueueLength(rules, 2.8), trace.length_s, first_replicas=18
    )[0].totals()
    assert flow.replica_h == pytest.approx(seen.replica_h, rel=0.1)
    assert flow.missed_ratio == pytest.approx(seen.missed_ratio, abs=0.01)


def test_spot_replicas_are_lost_at_their_rate_and_replaced(rates, setting):
    rules = setting(spot=Spot(0.5, 48.0), interval_s=60.0, cold_start_s=600.0)
    run = replay_rates(rates(np.full(1440, 1.0)), rules, StaticPeak(20), first_replicas=20, seed=1)
    assert (run.paid == 20).all()
    # Each spot replica is lost twice an hour on average and away for ten minutes: up for 30 of 40 minutes.
    assert run.ready.mean() == pytest.approx(10 + 10 * 30 / 40, rel=0.02)
    assert run.spot.mean() == pytest.approx(10)


@given(st.lists(st.integers(0, 12), min_size=2, max_size=30), st.floats(0, 1))
def test_the_share_on_spot_is_kept(rates, setting, numbers, share):
    rules = setting(spot=Spot(share, 0.0), min_replicas=0, cold_start_s=0.0)
    run = replay_rates(rates([1.0]), rules, Script(list(numbers)), first_replicas=4)
    assert (np.abs(run.spot - share * run.paid) <= 1.0 + 1e-9).all()


def test_the_same_seed_gives_the_same_replay(rates):
    trace = rates(np.full(6, 2.0))
    first, again, other = (arrivals_of(trace, 1.0, seed).at_s for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:10], other[:10])
