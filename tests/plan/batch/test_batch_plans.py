"""Is a batch plan what a person with a pencil would get, and as cheap as trying everything?"""

from __future__ import annotations

import random
import sys
from decimal import Decimal

import pytest

from gpuledger.errors import InputError, MissingExtra, UnknownName
from gpuledger.plan.batching.build import plan_batch
from gpuledger.plan.batching.price_windows import PriceWindow
from gpuledger.plan.batching.statement import Proof
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN

START_MS = 1_794_787_200_000
HOUR = {"start_ms": START_MS, "step_ms": MS_PER_HOUR}
NIGHT = PriceWindow(Decimal(1), 20 * 60, 6 * 60)


def hours(at_ms: int) -> float:
    return (at_ms - START_MS) / MS_PER_HOUR


def test_a_job_waits_for_the_night_where_its_deadline_allows_it(job, pool):
    made = plan_batch([job("a", 4, 3, 8, 48), job("b", 4, 3, 8, 12)], [pool(windows=(NIGHT,))], **HOUR)
    by_job = {p.job: p for p in made.placements}
    assert (hours(by_job["a"].start_ms), by_job["a"].usd) == (20, Decimal(12))  # 4 GPUs x 3 h x $1
    assert (hours(by_job["b"].start_ms), by_job["b"].usd) == (8, Decimal(24))  # 4 GPUs x 3 h x $2
    assert made.chosen.usd == Decimal(36)
    assert made.proof is Proof.OPTIMAL
    assert made.runners_up[0].usd == Decimal(48)  # FIFO runs both by day
    assert made.headline == (
        "2 jobs for $36.00, all 2 deadlines met. FIFO would cost $48.00: the plan saves $12.00 (25 %)."
    )


def test_jobs_without_deadlines_have_none_met(job, pool):
    made = plan_batch([job("a", 1, 1, due=3, due_given=False), job("b", 1, 1, due=3)], [pool()], **HOUR)
    assert made.placements[0].deadline_ms is None
    assert "all 2 deadlines met" in made.headline
    made = plan_batch([job("a", 1, 1, due=3, due_given=False)], [pool()], **HOUR)
    assert made.headline == "1 job for $2.00, none waits too long. FIFO would cost the same."


def test_the_last_step_is_billed_as_far_as_it_is_used(job, pool):
    made = plan_batch([job("a", 1, 1.25, 0, 24)], [pool()], **HOUR)
    assert made.chosen.usd == Decimal("2.5")
    assert hours(made.placements[0].end_ms) == 1.25


def test_a_preemptible_job_pauses_over_expensive_hours_and_pays_for_its_restart(job, pool):
    noon = PriceWindow(Decimal(10), 2 * 60, 4 * 60)
    jobs = [job("a", 1, 4, 0, 7, preemptible=True)]
    made = plan_batch(jobs, [pool(usd="1", windows=(noon,))], **HOUR, restart_ms=30 * MS_PER_MIN)
    one = made.placements[0]
    assert [(hours(p.start_ms), hours(p.end_ms)) for p in one.pieces] == [(0, 2), (4, 6.5)]
    assert one.usd == Decimal("4.5")
    whole = plan_batch([job("a", 1, 4, 0, 7)], [pool(usd="1", windows=(noon,))], **HOUR)
    assert whole.chosen.usd == Decimal(13)  # 3 to 7: one hour at $10


def test_a_reserved_pool_is_paid_used_or_not_and_filled_first(job, pool):
    pools = [pool("cloud"), pool("own", 4, "1", "reserved")]
    made = plan_batch([job("a", 4, 2, 0, 10), job("b", 4, 2, 0, 10)], pools, **HOUR)
    assert {p.pool for p in made.placements} == {"own"}
    assert made.chosen.usd == Decimal(40)  # 4 GPUs x 10 h x $1
    assert any(r.what == "pool cloud" for r in made.refused)


def test_spot_is_for_preemptible_jobs_and_takes_longer(job, pool):
    pools = [pool(), pool("spot", 8, "1", "spot", overhead_pct=50.0)]
    made = plan_batch([job("a", 1, 2, preemptible=True), job("b", 1, 2)], pools, **HOUR)
    assert {p.job: (p.pool, p.usd) for p in made.placements} == {
        "a": ("spot", Decimal(3)), "b": ("cloud", Decimal(4)),
    }  # fmt: skip


def test_a_faster_pool_is_worth_a_higher_price(job, pool):
    made = plan_batch([job("a", 1, 4)], [pool(), pool("quick", usd="3", speed=2.0)], **HOUR)
    assert (made.placements[0].pool, made.chosen.usd) == ("quick", Decimal(6))


def test_deadlines_that_cannot_all_be_met_are_refused_with_the_jobs_named(job, pool):
    jobs = [job("a", 8, 4, 0, 6), job("b", 8, 4, 0, 6)]
    with pytest.raises(InputError, match=r"1 job of 2 would be late.*b \(2.0 h late\)|a \(2.0 h late\)"):
        plan_batch(jobs, [pool()], **HOUR)
    made = plan_batch(jobs, [pool()], **HOUR, allow_late=True)
    assert (made.chosen.missed, made.chosen.late_h) == (1, 2.0)
    assert made.proof is Proof.NONE


def test_a_heavier_job_is_late_last(job, pool):
    jobs = [job("a", 8, 4, 0, 6, weight=5.0), job("b", 8, 4, 0, 6)]
    made = plan_batch(jobs, [pool()], **HOUR, allow_late=True)
    assert {p.job for p in made.placements if p.late_h} == {"b"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": 16}, "takes 16 GPUs, and the largest pool it may use, cloud, has 8"),
        ({"hours": 30}, "runs 30.00 h on its fastest pool"),
        ({"types": ("h100-sxm5-80gb",)}, "no pool has h100-sxm5-80gb"),
    ],
)
def test_a_job_no_pool_can_run_is_refused_with_the_reason(job, pool, changes, words):
    asked = {"name": "big", "gpus": 1, "hours": 1, **changes}
    with pytest.raises(InputError, match=words):
        plan_batch([job(**asked)], [pool()], **HOUR)


def test_an_unknown_type_is_refused_with_the_nearest(job, pool):
    with pytest.raises(UnknownName) as caught:
        plan_batch([job("a", 1, 1, types=("mi300y",))], [pool(gpu="mi300x")], **HOUR)
    assert "mi300x" in caught.value.hint


def test_without_the_solver_the_next_step_is_named(job, pool, monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtra, match=r"gpuledger\[plan\]"):
        plan_batch([job("a", 1, 1)], [pool()], **HOUR)


def test_it_is_as_cheap_as_trying_everything():
    from batch_cases import planned
    from batch_oracle import cheapest_usd, random_case

    rng = random.Random(11)
    for _ in range(60):
        case = random_case(rng)
        best = cheapest_usd(case)
        if best is None:
            with pytest.raises(InputError):
                planned(case)
            continue
        made = planned(case)
        assert float(made.chosen.usd) == pytest.approx(best, rel=1e-9)
        assert float(made.bound_usd) <= best + 1e-6


def test_window_by_window_it_stays_near_the_best(monkeypatch):
    from batch_cases import planned
    from batch_oracle import cheapest_usd, random_case

    from gpuledger.plan.batching import search

    monkeypatch.setattr(search, "AT_ONCE", 0)
    rng = random.Random(12)
    for _ in range(25):
        case = random_case(rng)
        best = cheapest_usd(case)
        if best is not None:
            made = planned(case)
            assert best - 1e-6 <= float(made.chosen.usd) <= best * 1.02 + 1e-6
            assert float(made.bound_usd) <= best + 1e-6
