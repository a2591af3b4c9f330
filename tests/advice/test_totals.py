from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import pytest
from case_table import CASES
from casebook import case
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.advice.findings import Finding, find, find_all
from gpuledger.advice.limits import load_limits
from gpuledger.advice.recommend import recommend
from gpuledger.advice.rule import RULES
from gpuledger.advice.statement import AuditSavings, MonthlyUsd
from gpuledger.advice.totals import NEXT_TO_MOVES, Scale, combine_cases, total, with_quarter
from gpuledger.cost.projections import PaidBoard, months_of, project
from gpuledger.cost.statement import Times
from gpuledger.report.documents.audit_rows import savings_rows, worth
from gpuledger.units import MS_PER_DAY, Unknown, day_start_ms

LIMITS = load_limits()
EVERY = list(CASES.values())
FOUND = find_all(EVERY, LIMITS)
PAID = Decimal(1000 * len({c.name for c in EVERY}))
NEAR = Decimal("1e-9")


def unique(findings: list[Finding]) -> list[Finding]:
    """One case a name: the table has some of the same name."""
    first = {f.case.name: f.case for f in reversed(findings)}
    return [f for f in findings if first[f.case.name] is f.case]


def summed(findings: list[Finding], paid: Decimal | Unknown = PAID) -> AuditSavings:
    return total(combine_cases(findings), scale_of(findings, paid))


def scale_of(findings: Iterable[Finding], paid: Decimal | Unknown, paid_ms: int = 10**9) -> Scale:
    """Of a window of a week that all GPUs were seen in."""
    return Scale(paid, paid_ms, {f.case.key: Fraction(30, 7) for f in findings})


some = st.lists(st.sampled_from(range(len(FOUND))), unique=True).map(lambda picked: unique([FOUND[i] for i in picked]))


@settings(max_examples=60, deadline=None)
@given(some)
def test_never_above_the_cap_nor_the_bill(findings):
    s = summed(findings)
    assert 0 <= s.combined_pct <= s.cap_pct <= 100
    assert s.combined_pct <= s.with_rate_pct <= 100
    assert s.combined.low_pct <= s.combined.middle_pct <= s.combined.high_pct
    # Unrated dollars count at the high end alone.
    unrated = sum((c.weights["unrated"] for c in {f.case.name: f.case for f in findings}.values()), Decimal(0))
    assert s.combined.high_pct <= s.cap_pct + 100 * unrated / PAID + NEAR
    assert s.with_rate.high_pct <= 100
    assert s.combined_pct <= s.naive_pct + NEAR
    left = (1 - s.combined_pct / 100) * (1 - s.rate_pct / 100)
    assert abs(s.with_rate_pct - 100 * (1 - left)) < NEAR


@settings(max_examples=60, deadline=None)
@given(some, st.data())
def test_leaving_one_out_never_raises_the_saving(findings, data):
    if not findings:
        return
    out = data.draw(st.sampled_from(range(len(findings))))
    less, more = summed([f for i, f in enumerate(findings) if i != out]), summed(findings)
    assert less.combined_pct <= more.combined_pct + NEAR
    assert less.with_rate_pct <= more.with_rate_pct + NEAR
    assert less.cap_pct <= more.cap_pct + NEAR


@settings(max_examples=30, deadline=None)
@given(some, st.randoms())
def test_the_order_does_not_matter(findings, random):
    mixed = list(findings)
    random.shuffle(mixed)
    assert summed(mixed) == summed(findings)


def test_both_ways_to_combine_are_shown_where_they_differ():
    """20, 25 and 10 % on a case of 80 % waste: 46 % as one bucket, 43.9 % by bucket."""
    one = case("starved", money={"productive": 0.2, "stalled": 0.8})
    levers = [_lever(one, n, "throughput", f) for n, f in (("dali", "0.2"), ("prefetch", "0.25"), ("amp", "0.1"))]
    made = summed(levers, Decimal(1000))
    assert made.one_bucket_pct == 46
    assert round(made.combined_pct, 1) == Decimal("43.9")
    assert "46.0 %, not 43.9 %" in made.words[0]
    rows = savings_rows(made)
    assert [r["name"] for r in rows][:2] == ["Naive sum", "Compounded as one bucket"]
    alone = summed(levers[:1], Decimal(1000))
    assert alone.one_bucket_pct == alone.combined_pct == 20
    assert not any("one bucket" in w for w in alone.words)
    assert "Compounded as one bucket" not in [r["name"] for r in savings_rows(alone)]


def test_it_says_that_a_migration_plan_draws_on_the_same_dollars():
    one = case("starved", money={"productive": 0.6, "underused": 0.4})
    assert NEXT_TO_MOVES in summed([_lever(one, "dali", "throughput", "0.4")], Decimal(1000)).words
    assert "must not be added" in NEXT_TO_MOVES
    assert summed([], Decimal(1000)).words == ()


