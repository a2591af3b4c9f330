"""Are the closed forms right: by hand, by the textbook sum, and in the limits?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.plan.autoscale.replays.erlang import erlang_b, erlang_c, least_servers, mean_wait_s, wait_tail


def _by_sum(offered: float, servers: int) -> float:
    """Erlang C as textbooks write it: a sum over the states."""
    terms = [offered**n / math.factorial(n) for n in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(
    ("offered", "servers", "waits"),
    [(1, 2, 1 / 3), (2, 3, 4 / 9), (0.5, 1, 0.5), (0.9, 1, 0.9)],
    ids=["two servers half busy", "three servers two busy", "M/M/1 half", "M/M/1 0.9"],
)
def test_share_that_waits_by_hand(offered, servers, waits):
    assert erlang_c(np.array([offered]), np.array([servers]))[0] == pytest.approx(waits, rel=1e-12)


def test_blocked_share_agrees_with_published_traffic_tables():
    # Erlang B tables: 1 % blocking at 4.461 erlangs on 10 lines and at 84.06 on 100 lines; 5 % at 15.25 on 20.
    found = erlang_b(np.array([4.461, 84.06, 15.25]), np.array([10, 100, 20]))
    assert found == pytest.approx([0.01, 0.01, 0.05], rel=3e-3)


@given(st.integers(1, 60), st.floats(0.05, 0.98))
def test_agrees_with_the_textbook_sum(servers, load):
    offered = load * servers
    assert erlang_c(np.array([offered]), np.array([servers]))[0] == pytest.approx(_by_sum(offered, servers), rel=1e-9)


@pytest.mark.parametrize(("offered", "servers"), [(5000.0, 5100), (20000.0, 20050), (800.0, 801)])
def test_large_systems_agree_with_the_whole_recursion(offered, servers):
    inverse = 1.0
    for n in range(1, servers + 1):
        inverse = 1 + inverse * n / offered
    assert erlang_b(np.array([offered]), np.array([servers]))[0] == pytest.approx(1 / inverse, rel=1e-9)


def test_a_single_server_waits_as_m_m_1():
    # M/M/1 at 0.8 of its capacity of 2/s: rho/(mu - lambda) = 0.8 / 0.4 = 2 s; P(W > 3) = 0.8 exp(-0.4 x 3).
    offered, one = np.array([0.8]), np.array([1])
    assert mean_wait_s(offered, one, 0.5)[0] == pytest.approx(2.0)
    assert wait_tail(offered, one, 0.5, 3.0)[0] == pytest.approx(0.8 * math.exp(-1.2))


def test_servers_that_cannot_keep_up_make_everybody_wait():
    assert wait_tail(np.array([5.0, 5.0]), np.array([5, 3]), 1.0, 10.0).tolist() == [1.0, 1.0]
    assert mean_wait_s(np.array([5.0]), np.array([3]), 1.0, 600.0)[0] == 600.0
    assert np.isinf(mean_wait_s(np.array([5.0]), np.array([3]), 1.0)[0])


def test_nobody_waits_without_demand_and_everybody_without_servers():
    assert erlang_b(np.array([0.0, 0.0]), np.array([3, 0])).tolist() == [0.0, 1.0]
    assert wait_tail(np.array([0.0]), np.array([2]), 1.0, 0.0)[0] == 0.0


@given(st.floats(0.1, 200), st.integers(1, 300))
def test_more_servers_and_less_load_never_wait_more(offered, servers):
    now, more = wait_tail(np.array([offered, offered]), np.array([servers, servers + 1]), 1.0, 0.5)
    less = wait_tail(np.array([0.9 * offered]), np.array([servers]), 1.0, 0.5)[0]
    assert more <= now + 1e-12
    assert less <= now + 1e-12


@given(
    st.floats(0.01, 90),
    st.sampled_from([1, 4, 16]),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([0.01, 0.05, 0.3]),
)
def test_the_fewest_servers_are_found_by_trying_all(offered, lot, beyond_s, missed):
    found = int(least_servers(np.array([offered]), 1.0, beyond_s, missed, lot)[0])
    tails = wait_tail(np.full(200, offered), lot * np.arange(1, 201), 1.0, beyond_s)
    assert found == 1 + int(np.flatnonzero(tails <= missed)[0])


def test_no_servers_are_needed_without_demand():
    assert least_servers(np.array([0.0, 1.0]), 1.0, 1.0, 0.05).tolist() == [0, 3]
