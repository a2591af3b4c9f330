"""How many GPUs does a demand need, when do they run out, how is a shortfall met, and does the budget hold?"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import InputError
from gpuledger.plan.capacity.build import Context, PoolDemand, asked_of, plan
from gpuledger.plan.capacity.money import ALL, Rates, times
from gpuledger.plan.capacity.need import Asked, gpus_needed, months_ahead
from gpuledger.plan.capacity.series import DAY, WEEK, Series
from gpuledger.plan.capacity.statement import GpuRange, MonthRange
from gpuledger.plan.outcome import UsdRange
from gpuledger.units import MS_PER_HOUR, Unknown, day_start_ms

START = day_start_ms("2026-01-05")
USD = UsdRange(Decimal(1), Decimal(2), Decimal(4))


def flat(gpus: float, days: int = 14) -> Series:
    return Series("a", START, np.full(days * DAY, float(gpus)))


def fleet(held=18.0, working=9.0, productive=3.0, shares=(0.5, 0.5), now=20, **more) -> PoolDemand:
    series = {"held": flat(held), "working": flat(working), "realized": flat(productive)}
    return PoolDemand("a", "held", series, now, None, shares, 11.0, **more)


def made(*demands, weeks=13, cover=95.0, target=90.0, growth=None, budgets=None, buy=None, rates=USD, today=None):
    known = Rates({"a": rates, "b": rates, ALL: rates}, (), "2026-01-01")
    context = Context("test", known, budgets or {}, buy, today_ms=today and day_start_ms(today))
    return plan(demands, asked_of(weeks, cover, target, growth), context)


def test_the_need_by_pencil():
    """18 held at 90 %: 20 GPUs. 9 at work: 10. 3 put to use at half a GPU each: 6 / 0.9 = 6.7, so 7."""
    needs = made(fleet()).needs
    assert needs == {"held": GpuRange(20, 20, 20), "working": GpuRange(10, 10, 10), "realized": GpuRange(7, 7, 7)}


def test_unrated_time_makes_the_realized_need_a_range():
    """3 known to be put to use, 6 at most; half a GPU, or 80 % of one with unrated time: 6.7 or 8.3."""
    demand = PoolDemand("a", "held", fleet().series, 20, flat(6.0), (0.5, 0.8), 11.0)
    assert made(demand).needs["realized"] == GpuRange(7, 8, 9)


@given(st.floats(0, 1e5), st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_higher_target_never_needs_more_gpus_and_the_target_is_kept(demand, one, other):
    low, high = sorted((one, other))
    assert gpus_needed(demand, high) <= gpus_needed(demand, low)
    assert demand <= gpus_needed(demand, high) * high * (1 + 1e-6) + 1e-6
    assert gpus_needed(demand, high) - 1 <= demand / high


@settings(max_examples=5, deadline=None)
@given(st.floats(0, 60), st.floats(0, 60))
def test_more_demand_never_needs_less(one, other):
    less, more = (made(fleet(held=v)).needs["held"] for v in sorted((one, other)))
    assert less.middle <= more.middle


def test_months_are_calendar_months_and_cover_all_hours_ahead():
    found = list(months_ahead(day_start_ms("2026-01-19"), 13 * WEEK))
    assert [name for name, _, _ in found] == ["2026-01", "2026-02", "2026-03", "2026-04"]
    assert found[0][1] == 0
    assert found[-1][2] == 13 * WEEK
    assert all(a[2] == b[1] for a, b in pairwise(found))


def test_a_pool_runs_out_in_the_week_that_its_growth_passes_it():
    """18 of 20 GPUs are the target's limit; at 20 % per month 15 reach 18 after 30 days: the week that holds day 30."""
    pool = made(fleet(held=15.0), growth=20.0).pools[0]
    assert pool.runs_out.expected == "2026-02-16"  # 2026-01-19 and four weeks: days 28 to 35
    assert made(fleet(held=15.0)).pools[0].runs_out.expected is None


def test_gpus_without_work_are_used_before_any_are_rented():
    """27 held need 30: 10 short. 9 at work need 10: all 10 are there already."""
    found = made(fleet(held=27.0)).investment
    assert (found.short.middle, found.there) == (10, 10)
    assert [(o.kind, o.gpus) for o in found.options] == [("use idle", 10), ("rent", 10)]
    assert found.options[0].usd_per_month.middle_usd == 0
    assert found.options[1].usd_per_month == UsdRange(Decimal(7200), Decimal(14400), Decimal(28800))


def test_what_is_short_and_not_there_is_rented_or_bought():
    """27 held, 22.5 at work need 30 and 25: 10 short, 5 there; realized at 7 saves no more than is left."""
    found = made(fleet(held=27.0, working=22.5), buy=Decimal(36000)).investment
    kinds = {(o.kind, o.gpus): o.usd_per_month for o in found.options}
    assert kinds["use idle", 5].middle_usd == 0
    assert kinds["raise use", 5].middle_usd == 0
    assert kinds["rent", 5].middle_usd == Decimal(5 * 2 * 720)
    assert kinds["buy", 5].middle_usd == Decimal(5000)


