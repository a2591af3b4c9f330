"""Does the planner keep its laws, against brute force on small random catalogs?

The oracle below is written from the description, not from the code: it looks at every candidate, decides by itself
which may be refused, and weighs the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpuledger.catalog.files import Fact
from gpuledger.catalog.gpus import Gpu, load_gpus
from gpuledger.encode import encode
from gpuledger.plan.guide.build import Terms, plan_migration
from gpuledger.plan.guide.placed_job import Candidate, Job, Misfit, Placement, Rate
from gpuledger.plan.guide.placing import place
from gpuledger.plan.guide.schema import Priority, Weights, WorkloadType, dense_model, migrate_facts
from gpuledger.report.documents.migrate_rows import measures_table
from gpuledger.units import Unknown

WEIGHTS = {
    "cost": (0.6, 0.2, 0.2),
    "performance": (0.2, 0.6, 0.2),
    "balanced": (0.33, 0.33, 0.34),
    "reliability": (0.2, 0.3, 0.5),
}
BASES = ("t4", "l4", "l40s", "a100-sxm4-80gb", "h100-sxm5-80gb", "mi300x")
GB = 1_000_000_000


def gpu_with(base: str, memory_gb: float) -> Gpu:
    """A GPU like one of the catalog, with other memory, under a key of its own so that nothing else is known of it."""
    shipped = load_gpus()[base]
    return msgspec.structs.replace(
        shipped, key=f"{base}-{memory_gb:g}", memory_bytes=Fact(memory_gb * GB, "test", "2026-11")
    )


@dataclass(frozen=True)
class Toy:
    """A world of few figures: bytes the job needs in all, speed by the bandwidth of a GPU, half of which is left over a
    slower network between instances."""

    need_gb: float

    def __call__(self, _job: Job, gpu: Gpu, gpus: int, per_instance: int) -> Placement | Misfit:
        need, room = int(self.need_gb * GB / gpus), int(gpu.memory_bytes.value)
        if need > room:
            return Misfit("CANNOT FIT MODEL", "too large", ("more GPUs",), need, room)
        rate = gpu.memory_bandwidth_bytes_per_s.value * gpus / 1e9
        slow = rate / 2 if gpus > per_instance else None
        span = Rate(rate * 0.8, rate, rate * 1.2)
        return Placement("toy", 1, gpus, 1, {"all": need}, need, room, span, "token", slow)


@st.composite
def jobs(draw) -> Job:
    kind = draw(st.sampled_from(list(WorkloadType)))
    return Job(
        workload=kind,
        model=dense_model("toy", 1_000_000_000),
        size="",
        precision="fp16",
        monthly_h=Decimal(draw(st.integers(10, 700))),
        use_case=draw(st.sampled_from(["production", "batch_inference"])),
        priority=draw(st.sampled_from(list(WEIGHTS))),
        spot_asked=draw(st.booleans()),
        spot_suitable=draw(st.booleans()),
        busy_ratio=draw(st.sampled_from([None, None, 0.0, 0.1, 0.5])),
    )


@st.composite
def candidates(draw, least=3) -> list[Candidate]:
    found = []
    for i in range(draw(st.integers(least, 7))):
        gpu = gpu_with(draw(st.sampled_from(BASES)), draw(st.sampled_from([24, 48, 80, 141])))
        gpus, price = draw(st.sampled_from([1, 2, 4, 8])), Decimal(draw(st.integers(100, 900))) / 100
        known: Decimal | Unknown = price if draw(st.integers(0, 29)) else Unknown("not listed")
        share = known if isinstance(known, Unknown) else known * gpus
        found.append(
            Candidate(
                id=f"c{i}", instance=f"i{i}", family="P", gpu=gpu, gpu_name=gpu.key, gpus=gpus,
                gpus_per_instance=draw(st.sampled_from([1, 4, 8])),
                purchase=draw(st.sampled_from(["on-demand"] * 4 + ["spot"])),
                usd_per_gpu_h=known, high_usd_per_gpu_h=known, usd_per_h=share, whole_usd_per_h=share,
                price_scope="gpu", price_date="2026-08-22", price_source="test",
                zones=draw(st.none() | st.integers(0, 20)), stale=draw(st.booleans()),
            )
        )  # fmt: skip
    return found


def terms(job: Job) -> Terms:
    weights = Weights(*WEIGHTS[job.priority])
    return Terms(Priority(job.priority, weights), (), 1.5, Unknown("no class"), "test prices", illustrative=False)


def planned(job: Job, given_: list[Candidate], toy: Toy):
    return plan_migration(job, given_[0], given_[1:], terms(job), toy)


def same_work_usd(job: Job, given_: list[Candidate], toy: Toy, serves: bool) -> dict[str, Decimal]:
    """Of servers whose month costs less only because they do less: the dollars for as much work as now."""
    now, found = given_[0], {}
    here = toy(job, now.gpu, now.gpus, now.gpus_per_instance)
    if not serves or job.busy_ratio is not None or isinstance(here, Misfit) or isinstance(now.usd_per_h, Unknown):
        return found
    for c in given_:
        there = toy(job, c.gpu, c.gpus, c.gpus_per_instance)
        if isinstance(there, Misfit) or isinstance(c.usd_per_h, Unknown) or c.usd_per_h > now.usd_per_h:
            continue
        equal = c.usd_per_h / Decimal(repr(there.rate.middle / here.rate.middle))
        if equal > now.usd_per_h * Decimal("1.005"):
            found[c.id] = equal * job.monthly_h
    return found


def oracle(job: Job, given_: list[Candidate], toy: Toy) -> tuple[dict[str, float], set[str], dict[str, Decimal]]:
    """Scores of what may be chosen, ids of what must be refused, and the dollars of a month, by brute force."""
    facts, now = migrate_facts(), given_[0]
    here = toy(job, now.gpu, now.gpus, now.gpus_per_instance)
    serves = job.workload is WorkloadType.INFERENCE and job.use_case != "batch_inference"
    refused, dollars, rates, rest = set(), {}, {}, {}
    for c in given_:
        there = toy(job, c.gpu, c.gpus, c.gpus_per_instance)
        spot = c.purchase == "spot" and not (job.spot_suitable and job.spot_asked)
        if isinstance(c.usd_per_h, Unknown) or spot or isinstance(there, Misfit):
            refused.add(c.id)
            continue
        speed = None if isinstance(here, Misfit) else there.rate.middle / here.rate.middle
        hours = job.monthly_h if serves or speed is None else job.monthly_h / Decimal(repr(speed))
        busy = facts.limits.assumed_busy_ratio if job.busy_ratio is None else job.busy_ratio
        if (hours > 730 and hours > job.monthly_h) or (serves and speed is not None and speed < busy):
            refused.add(c.id)
            continue
        # Scores go by the speed that is left over a slower network.
        sure = Decimal("0.5") if c.gpus > c.gpus_per_instance else 1
        dollars[c.id], rates[c.id] = c.usd_per_h * hours, there.rate.middle * float(sure)
        rest[c.id] = (c, there, speed, serves)
    if not dollars:
        return {}, refused, {}
    # A server is paid by the month, other work by what is done.
    price = dict(dollars) if serves else {i: rest[i][0].usd_per_h / Decimal(repr(rates[i])) for i in dollars}
    if now.id in dollars:
        price |= {i: usd for i, usd in same_work_usd(job, given_, toy, serves).items() if i in dollars}
    least, most = min(price.values()), max(rates.values())
    if not isinstance(here, Misfit):  # twice the present is enough for a server, a day for a month's work
        soon = max(1, job.monthly_h / 24)
        most = min(most, here.rate.middle * (facts.limits.enough_speed_ratio if serves else float(soon)))
    links = {i: c.gpu.link.bytes_per_s.value / -(-c.gpus // c.gpus_per_instance) for i, (c, *_) in rest.items()}
    scores = {}
    for id_, (c, there, speed, serving) in rest.items():
        performance = 0.6 * min(1, rates[id_] / most)
        performance += 0.2 * min(1, (1 - there.per_gpu_bytes / there.capacity_bytes) / 0.5)
        performance += 0.2 * (1 if c.gpus == 1 else links[id_] / max(links.values()))
        reliability = 0.3 * (1 - risk_points(job, c, there, speed, serving) / 8)
        reliability += 0.3 * (1 - hours_of_work(now, c) / 160)
        # Where no price list says how widely it is offered, the other two measures share the whole.
        reliability = reliability / 0.6 if c.zones is None else reliability + 0.4 * min(1, c.zones / 12)
        w = WEIGHTS[job.priority]
        scores[id_] = w[0] * float(least / price[id_]) + w[1] * performance + w[2] * max(0, reliability)
    return scores, refused, dollars


def risk_points(job, c, there, speed, serves) -> int:
    points = 2 if c.purchase == "spot" else 0
    points += (1 - there.per_gpu_bytes / there.capacity_bytes) < 0.1
    points += 2 * (c.gpus > c.gpus_per_instance)  # one failing stops all, and the network decides the speed
    points += c.stale
    points += c.zones is not None and c.zones < 6
    return points + (serves and speed is not None and speed < 1 and job.busy_ratio is None)


def hours_of_work(now: Candidate, then: Candidate) -> float:
    hours = 0
    same = now.gpu.key == then.gpu.key
    hours += 4 if same and now.gpus != then.gpus else 0
    hours += 4 if same and now.instance != then.instance else 0
    hours += 0 if same else 12
    hours += 12 if now.gpu.architecture != then.gpu.architecture else 0
    hours += 80 if now.gpu.vendor != then.gpu.vendor else 0
    nodes = [-(-c.gpus // c.gpus_per_instance) for c in (now, then)]
    hours += 40 if nodes[0] == 1 and nodes[1] > 1 else 0
    return hours + (16 if now.purchase != "spot" and then.purchase == "spot" else 0)


QUICK = settings(max_examples=60, deadline=None)


@settings(max_examples=200, deadline=None)
@given(jobs(), candidates(), st.sampled_from([10, 20, 40, 90, 600]))
def test_brute_force_finds_nothing_better_and_nothing_refused_for_no_reason(job, given_, need):
    toy = Toy(need)
    plan = planned(job, given_, toy)
    scores, refused, dollars = oracle(job, given_, toy)
    assert {r.candidate.id for r in plan.refused} == refused
    assert all(r.why and r.remedies for r in plan.refused)
    assert {o.candidate.id: o.monthly_usd for o in plan.options} == dollars
    for option in plan.options:
        assert option.score == pytest.approx(scores[option.candidate.id], abs=1e-9)
    if not scores:
        assert plan.verdict == "nothing fits"
        return
    assert plan.options[0].score == pytest.approx(max(scores.values()), abs=1e-9)
    serves = job.workload is WorkloadType.INFERENCE and job.use_case != "batch_inference"
    less = same_work_usd(job, given_, toy, serves)
    assert all(isinstance(o.saving_usd, Unknown) for o in plan.options if o.candidate.id in less)
    best = next((o for o in plan.options if o.candidate.id not in less), plan.options[0])
    if plan.chosen is not best:  # the present setup, where the best gains too little to move for
        assert plan.chosen.current
        assert best.saving_pct < 10
        assert best.speed_ratio < 1.1
    assert (plan.verdict == "already well optimized") == plan.chosen.current
    assert plan.cheapest.monthly_usd == min(dollars.values())


def test_what_is_not_known_is_not_scored_and_the_plan_says_so():
    """Two equal options, one in no price list: its reliability is made of risk and effort alone, both of them 1."""
    listed, unlisted = (replace(priced("l40s", 2), id=name, zones=zones) for name, zones in (("a", 3), ("b", None)))
    plan = planned(replace(JOB, priority="balanced"), [listed, unlisted], Toy(10))
    found = {o.candidate.id: o for o in plan.options}
    assert "availability" not in found["b"].measures
    assert found["b"].not_scored == ("availability",)
    assert found["b"].reliability_score == pytest.approx(1.0)
    # 3 of 12 zones, and so few are a point of risk of eight.
    assert found["a"].reliability_score == pytest.approx(0.4 * 3 / 12 + 0.3 * 7 / 8 + 0.3)
    assert found["a"].not_scored == ()
    assert any("availability is unknown for 1 of 2 options" in words for words in plan.assumptions)
    told = encode("migration_plan", plan)
    assert {o["id"]: o["not_scored"] for o in told["options"]} == {"a": [], "b": ["availability"]}
    assert "unknown" in {c.text for row in measures_table(plan).rows for c in row}


@QUICK
@given(jobs(), candidates(), st.integers(0, 5), st.integers(1, 400), st.sampled_from([10, 40, 90]))
def test_a_price_rise_never_lowers_a_plans_cost(job, given_, which, percent, need):
    raised = [dearer(c, percent) if i == which % len(given_) else c for i, c in enumerate(given_)]
    before, after = planned(job, given_, Toy(need)), planned(job, raised, Toy(need))
    costs = {o.candidate.id: o.monthly_usd for o in before.options}
    assert {o.candidate.id for o in after.options} == set(costs), "a price alone refuses nothing"
    for option in after.options:
        assert option.monthly_usd >= costs[option.candidate.id]
    if before.cheapest is not None:
        assert after.cheapest.monthly_usd >= before.cheapest.monthly_usd
        if after.chosen.candidate.id == before.chosen.candidate.id:
            assert after.chosen.monthly_usd >= before.chosen.monthly_usd


@QUICK
@given(jobs(), candidates(), st.integers(0, 5), st.integers(1, 400), st.sampled_from([10, 40, 90]))
def test_a_price_rise_never_makes_its_own_option_the_choice(job, given_, which, percent, need):
    """Where the proposed plan gets cheaper after a rise, it is because the dearer option was left, not taken."""
    at = which % len(given_)
    raised = [dearer(c, percent) if i == at else c for i, c in enumerate(given_)]
    before, after = planned(job, given_, Toy(need)), planned(job, raised, Toy(need))
    assume(before.chosen is not None)
    if before.chosen.candidate.id != given_[at].id:
        assert after.chosen.candidate.id != given_[at].id
    else:
        assert after.chosen.candidate.id != given_[at].id or after.chosen.monthly_usd >= before.chosen.monthly_usd


def cost_alone(job: Job, given_: list[Candidate], toy: Toy):
    priority = Priority("cost alone", Weights(1.0, 0.0, 0.0))
    how = Terms(priority, (), 1.5, Unknown("no class"), "test prices", illustrative=False)
    return plan_migration(job, given_[0], given_[1:], how, toy)


@settings(max_examples=200, deadline=None)
@given(jobs(), candidates(), st.integers(1, 6), st.integers(1, 400), st.sampled_from([10, 40, 90]))
def test_where_cost_alone_counts_the_proposed_plan_never_gets_cheaper(job, given_, which, percent, need):
    """A rise of any price but the present one: with nothing to weigh cost against, the law holds for the choice.

    Its dollars are those that are scored: of work that ends, for a unit of it; over several instances, as the slower
    network leaves them.
    """
    at = 1 + which % (len(given_) - 1)
    raised = [dearer(c, percent) if i == at else c for i, c in enumerate(given_)]
    before, after = cost_alone(job, given_, Toy(need)), cost_alone(job, raised, Toy(need))
    assume(before.chosen is not None)
    assert sure_usd(job, after.chosen) >= sure_usd(job, before.chosen) * Decimal("0.999999")


def sure_usd(job: Job, option) -> Decimal:
    """A server's month, or a unit of work that ends: where the present setup cannot run, its month is not known."""
    if job.workload is WorkloadType.INFERENCE and job.use_case != "batch_inference":
        return option.monthly_usd
    spans = option.candidate.gpus > option.candidate.gpus_per_instance
    return option.candidate.usd_per_h * (2 if spans else 1) / Decimal(repr(option.placement.rate.middle))


