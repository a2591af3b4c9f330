"""Does a plan choose the cheapest way that is sure enough, and say why it refuses the others?"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from decimal import Decimal

import pytest

import gpuledger
from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.history import Pool, PriceHistory
from gpuledger.errors import InputError
from gpuledger.plan.spot.build import Asked, plan_spot
from gpuledger.plan.spot.judging import judged
from gpuledger.units import Unknown

DAY = 86_400
FIRST = 1_700_000_000 // DAY * DAY
TODAY = dt.date(2024, 1, 1)
ASKED = Asked(
    gpu_hours=((get_gpu("a10g"), 10.0),), gpus=1, checkpoint_h=1 / 60, restart_h=0.1, deadline_h=20.0,
    deadline_given=True, budget_usd=None, confidence_pct=95.0, regions=(), zones=(), reclaims_per_day=1.0,
    at_s=FIRST + 45 * DAY, draws=20, seed=0, backtest=False,
)  # fmt: skip


def planned(history, **changes):
    return plan_spot(replace(ASKED, **changes), history, TODAY)


def test_spot_is_chosen_with_its_range_and_runners_up(history):
    plan = planned(history)
    assert plan.chosen.way in {"zone", "region", "regions"}
    assert plan.chosen.cost.low_usd <= plan.chosen.cost.middle_usd < plan.on_demand_usd == Decimal("10.10")
    assert plan.runners_up[0].cost.middle_usd >= plan.chosen.cost.middle_usd
    assert plan.chosen.on_time_pct == 100
    assert plan.prices_dated == dt.date(2023, 12, 29)
    assert str(plan.prices_dated) in plan.headline
    assert plan.intervals.exact_h == pytest.approx(plan.intervals.young_h, rel=0.05)


def test_the_pencil_case_without_reclaims(history):
    plan = planned(history, reclaims_per_day=1e-9, zones=("use1-az2",))
    # 0.35 $/h for 0.1 h to start and 10 h of work, without a checkpoint.
    assert float(plan.chosen.cost.middle_usd) == pytest.approx(0.35 * 10.1, abs=0.02)
    assert plan.chosen.finish_h.middle == pytest.approx(10.1, abs=0.05)


def test_the_same_seed_gives_the_same_plan(history):
    assert planned(history) == planned(history)


def test_a_tight_deadline_is_kept_whatever_the_rate(history):
    for rate in (0.1, 5.0, 100.0):
        plan = planned(history, reclaims_per_day=rate, deadline_h=11.0)
        assert {o.on_time_pct for o in plan.options if o.way != "spot only"} == {100.0}
        assert plan.chosen.on_time_pct == 100


def test_spot_without_fallback_is_refused_where_it_is_often_late(history):
    plan = planned(history, reclaims_per_day=12.0, deadline_h=11.5)
    (late,) = [r for r in plan.refused if "without fallback" in r.what]
    assert "on time in" in late.why


def test_a_deadline_that_on_demand_cannot_keep_is_refused(history):
    with pytest.raises(InputError, match=r"needs 10.1 h, and the deadline is in 9.0 h"):
        planned(history, deadline_h=9.0)


def test_a_gpu_that_is_too_slow_is_refused_while_another_one_does(history):
    plan = planned(history, gpu_hours=((get_gpu("a10g"), 10.0), (get_gpu("a10g"), 30.0)))
    assert any("needs 30.1 h" in r.why for r in plan.refused)


def test_a_budget_below_everything_names_what_it_would_take(history):
    with pytest.raises(InputError, match=r"budget_usd=1\.00") as error:
        planned(history, budget_usd=Decimal(1))
    assert "raise the budget to $" in error.value.hint


def test_the_budget_that_is_named_is_accepted_and_a_cent_less_is_not(history):
    hard = {"reclaims_per_day": 12.0, "deadline_h": 13.0}
    with pytest.raises(InputError) as error:
        planned(history, budget_usd=Decimal(1), **hard)
    named = Decimal(re.search(r"raise the budget to \$([\d.]+)", error.value.hint)[1])
    assert planned(history, budget_usd=named, **hard).chosen.in_budget_pct > 95
    with pytest.raises(InputError, match="nothing keeps the deadline within"):
        planned(history, budget_usd=named - Decimal("0.01"), **hard)


def test_a_refused_budget_names_one_that_is_kept(history):
    plan = planned(history, budget_usd=Decimal(7))
    for way in plan.options:
        again = planned(history, budget_usd=max(way.safe_budget_usd, Decimal(7)))
        assert all(r.what != way.name for r in again.refused)


def test_a_budget_refuses_what_costs_more(history):
    plan = planned(history, budget_usd=Decimal(7))
    assert any("on-demand" in r.what and "within $7.00" in r.why for r in plan.refused)
    assert plan.chosen.cost.high_usd <= 7


def test_a_long_job_without_checkpoints_is_refused_and_shows_why(history):
    plan = planned(history, checkpoint_h=None, reclaims_per_day=12.0, deadline_h=60.0)
    assert plan.chosen.way == "on-demand"
    assert "start the job over" in plan.headline
    # (e^(0.5 x 10.1) - 1) / 0.5 = 310 hours.
    assert "310 h on average" in plan.refused[0].why
    assert isinstance(plan.intervals, Unknown)


def test_a_rate_of_the_user_is_not_called_a_share_of_a_month(history):
    plan = planned(history, checkpoint_h=None, reclaims_per_day=12.0, deadline_h=60.0)
    assert plan.refused[0].what == "spot at the reclaim rate given"


def test_spot_that_was_not_rated_is_not_called_dearer(history):
    changes = {
        Pool("a2-highgpu-8g", "us-central1", "us-central1-a"): history.changes(history.pools[0]),
    }
    other = PriceHistory(changes, history.observed_s, "a test")
    asked = {"gpu_hours": ((get_gpu("a100-sxm4-40gb"), 5.0),)}
    plan = planned(other, reclaims_per_day=None, **asked)
    assert plan.chosen.way == "on-demand"
    assert "Spot was not rated" in plan.headline
    assert "--reclaims-per-day" in plan.headline
    assert planned(other, **asked).chosen.way == "zone"


def test_of_ways_that_cost_the_same_the_earlier_one_is_taken(history):
    found = planned(history).chosen
    slow = replace(found, where="slow", finish_h=replace(found.finish_h, middle=19.0))
    fast = replace(found, where="fast", cost=replace(found.cost, middle_usd=found.cost.middle_usd + Decimal("0.02")))
    dear = replace(found, where="dear", cost=replace(found.cost, middle_usd=2 * found.cost.middle_usd))
    good, _ = judged([slow, fast, dear], 95.0, None, 20)
    assert [w.where for w in good] == ["fast", "slow", "dear"]


def test_a_share_that_seems_enough_says_what_it_shows(history):
    found = planned(history).chosen
    near, late = (replace(found, where=f"{pct} %", on_time_pct=pct) for pct in (96.0, 80.0))
    _, (first, second) = judged([found, near, late], 95.0, None, 100)
    assert first.why == "on time in 96 % of 100 simulated runs, which shows 93 % or more; 95 % are asked for"
    assert "more simulated runs" in first.instead
    assert second.why == "on time in 80 % of 100 simulated runs, 95 % are asked for"


def test_a_short_history_and_one_length_for_two_gpus_are_said(history):
    assert planned(history).notes == ()
    short = planned(history, at_s=FIRST, one_length=True, gpu_hours=((get_gpu("a10g"), 10.0), (get_gpu("a10g"), 10.0)))
    assert "no more than a day" in short.notes[0]
    assert "equally fast" in short.notes[1]


def test_a_short_job_without_checkpoints_may_use_spot(history):
    plan = planned(history, checkpoint_h=None, reclaims_per_day=0.2, deadline_h=60.0)
    assert plan.chosen.way == "zone"
    assert plan.chosen.on_time_pct == 100


def test_a_job_without_checkpoints_cannot_be_tested_on_the_past(history):
    with pytest.raises(InputError, match="cannot be tested"):
        planned(history, checkpoint_h=None, reclaims_per_day=0.2, deadline_h=60.0, backtest=True)


def test_the_past_is_tested_where_asked(history):
    back = planned(history, backtest=True).backtest
    assert back.starts > 10
    assert {r.rule for r in back.rules} >= {"planned", "on-demand", "cheapest now", "single zone"}


def test_a_job_of_very_many_gpus_is_planned_too(history):
    plan = planned(history, gpus=5000)
    assert plan.chosen.on_time_pct == 100


def test_the_python_face_answers_again_and_again():
    for _ in range(2):
        answer = gpuledger.plan.spot(gpu="t4", hours=5.0, deadline="10h", region="us-east-1", draws=5)
        assert answer.to_dict()["statement"] == "spot"
    assert "options" in answer.tables


def test_hours_in_a_mapping_are_not_dropped():
    with pytest.raises(InputError, match="gpu is"):
        gpuledger.plan.spot(gpu={"t4": 5}, hours=8.0)