def test_a_purchase_pays_back_against_rent_by_pencil_and_ways_are_cheapest_first():
    """5 GPUs at $36,000 are $180,000; rent is $3,600, $7,200 or $14,400 per month: 12.5, 25 or 50 months."""
    options = made(fleet(held=27.0, working=22.5), buy=Decimal(36000)).investment.options
    buy = next(o for o in options if o.kind == "buy")
    assert buy.payback_months == MonthRange(12.5, 25.0, 50.0)
    assert "power, space and people" in buy.words
    costs = [o.usd_per_month.middle_usd for o in options]
    assert costs == sorted(costs)
    assert [o.kind for o in options] == ["use idle", "raise use", "buy", "rent", "rent"]
    unpriced = made(fleet(held=27.0, working=22.5), buy=Decimal(36000), rates=Unknown("no price")).investment.options
    assert isinstance(next(o for o in unpriced if o.kind == "buy").payback_months, Unknown)


def test_months_are_listed_once_where_one_pool_is_all_gpus():
    alone = replace(fleet(), name=ALL)
    for demand, budgets in ((alone, {ALL: Decimal(1)}), (fleet(), {"a": Decimal(1)})):
        months = [m.month for m in made(demand, budgets=budgets).spending]
        assert len(months) == len(set(months))
    both = made(fleet(), budgets={ALL: Decimal(1), "a": Decimal(1)}).spending
    assert {m.name for m in both} == {ALL, "a"}


def test_an_old_history_and_missing_hours_are_noted_with_figures():
    values = np.full(14 * DAY, 18.0)
    values[100:150] = np.nan
    gap = replace(fleet(), series={**fleet().series, "held": Series("a", START, values)})
    found = made(gap, today="2026-02-18")
    assert found.age_days == 30
    assert any("2026-01-19, 30 days ago" in note for note in found.notes)
    assert any("a: 50 of 336 hours were not observed" in note for note in found.notes)
    assert "20 GPUs on 2026-01-19." in found.headline
    fresh = made(fleet(), today="2026-01-20")
    assert fresh.notes == ()
    assert "20 GPUs now." in fresh.headline


def test_one_gpu_is_not_gpus():
    demand = PoolDemand("a", "demand", {"demand": flat(0.5)}, None)
    assert made(demand).headline == "Demand up to 2026-04-20 needs 1 GPU."


def test_more_gpus_than_needed_are_a_surplus_by_the_high_end():
    found = made(fleet(held=9.0), rates=USD)
    assert (found.investment.short.middle, found.investment.surplus) == (0, 10)
    assert found.investment.surplus_usd_per_month.middle_usd == Decimal(10 * 2 * 720)
    assert "10 GPUs more than needed" in found.headline


def test_the_budget_of_a_part_of_a_month_is_that_part():
    """20 GPUs at $1 to $4: February costs 13,440 to 53,760; January has 13 of 31 days of its budget."""
    months = {m.month: m for m in made(fleet(), budgets={ALL: Decimal(31000)}).spending}
    assert months["2026-02"].need_usd == UsdRange(Decimal(13440), Decimal(26880), Decimal(53760))
    assert months["2026-02"].verdict == "uncertain"
    assert months["2026-01"].budget_usd == Decimal(13000)
    for budget, verdict in ((60000, "within"), (10000, "over")):
        found = {m.month: m.verdict for m in made(fleet(), budgets={ALL: Decimal(budget)}).spending}
        assert found["2026-02"] == verdict


def test_a_budget_without_a_pool_is_refused_and_not_dropped():
    assert [r.what for r in made(fleet(), budgets={"elsewhere": Decimal(5)}).refused] == ["budget of elsewhere"]


def test_an_unknown_price_stays_unknown():
    found = made(fleet(held=27.0), rates=Unknown("no price"))
    assert all(isinstance(m.need_usd, Unknown) for m in found.spending)
    rent = next(o for o in found.investment.options if o.kind == "rent")
    assert isinstance(rent.usd_per_month, Unknown)


def test_pools_without_enough_history_are_refused_and_the_others_planned():
    short = PoolDemand("b", "held", {k: flat(1.0, 1) for k in ("held", "working", "realized")}, 4, None, (0.5, 0.5))
    found = made(fleet(), short)
    assert [p.name for p in found.pools] == ["a"]
    assert [r.what for r in found.refused] == ["b"]
    with pytest.raises(InputError, match="24 observed hours"):
        made(short)


def test_dollars_scale_with_gpus_and_hours():
    assert times(USD, GpuRange(1, 2, 3), 0.5) == UsdRange(Decimal("0.5"), Decimal(2), Decimal(6))
    assert times(USD, 3, 2) == UsdRange(Decimal(6), Decimal(12), Decimal(24))


@pytest.mark.parametrize(
    "given", [(0, 95, 90, None), (200, 95, 90, None), (13, 40, 90, None), (13, 95, 5, None), (13, 95, 90, 400.0)]
)
def test_senseless_horizons_and_shares_are_refused(given):
    with pytest.raises(InputError):
        asked_of(*given)


def test_asked_is_in_hours_and_ratios():
    assert asked_of(2, 95, 80, 10.0) == Asked(2 * WEEK, 0.95, 0.8, 0.1)
    assert flat(1).end_ms == START + 14 * DAY * MS_PER_HOUR
