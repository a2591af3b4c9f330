"""Is the plan right as a whole: tuned on the past, judged on the rest, the cheapest that meets the goal?"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
import yaml

import gpuledger
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.autoscale.policies import kinds
from gpuledger.plan.autoscale.prices import GpuPrice, ReplicaPrices
from gpuledger.plan.autoscale.replays.clairvoyant import busy_replica_h, by_interval, needed_replicas
from gpuledger.plan.autoscale.replays.replay import Replays, interval_for
from gpuledger.plan.autoscale.replays.run import Totals
from gpuledger.plan.autoscale.rows import dollars
from gpuledger.plan.autoscale.setting import Slo
from gpuledger.plan.autoscale.tuning import Trial, best, tune
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import Unknown


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Four days of a demand with a day and a night, as a file."""
    at = np.arange(4 * 144)
    rates = np.maximum(0.2, 3 + 2.5 * np.sin(2 * np.pi * at / 144) + 0.2 * np.sin(at))
    path = tmp_path_factory.mktemp("trace") / "days.csv"
    rows = (f"{1_767_571_200 + 600 * k},{r:.4f}" for k, r in zip(at, rates, strict=True))
    path.write_text("timestamp,req_per_s\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def plan(days):
    return gpuledger.plan.autoscale(
        trace=days, service_s=4.0, concurrency=4, price=2.0, cold_start_s=120.0, slo_wait_s=1.0, seeds=2
    ).statement


def test_the_cheapest_that_meets_the_goal_is_chosen(plan):
    fitting = [row for row in plan.policies if row.missed_pct <= 5]
    assert len(plan.policies) == 5
    assert plan.chosen == min(fitting, key=lambda row: row.usd_per_month.middle_usd)
    assert {row.policy for row in plan.runners_up} == {row.policy for row in fitting} - {plan.chosen.policy}
    assert len(plan.refused) == 5 - len(fitting)
    assert plan.chosen.title in plan.headline
    assert plan.chosen.gpu_h_per_month < plan.static.gpu_h_per_month


def test_dollars_are_hours_times_the_price(plan):
    for row in plan.policies:
        assert float(row.usd_per_month.middle_usd) == pytest.approx(2 * row.gpu_h_per_month)
        assert row.usd_per_month.low_usd <= row.usd_per_month.middle_usd <= row.usd_per_month.high_usd
    assert float(plan.static.usd_per_month.middle_usd) == pytest.approx(2 * 720 * plan.static.value)


def test_no_policy_pays_less_than_the_work_itself(plan):
    for row in plan.policies:
        assert row.gpu_h_per_month >= 0.98 * plan.busy_gpu_h_per_month  # the work of drawn requests varies
    assert plan.clairvoyant_gpu_h_per_month >= plan.busy_gpu_h_per_month


def test_paid_is_what_was_needed_and_more_and_less(plan):
    for row in plan.policies:
        surplus = row.gpu_h_per_month - plan.clairvoyant_gpu_h_per_month
        assert row.over_gpu_h_per_month >= max(0.0, surplus) - 1e-6
        assert row.short_gpu_h_per_month >= 0
        assert (
            row.over_gpu_h_per_month - row.short_gpu_h_per_month <= surplus + 1e-6
        )  # those starting are paid, not ready


def test_manifests_have_the_tuned_values(plan):
    by_name = {row.policy: row for row in plan.policies}
    found = yaml.safe_load(plan.manifests["hpa.yaml"])["spec"]["metrics"][0]["pods"]["target"]["averageValue"]
    assert found == f"{round(4000 * by_name['target-utilization'].value)}m"
    assert set(plan.manifests) == {"hpa.yaml", "keda.yaml", "karpenter.yaml"}


def test_moments_cover_the_time_that_was_judged(plan):
    assert plan.moments[0].at_s == pytest.approx(2 * 86_400)
    assert plan.moments[-1].at_s < 4 * 86_400
    assert max(m.static for m in plan.moments) == plan.static.value


def test_the_plan_is_the_same_again(days, plan):
    asked = {"service_s": 4.0, "concurrency": 4, "price": 2.0, "cold_start_s": 120.0, "slo_wait_s": 1.0, "seeds": 2}
    again = gpuledger.plan.autoscale(trace=str(days), **asked, policy=("queue-length",)).statement
    assert again.policies == tuple(row for row in plan.policies if row.policy == "queue-length")


def test_spot_is_cheaper_and_prices_of_your_own_have_no_date(days):
    asked = {"trace": days, "service_s": 4.0, "concurrency": 4, "price": 2.0, "policy": ("queue-length",), "seeds": 1}
    plain = gpuledger.plan.autoscale(**asked).statement
    assert gpuledger.plan.autoscale(**{n: v for n, v in asked.items() if n != "price"}, prices=2.0).statement == plain
    with pytest.raises(InputError, match="price and prices are two names"):
        gpuledger.plan.autoscale(**asked, prices=2.0)
    mixed = gpuledger.plan.autoscale(**asked, spot_share=0.5, spot_price=0.5, spot_reclaims_per_day=1.0).statement
    one = mixed.policies[0]
    assert one.usd_per_month.middle_usd < plain.policies[0].usd_per_month.middle_usd
    spot, rest = one.spot_gpu_h_per_month, one.gpu_h_per_month - one.spot_gpu_h_per_month
    assert float(one.usd_per_month.middle_usd) == pytest.approx(2.0 * rest + 0.5 * spot)
    assert mixed.prices_dated == Unknown("the price is your own")
    assert mixed.price_words == (
        "your own price of $2.00 per GPU-hour", "your own spot price of $0.50 per GPU-hour",
    )  # fmt: skip
    assert "spot_share.yaml" in mixed.manifests
    assert "spot_share.yaml" not in plain.manifests
    with pytest.raises(InputError, match="taken back"):
        gpuledger.plan.autoscale(**asked, spot_share=0.5)


def test_without_a_price_dollars_are_unknown_and_hours_decide(days):
    answer = gpuledger.plan.autoscale(trace=days, service_s=4.0, concurrency=4, seeds=1, policy=("queue-length",))
    assert isinstance(answer.statement.policies[0].usd_per_month, Unknown)
    assert "GPU-hours" in answer.statement.headline
    data = answer.to_dict() if hasattr(answer, "to_dict") else json.loads(answer.json())
    assert data["policies"][0]["usd_per_month"] is None


def test_a_limit_below_the_peak_is_named(days):
    plan = gpuledger.plan.autoscale(
        trace=days, service_s=4.0, concurrency=4, max_replicas=3, seeds=1, policy=("static-peak", "queue-length")
    ).statement
    assert plan.chosen is None
    assert "No policy meets the goal" in plan.headline
    assert all("allow more than 3 replicas" in refused.instead for refused in plan.refused)
    assert plan.unmet.instead == "allow more than 3 replicas"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"slo_pct": 100.0}, "slo_pct"),
        ({"slo_wait_s": float("nan")}, "slo_wait_s"),
        ({"cold_start_s": -1.0}, "cold_start_s"),
        ({"min_replicas": -1}, "min_replicas"),
        ({"min_replicas": 5, "max_replicas": 2}, "max_replicas"),
        ({"spot_share": 1.5}, "spot_share"),
        ({"learned_pct": 95.0}, "learned_pct"),
        ({"seeds": 0}, "seeds"),
        ({"price": float("nan")}, "price"),
        ({"price": -2.0}, "price"),
        ({"deployment": "Chat Server"}, "deployment"),
        ({"namespace": ("a",)}, "namespace"),
        ({"policy": ("scheduled",), "learned_pct": 10.0}, "two days"),
    ],
)
def test_what_cannot_be_is_refused_with_a_next_step(days, given, words):
    with pytest.raises(InputError, match=words) as refused:
        gpuledger.plan.autoscale(trace=days, service_s=4.0, **given)
    assert refused.value.hint