def test_a_weighted_choice_may_leave_a_dearer_option_for_a_cheaper_one():
    """Why the law cannot hold for it: this is what weighing speed against cost means."""
    fast, slow = (priced(key, usd) for key, usd in (("h100-sxm5-80gb", 10), ("l40s", 2)))
    job = replace(JOB, priority="balanced")
    before = planned(job, [slow, fast], Toy(10))
    after = planned(job, [slow, dearer(fast, 400)], Toy(10))
    assert (before.chosen.candidate.id, after.chosen.candidate.id) == ("h100-sxm5-80gb", "l40s")
    assert after.chosen.monthly_usd < before.chosen.monthly_usd


def priced(key: str, usd: int) -> Candidate:
    gpu, price = gpu_with(key, 80), Decimal(usd)
    return Candidate(
        key, key, "P", gpu, gpu.key, 1, 8, "on-demand", price, price, price, price, "gpu", "2026-08-22", "test"
    )  # fmt: skip


@QUICK
@given(jobs(), candidates(), st.integers(1, 400), st.sampled_from([10, 40, 90]))
def test_when_all_prices_rise_alike_the_choice_stays_and_costs_more(job, given_, percent, need):
    before = planned(job, given_, Toy(need))
    after = planned(job, [dearer(c, percent) for c in given_], Toy(need))
    assume(before.chosen is not None)
    scores = sorted((o.score for o in before.options), reverse=True)
    assume(len(scores) < 2 or scores[0] - scores[1] > 1e-9)
    assert after.chosen.candidate.id == before.chosen.candidate.id
    assert after.chosen.monthly_usd > before.chosen.monthly_usd


