"""Which laws does every batch plan keep, whatever the jobs and pools?"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.plan.batching import search
from gpuledger.plan.batching.build import plan_batch
from gpuledger.plan.batching.choices import first_free, free_starts
from gpuledger.plan.batching.jobs import Job
from gpuledger.plan.batching.pools import Pool, Terms
from gpuledger.plan.batching.price_windows import PriceWindow
from gpuledger.units import MS_PER_MIN

START_MS = 1_794_787_200_000
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def jobs(draw) -> list[Job]:
    out = []
    for i in range(draw(st.integers(1, 8))):
        work = draw(st.integers(10, 600)) * MS_PER_MIN
        first = START_MS + draw(st.integers(0, 720)) * MS_PER_MIN
        slack = draw(st.integers(0, 1440)) * MS_PER_MIN
        out.append(Job(f"j{i}", draw(st.integers(1, 8)), work, first, first + work + slack,
                       preemptible=draw(st.booleans()), weight=draw(st.sampled_from([1.0, 1.0, 2.5]))))  # fmt: skip
    return out


@st.composite
def pools(draw) -> list[Pool]:
    out = [Pool("cloud", "a", draw(st.integers(8, 16)), Decimal(3), windows=(PriceWindow(Decimal(1), 1200, 360),))]
    if draw(st.booleans()):
        out.append(Pool("own", "a", draw(st.integers(1, 8)), Decimal(1), Terms.RESERVED))
    if draw(st.booleans()):
        out.append(Pool("spot", "b", 8, Decimal("0.7"), Terms.SPOT, draw(st.sampled_from([0.5, 1.0])), 10.0))
    return out


def planned(given_jobs, given_pools, seconds=0.3):
    return plan_batch(
        given_jobs, given_pools, start_ms=START_MS, step_ms=30 * MS_PER_MIN, allow_late=True, seconds=seconds
    )


def keeps_its_promises(made, given_jobs, given_pools):
    by_id = {j.id: j for j in given_jobs}
    sizes = {p.name: p.gpus for p in given_pools}
    terms = {p.name: p.terms for p in given_pools}
    assert sorted(p.job for p in made.placements) == sorted(by_id)
    edges: dict[str, list[tuple[int, int]]] = {name: [] for name in sizes}
    for p in made.placements:
        job = by_id[p.job]
        assert p.start_ms >= job.earliest_ms
        assert (p.end_ms > job.deadline_ms) == (p.late_h > 0)
        assert len(p.pieces) == 1 or job.preemptible
        assert job.preemptible or terms[p.pool] is not Terms.SPOT
        for piece in p.pieces:
            edges[p.pool] += [(piece.start_ms, job.gpus), (piece.end_ms, -job.gpus)]
    for name, found in edges.items():
        used = 0
        for _, gpus in sorted(found):
            used += gpus
            assert used <= sizes[name]


@QUICK
@given(jobs(), pools())
def test_pools_are_never_overfilled_and_every_job_runs_once_in_its_time(given_jobs, given_pools):
    made = planned(given_jobs, given_pools)
    keeps_its_promises(made, given_jobs, given_pools)


@QUICK
@given(jobs(), pools())
def test_the_plan_is_never_worse_than_any_queue_and_never_below_its_bound(given_jobs, given_pools):
    made = planned(given_jobs, given_pools)
    alike = len({j.weight for j in given_jobs}) == 1
    for other in made.runners_up:
        if alike or not other.missed:
            assert made.chosen.missed <= other.missed
        if not other.missed:
            assert made.chosen.usd <= other.usd + Decimal("0.000001")
    if not made.chosen.missed:
        assert made.bound_usd <= made.chosen.usd
    paid = sum((p.usd for p in made.placements), Decimal(0))
    reserved = sum((p.usd for p in made.pools if p.terms == "reserved"), Decimal(0))
    assert paid + reserved == made.chosen.usd == sum((p.usd for p in made.pools), Decimal(0))


@settings(QUICK, max_examples=5)
@given(jobs(), pools())
def test_windows_keep_the_same_promises_and_give_the_same_plan_twice(given_jobs, given_pools):
    before, search.AT_ONCE = search.AT_ONCE, 0
    try:
        made = planned(given_jobs, given_pools)
        assert planned(given_jobs, given_pools) == made
    finally:
        search.AT_ONCE = before
    keeps_its_promises(made, given_jobs, given_pools)


@settings(QUICK, max_examples=6)
@given(jobs(), pools(), st.integers(1, 8))
def test_more_gpus_on_demand_never_cost_more_where_both_are_proven(given_jobs, given_pools, more):
    made = planned(given_jobs, given_pools)
    wider = [given_pools[0], *given_pools[1:], Pool("more", "a", more, Decimal(3))]
    other = planned(given_jobs, wider)
    if made.proof == other.proof == "optimal":
        assert other.chosen.usd <= made.chosen.usd + Decimal("0.000001")


@given(st.lists(st.integers(0, 4), min_size=3, max_size=400), st.integers(1, 4), st.integers(1, 3), st.data())
def test_the_first_free_start_is_the_first_of_all(free, gpus, steps, data):
    first = data.draw(st.integers(0, len(free) - steps))
    latest = data.draw(st.integers(first, len(free) - steps))
    every = free_starts(np.array(free), gpus, steps, first, latest)
    found = first_free(np.array(free), gpus, steps, first, latest)
    assert found == (first + int(np.argmax(every)) if every.any() else None)