def test_names_are_suggested(days):
    with pytest.raises(UnknownName) as gpu:
        gpuledger.plan.autoscale(trace=days, service_s=4.0, gpu="h100z")
    assert "did you mean" in gpu.value.hint
    with pytest.raises(UnknownName) as policy:
        gpuledger.plan.autoscale(trace=days, service_s=4.0, policy=("queue-lenght",))
    assert "queue-length" in policy.value.hint


def test_a_trace_of_some_minutes_is_too_short(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("timestamp,rps\n0,1\n60,2\n120,1\n")
    with pytest.raises(InputError, match="180 s long"):
        gpuledger.plan.autoscale(trace=path, service_s=4.0)


def test_the_best_trial_is_the_cheapest_that_fits_else_the_one_that_misses_least():
    def trial(value, missed, hours):
        return Trial(value, Totals(10.0, 100.0, missed, 0.0, hours, 0.0, 1))

    trials = [trial(1, 1, 30.0), trial(2, 2, 20.0), trial(3, 9, 10.0)]
    assert best(trials, 0.025, lambda t: t.replica_h).value == 2
    assert best(trials, 0.001, lambda t: t.replica_h).value == 1


def test_dollars_by_hand():
    price = GpuPrice(UsdRange(Decimal(1), Decimal(2), Decimal(4)), "", "2026-01-01")
    spot = GpuPrice(UsdRange(Decimal("0.5"), Decimal("0.5"), Decimal("0.5")), "", "2026-01-01")
    # 10 h with 30 and 40 replica-hours, 10 of them on spot, 2 GPUs each: 72 times that in a month of 720 h.
    totals = [Totals(10.0, 1.0, 0.0, 0.0, hours, 10.0, 4) for hours in (30.0, 40.0)]
    found = dollars(totals, 2, ReplicaPrices(None, price, spot))
    assert found.low_usd == 2 * 72 * (20 * 1 + 5)
    assert found.middle_usd == 2 * 72 * (Decimal(20 + 30) / 2 * 2 + 5)
    assert found.high_usd == 2 * 72 * (30 * 4 + 5)


def test_needed_replicas_are_the_fewest_that_meet_the_goal_in_every_step(rates, setting):
    trace = rates([0.0, 2.0, 5.0])
    rules = setting(min_replicas=0, slo=Slo(1.0, 95.0))
    needed = needed_replicas(trace, rules)
    assert needed.tolist() == [0, 4, 7]  # C(7, 5) exp(-2) = 0.324 x 0.135 = 0.044; with 6: 0.22
    assert by_interval(needed, trace, 300.0).tolist() == [0, 0, 4, 4, 7, 7]
    assert needed_replicas(trace, replace(rules, min_replicas=5, max_replicas=6)).tolist() == [5, 5, 6]
    assert busy_replica_h(trace, rules, 600.0) == pytest.approx((2 + 5) * 600 / 3600)


def test_a_timetable_is_tuned_on_days_it_did_not_learn_from(rates, setting):
    # The second learned day is twice as busy as the first: in its own sample 95 % would do, out of it it cannot.
    trace = rates(np.repeat([2.0, 4.0, 4.0, 4.0], 144))
    rules = setting(slots=4, service_s=4.0, learned=trace.first(2 * 86_400), interval_s=60.0)
    tuned = tune(
        kinds()["scheduled"], Replays(trace, rules, 2 * 86_400.0, (0,)), lambda t: t.replica_h, lambda _n: None
    )
    assert tuned.chosen.value < 0.6
    assert tuned.chosen.totals.hours == pytest.approx(24)


def test_a_policy_that_misses_says_what_would_have_met_the_goal(tmp_path):
    # The second half is half as busy again as the first: what was tuned there is too little.
    path = tmp_path / "rising.csv"
    rows = (f"{600 * k},{4.0 if k < 36 else 6.0}" for k in range(72))
    path.write_text("window_start_s,rps\n" + "\n".join(rows) + "\n")
    asked = {"trace": path, "service_s": 4.0, "concurrency": 4, "policy": ("static-peak",), "seeds": 1}
    plan = gpuledger.plan.autoscale(**asked).statement
    (row,), (refused,) = plan.policies, plan.refused
    assert plan.chosen is None
    assert row.hindsight.missed_pct <= 5 < row.missed_pct
    assert row.hindsight.gpu_h_per_month == pytest.approx(720 * row.hindsight.value)
    assert row.hindsight.value > row.value
    assert row.hindsight.says in refused.instead


def test_decisions_are_rarer_on_long_traces():
    assert interval_for(3600) == 15
    assert interval_for(14 * 86_400) == 45


def test_the_ledger_hours_are_a_demand(hour, books, tmp_path):
    at = [hour(k, gpu, busy=busy) for k in range(24) for gpu, busy in (("GPU-a", 0.5), ("GPU-b", 0.25 + 0.5 * (k % 2)))]
    lake = books(*at)
    plan = gpuledger.plan.autoscale(
        lake=lake.root, namespace=("serving",), price=1.0, seeds=1, policy=("static-peak", "queue-length")
    ).statement
    assert plan.busy_gpu_h_per_month == pytest.approx(720 * 1.0)  # 0.5 and on average 0.5 busy
    assert plan.trace.hours == 24
    assert any("ledger has no requests" in words for words in plan.assumptions)
    with pytest.raises(InputError, match="no data matches"):
        gpuledger.plan.autoscale(lake=lake.root, namespace=("other",), price=1.0)


def test_hours_that_the_ledger_lacks_are_a_gap(hour, books):
    lake = books(*(hour(k) for k in (*range(10), *range(12, 24))))
    with pytest.raises(InputError, match="2 hours without samples") as gap:
        gpuledger.plan.autoscale(lake=lake.root, price=1.0)
    assert "gaps=skip" in gap.value.hint
    held = gpuledger.plan.autoscale(lake=lake.root, price=1.0, gaps="hold", seeds=1, policy=("static-peak",)).statement
    cut = gpuledger.plan.autoscale(lake=lake.root, price=1.0, gaps="skip", seeds=1, policy=("static-peak",)).statement
    assert (held.trace.hours, cut.trace.hours) == (24, 22)


def test_months_that_rest_on_minutes_say_so(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("timestamp,rps\n0,1\n600,1\n")
    asked = {"service_s": 1.0, "policy": ("static-peak",), "seeds": 1}
    plan = gpuledger.plan.autoscale(trace=path, **asked).statement
    assert any("rest on 0.2 h of demand, repeated" in note for note in plan.trace.notes)


def test_a_plan_of_days_has_no_such_note(plan):
    assert plan.trace.notes == ()
    assert plan.unmet is None
    assert any("the audit's savings" in words for words in plan.assumptions)