def dearer(candidate: Candidate, percent: int) -> Candidate:
    if isinstance(candidate.usd_per_h, Unknown):
        return candidate
    factor = 1 + Decimal(percent) / 100
    return replace(
        candidate,
        usd_per_gpu_h=candidate.usd_per_gpu_h * factor,
        high_usd_per_gpu_h=candidate.high_usd_per_gpu_h * factor,
        usd_per_h=candidate.usd_per_h * factor,
        whole_usd_per_h=candidate.whole_usd_per_h * factor,
    )


REAL = st.builds(
    lambda kind, billion, precision, method: Job(
        workload=kind, model=dense_model(f"{billion}B", billion * 10**9), size="", precision=precision,
        monthly_h=Decimal(720), use_case="x", priority="cost", spot_asked=False, spot_suitable=False, method=method,
    ),
    st.sampled_from(list(WorkloadType)), st.sampled_from([1, 7, 13, 35, 70]), st.sampled_from(["fp16", "bf16", "int8"]),
    st.sampled_from(["lora", "qlora", "full"]),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(REAL, st.sampled_from(BASES), st.sampled_from([1, 2, 4, 8, 16]), st.integers(8, 200), st.integers(1, 200))
def test_more_memory_never_turns_fit_into_no_fit(job, base, gpus, memory_gb, more_gb):
    small = place(job, gpu_with(base, memory_gb), gpus, 8)
    large = place(job, gpu_with(base, memory_gb + more_gb), gpus, 8)
    if isinstance(small, Placement):
        assert isinstance(large, Placement)
        assert large.rate.middle >= small.rate.middle * (1 - 1e-12)
    elif small.kind == "CANNOT FIT MODEL":
        assert small.remedies
        assert small.per_gpu_bytes > small.capacity_bytes


def test_the_oracle_can_fail():
    """A planner that refused the best option for no reason would be found out."""
    gpu = gpu_with("l40s", 48)
    one = Candidate(
        "c0", "i0", "G", gpu, gpu.key, 1, 8, "on-demand", Decimal(2), Decimal(2), Decimal(2), Decimal(2), "gpu",
        "2026-08-22", "test",
    )  # fmt: skip
    job = replace(JOB, priority="cost")
    plan = planned(job, [one], Toy(10))
    assert plan.verdict == "already well optimized"
    assert "c0" not in oracle(job, [one], Toy(10))[1]
    assert "c0" in oracle(job, [one], Toy(100))[1]


JOB = Job(
    workload=WorkloadType.TRAINING, model=dense_model("toy", 1_000_000_000), size="", precision="fp16",
    monthly_h=Decimal(100), use_case="x", priority="cost", spot_asked=False, spot_suitable=True,
)  # fmt: skip