def test_what_could_be_saved_next_quarter_is_the_month_times_its_days():
    """$1,000 in the window, 30 / 7 windows per month, 40 % saved: $1,714.29 per month, 91 of 30 days in 2026-Q2."""
    one = case("starved", money={"productive": 0.6, "underused": 0.4})
    made = summed([_lever(one, "dali", "throughput", "0.4")], Decimal(1000))
    week = [PaidBoard("GPU-a", "node-1/0", Decimal(1000), 7 * MS_PER_DAY, 0, listed=False)]
    months = months_of(7 * MS_PER_DAY, week)
    rate = project(7 * MS_PER_DAY, day_start_ms("2026-02-01"), week, months)
    found = with_quarter(made, rate)
    assert made.combined_month.middle_usd == Decimal("1714.29")
    assert (found.combined_quarter.name, found.combined_quarter.days) == ("2026-Q2", 91)
    assert found.combined_quarter.middle_usd == round(Decimal("1714.29") * 91 / 30, 2)
    assert found.combined_quarter.middle_usd / rate.quarter.usd == pytest.approx(Decimal("0.4"), rel=Decimal("1e-5"))
    assert found.combined_quarter.low_usd <= found.combined_quarter.middle_usd <= found.combined_quarter.high_usd
    rows = {r["name"]: r["quarter_usd"] for r in savings_rows(found)}
    assert rows["Saved together"] == found.combined_quarter.middle_usd
    assert with_quarter(made, Unknown("no price")).combined_quarter.why == "what is spent per hour is unknown"


def test_sixty_percent_spot_and_a_forty_percent_fix_are_seventy_six():
    one = case("starved", money={"productive": 0.6, "underused": 0.4})
    made = summed([_lever(one, "dali", "throughput", "0.4"), _lever(one, "spot", "rate", "0.6")], Decimal(1000))
    assert (made.naive_pct, made.combined_pct, made.cap_pct, made.with_rate_pct) == (100, 40, 40, 76)
    assert made.combined_month == MonthlyUsd(*[round(Decimal(400) * 30 / 7, 2)] * 3)
    assert any("compounds" in w for w in made.words)


def _lever(one, name: str, kind: str, fraction: str) -> Finding:
    from gpuledger.advice.rule import Range, Reason
    from gpuledger.cost.savings import Lever

    part = Decimal(fraction)
    rule = dict(RULES)[name]
    span = Range(part, part, part)
    return Finding(rule, one, Reason("why"), rule.gain, span, Lever(name, kind, part, part, part))  # type: ignore[arg-type]


def test_two_cases_add_up_and_each_keeps_its_own_cap():
    starved, idle = CASES["starved"], CASES["idle, memory held"]
    both = summed(list(find_all([starved, idle], LIMITS)), Decimal(2000))
    alone = [summed(list(find_all([c], LIMITS)), Decimal(1000)) for c in (starved, idle)]
    assert both.combined_pct == pytest.approx(sum(a.combined_pct for a in alone) / 2)
    assert both.cap_pct == pytest.approx(sum(a.cap_pct for a in alone) / 2)


def test_only_one_way_to_share_a_gpu_is_counted():
    idle = CASES["idle, memory held"]
    found = [f for f in find_all([idle], LIMITS) if f.rule.exclusive]
    assert {f.rule.id for f in found} >= {"mig", "mps", "time-slicing", "consolidation"}
    together = combine_cases(found)[idle.key]
    assert sum(together.chosen(f.rule.id) for f in found) == 1
    best = max(float(f.alone.middle) for f in found)
    assert float(summed(found, Decimal(1000)).combined_pct) == pytest.approx(100 * best)


def test_the_words_name_overlap_addition_and_what_is_left_out():
    words = " | ".join(summed(unique(list(FOUND))).words)
    assert "overlap in" in words
    assert "different dollars" in words
    assert "compounds" in words
    assert "is left out" in words


def test_without_a_price_hours_stand_in_and_no_dollar_is_given():
    idle = CASES["idle, memory held"]
    from dataclasses import replace

    bare = replace(idle, dollars=Unknown("no price"))
    found = find_all([bare], LIMITS)
    made = total(combine_cases(found), scale_of(found, Unknown("no price"), bare.times.paid_ms))
    priced = summed(list(find_all([idle], LIMITS)), Decimal(1000))
    assert made.of == "the paid GPU-hours"
    assert float(made.combined_pct) == pytest.approx(float(priced.combined_pct), abs=1e-6)
    assert isinstance(made.combined_month, Unknown)


def test_a_case_without_a_price_adds_nothing_to_a_priced_fleet():
    from dataclasses import replace

    idle, starved = CASES["idle, memory held"], CASES["starved"]
    bare = replace(idle, dollars=Unknown("no price"))
    one = summed(list(find_all([starved], LIMITS)), Decimal(1000))
    both = summed(list(find_all([starved, bare], LIMITS)), Decimal(1000))
    assert both.combined_pct == one.combined_pct


def test_nothing_paid_saves_nothing():
    empty = case("starved", times=Times(), dollars=Unknown("nothing was paid"))
    assert find(dict(RULES)["num-workers"], empty, LIMITS) is None
    assert summed([], Decimal(0)).combined_pct == 0


def test_a_saving_without_a_price_is_unknown_next_to_priced_ones():
    priced, unpriced = case("starved"), case("starved", namespace="amd", workload="x", dollars=Unknown("no price"))
    findings = find_all([unpriced], LIMITS)
    scale = scale_of(findings, PAID)
    made = {r.id: r for r in recommend(findings, combine_cases(findings), scale)}
    assert any(r.lever for r in made.values())
    for r in made.values():
        if r.lever:
            assert (r.saving, r.share) == (Unknown("no price"), 0)
            assert worth(r, PAID) == "dollars unknown: no price"
    both = [*find_all([priced], LIMITS), *findings]
    for r in recommend(both, combine_cases(both), scale_of(both, PAID)):
        assert not r.lever or not isinstance(r.saving, Unknown)


def test_without_any_price_a_saving_is_of_the_paid_time():
    none = Unknown("no price")
    findings = find_all([case("starved", dollars=none)], LIMITS)
    made = recommend(findings, combine_cases(findings), scale_of(findings, none))
    (first, *_) = [r for r in made if r.lever]
    assert worth(first, none).endswith("of the paid GPU-hours")
