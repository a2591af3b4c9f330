"""Is the deadline met whenever the pool is reclaimed, and is spot used where it can be?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.spot.belief import Belief
from gpuledger.plan.spot.replay import Terms, World, replay
from gpuledger.plan.spot.rule import PlannedRule

STEP = 1 / 6


def _replayed(up, terms, rate=0.003):
    """One pool at a third of on-demand, and what the planned rule comes to."""
    world = World(STEP, np.full((len(up), 1), 1 / 3), np.array(up)[:, None], np.ones(len(up)))
    return replay(world, terms, PlannedRule(world, terms, [Belief(1 / 3, rate, 0.5, "a")], (0.5, 0.1)))


def _ticks(terms):
    return int(2.5 * terms.deadline_h / STEP)


@pytest.mark.parametrize(("work_h", "slack"), [(4.0, 1.1), (4.0, 1.25), (12.0, 1.1)])
def test_the_deadline_is_met_whichever_tick_the_pool_is_reclaimed_in(work_h, slack):
    terms = Terms(work_h, 1 / 60, 1 / 12, slack * work_h)
    ticks = _ticks(terms)
    for gone in range(int(terms.deadline_h / STEP) + 1):
        assert _replayed([tick < gone for tick in range(ticks)], terms).met, gone


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([4.0, 6.0]), st.sampled_from([1.1, 1.2, 1.5]), st.sampled_from([1 / 60, 1 / 20, 0.2]),
    st.sampled_from([1 / 60, 1 / 12, 0.3]), st.sampled_from([0.003, 0.2]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_deadline_is_met_whatever_capacity_does(work_h, slack, checkpoint_h, restart_h, rate, seed):
    terms = Terms(work_h, checkpoint_h, restart_h, slack * (work_h + restart_h))
    random = np.random.default_rng(seed)
    up = np.repeat(random.random(_ticks(terms)) < random.random(), random.integers(1, 12))[: _ticks(terms)]
    assert _replayed(up.tolist(), terms, rate).met


def test_a_short_job_with_little_slack_starts_on_spot_and_ends_on_demand():
    terms = Terms(4.0, 1 / 60, 1 / 12, 4.4)
    found = _replayed([True] * _ticks(terms), terms)
    assert found.spot_h >= 0.5
    assert found.on_demand_h > 0
    assert found.usd < 0.95 * (terms.work_h + terms.restart_h)
