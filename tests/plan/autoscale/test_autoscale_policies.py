"""Does each policy decide as documented, and from the past alone?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.autoscale.manifests.timetables import cron_triggers, stretches
from gpuledger.plan.autoscale.policies import View, kinds
from gpuledger.plan.autoscale.policies.hpa import Hpa
from gpuledger.plan.autoscale.policies.predictive import Predictive
from gpuledger.plan.autoscale.policies.queue_length import QueueLength
from gpuledger.plan.autoscale.policies.scheduled import Scheduled, timetable
from gpuledger.plan.autoscale.policies.static_peak import peak_replicas
from gpuledger.plan.autoscale.policies.target_utilization import TargetUtilization
from gpuledger.plan.autoscale.replays.by_step import replay_rates

DAY_S = 86_400.0


def _seen(now_s: float, ready: int, busy: float, waiting: float = 0.0, starting: int = 0) -> View:
    return View(now_s, ready, starting, busy, waiting)


@pytest.mark.parametrize(
    ("ready", "busy", "desired"),
    [(4, 3.2, 7), (4, 2.0, 4), (4, 2.15, 4), (4, 2.3, 5), (2, 2.0, 4), (4, 0.0, 1)],
    ids=["ceil(4 x 0.8 / 0.5)", "on target", "within tolerance", "beyond it", "all busy", "nothing to do"],
)
def test_replicas_times_utilization_over_target(setting, ready, busy, desired):
    policy = TargetUtilization(setting(scale_down_delay_s=0.0), 0.5)
    assert policy.desired(_seen(15.0, ready, busy)) == desired


def test_replicas_that_are_starting_count_as_asked_for(setting):
    policy = TargetUtilization(setting(), 0.5)
    assert policy.desired(_seen(15.0, 4, 4.0, starting=4)) == 8


def test_a_number_falls_only_after_the_stabilization_window(setting):
    hpa = Hpa(setting(scale_down_delay_s=60.0))
    assert hpa.replicas(_seen(15, 10, 0), 9.5) == 10
    assert [hpa.replicas(_seen(t, 10, 0), 3.0) for t in (30, 45, 60, 75)] == [10, 10, 10, 3]


def test_a_number_rises_by_half_an_order_at_most(setting):
    assert Hpa(setting()).replicas(_seen(15, 3, 0), 100.0) == 7  # 4 more
    assert Hpa(setting()).replicas(_seen(15, 10, 0), 100.0) == 20  # double
    assert Hpa(setting(interval_s=30.0)).replicas(_seen(30, 10, 0), 100.0) == 40  # two syncs


def test_requests_over_threshold(setting):
    policy = QueueLength(setting(), 4.0)
    assert policy.desired(_seen(15.0, 4, 4.0, 15.0)) == 5  # ceil(19 / 4)


def test_the_last_replica_goes_after_the_cooldown_and_comes_back_with_a_request(setting):
    policy = QueueLength(setting(min_replicas=0, cooldown_s=60.0, scale_down_delay_s=0.0), 4.0)
    assert policy.desired(_seen(15.0, 1, 1.0)) == 1
    assert [policy.desired(_seen(t, 1, 0.0)) for t in (30, 45, 60, 75)] == [1, 1, 1, 0]
    assert policy.desired(_seen(90.0, 0, 0.0)) == 0
    assert policy.desired(_seen(105.0, 0, 0.0, 1.0)) == 1


def test_without_scale_to_zero_one_replica_stays(setting):
    assert (
        QueueLength(setting(min_replicas=1, cooldown_s=0.0, scale_down_delay_s=0.0), 4.0).desired(_seen(900, 1, 0)) == 1
    )


def test_the_static_peak_is_sized_for_the_busiest_step(rates, setting):
    # 2 requests/s of one second: 5 slots keep all but 5 % from waiting over a second (Erlang C), 4 do not.
    assert peak_replicas(setting(learned=rates([0.1, 2.0, 1.0]))) == 4


def test_a_timetable_has_what_the_busiest_step_of_each_hour_needs(rates, setting):
    hours = np.tile(np.r_[np.full(8, 1.0), np.full(12, 8.0), np.full(4, 2.0)], 2)
    table = timetable(setting(learned=rates(hours, 3600.0), min_replicas=2), 0.8)
    assert table.replicas == (2,) * 8 + (10,) * 12 + (3,) * 4  # ceil(8 / 0.8), ceil(2 / 0.8), at least 2
    assert stretches(table.replicas) == [(0, 8, 2), (8, 20, 10), (20, 24, 3)]


def test_a_week_is_told_apart_where_it_is_long_enough(rates, setting):
    week = np.r_[np.full(5 * 24, 4.0), np.full(2 * 24, 1.0)]
    table = timetable(setting(learned=rates(np.tile(week, 2), 3600.0), weekly=True), 1.0)
    assert table.replicas == (4,) * 120 + (1,) * 48  # the trace starts on a Monday


def test_a_schedule_starts_replicas_ahead_by_the_cold_start(rates, setting):
    learned = rates(np.tile(np.r_[np.full(8, 1.0), np.full(16, 8.0)], 2), 3600.0)
    policy = Scheduled(setting(learned=learned, cold_start_s=600.0), 1.0)
    before, due = 8 * 3600 - 700.0, 8 * 3600 - 600.0
    assert policy.desired(_seen(before, 1, 0)) == 1
    assert policy.desired(_seen(due, 1, 0)) == 8
    assert policy.desired(_seen(24 * 3600.0, 8, 0)) == 1


def test_cron_triggers_start_early_and_skip_the_minimum(rates, setting):
    learned = rates(np.tile(np.r_[np.full(8, 1.0), np.full(16, 8.0)], 2), 3600.0)
    (one,) = cron_triggers(timetable(setting(learned=learned), 1.0), 570.0, 1)
    assert one["metadata"] == {
        "timezone": "Etc/UTC", "start": "50 7 * * *", "end": "0 0 * * *", "desiredReplicas": "8",
    }  # fmt: skip


def test_cron_counts_the_days_of_a_week_from_sunday(rates, setting):
    week = np.ones(168)
    week[0] = 5.0  # Monday, the first hour; it starts on Sunday evening
    table = timetable(setting(learned=rates(np.tile(week, 2), 3600.0), weekly=True), 1.0)
    (one,) = cron_triggers(table, 300.0, 1)
    assert (one["metadata"]["start"], one["metadata"]["end"]) == ("55 23 * * 0", "0 1 * * 1")


def test_a_rising_line_is_continued(setting):
    policy = Predictive(setting(interval_s=60.0, cold_start_s=240.0, scale_down_delay_s=0.0), 1.0)
    for minute in range(1, 11):
        desired = policy.desired(_seen(60.0 * minute, 50, float(minute)))
    assert policy.expected() == pytest.approx(15.0)  # 10 now, 1 more per minute, five minutes ahead
    assert desired == 15


def test_the_day_before_scales_the_load_of_now(rates, setting):
    # Yesterday the load doubled ten minutes from now; today it stands at half of yesterday's.
    learned = rates(np.ones(288), 600.0)
    policy = Predictive(setting(learned=learned, interval_s=300.0, cold_start_s=300.0), 1.0)
    for k in range(288):
        policy.desired(_seen(300.0 * k, 1, 4.0 if k < 144 else 8.0))
    for k in range(144):
        policy.desired(_seen(300.0 * (288 + k), 1, 2.0))
    assert policy.expected() == pytest.approx(4.0)


steps = st.lists(st.floats(0, 20), min_size=8, max_size=8)


@given(steps, steps, st.sampled_from(["target-utilization", "queue-length", "predictive", "scheduled"]))
@settings(max_examples=40)
def test_no_policy_knows_what_comes(rates, setting, past, futures, name):
    """Two traces that are the same up to an instant are scaled the same up to it."""
    learned = rates(np.resize(past, 288), 600.0)
    cut = round(4 * 600 / 15)
    paid = []
    for later in (past[4:], futures[4:]):
        rules = setting(learned=learned, max_replicas=60)
        policy = kinds()[name].build(rules, 0.7)
        paid.append(replay_rates(rates([*past[:4], *later]), rules, policy, first_replicas=3).paid[:cut])
    assert np.array_equal(*paid)


def test_a_timetable_needs_two_days(rates, setting):
    scheduled = kinds()["scheduled"]
    assert "two days" in scheduled.cannot(setting(learned=rates(np.ones(10))))
    assert not scheduled.cannot(setting(learned=rates(np.ones(48), 3600.0)))


@pytest.mark.parametrize("name", ["static-peak", "target-utilization", "queue-length", "scheduled", "predictive"])
def test_every_policy_says_what_it_is_tuned_to(rates, setting, name):
    rules = setting(learned=rates(np.ones(48), 3600.0), slots=8)
    kind = kinds()[name]
    for value in kind.tried(rules):
        assert kind.says(rules, value)
        assert kind.build(rules, value).desired(_seen(15.0, 1, 1.0)) >= 1
