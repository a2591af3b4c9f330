"""Are the drawn worlds as often out of capacity as they should be, and made only of what was known?"""

from __future__ import annotations

import numpy as np
import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.history import Changes, PriceHistory
from gpuledger.catalog.prices.reclaim import facts
from gpuledger.plan.spot.backtest import Case, past_case, summed, walk
from gpuledger.plan.spot.pools import Wanted, choice
from gpuledger.plan.spot.replay import Outcome, Terms
from gpuledger.plan.spot.worlds import DrawnWorlds, capacity, drawn_rates, step_of
from gpuledger.units import Unknown

DAY = 86_400
FIRST = 1_700_000_000 // DAY * DAY
A10G = Wanted(get_gpu("a10g"), 1, reclaims_per_day=3.0)
TERMS = Terms(10.0, 1 / 60, 0.1, 20.0)


def test_capacity_is_out_as_often_as_rate_and_outage_say():
    random = np.random.default_rng(1)
    up = capacity(["a"], [0.2], 200_000, 0.05, random)
    outage = facts().outage_hours.middle
    assert up.mean() == pytest.approx(1 / (1 + 0.2 * outage), abs=0.02)


def test_zones_of_a_region_are_out_together_more_often():
    random = np.random.default_rng(2)
    up = capacity(["a", "a", "b"], [0.2, 0.2, 0.2], 200_000, 0.05, random).astype(float)
    together = np.corrcoef(up.T)
    assert together[0, 1] > 0.3
    assert abs(together[0, 2]) < 0.05


def test_a_pool_that_is_never_reclaimed_is_always_up():
    assert capacity(["a"], [0.0], 1000, 1.0, np.random.default_rng(0)).all()


def test_rates_are_drawn_from_their_range(history):
    found = choice(history, Wanted(get_gpu("a10g"), 1), FIRST + 20 * DAY).candidates
    random = np.random.default_rng(3)
    draws = np.array([drawn_rates(found, random) for _ in range(500)])
    for i, c in enumerate(found):
        assert draws[:, i].max() <= c.reclaims_per_h.high * (1 + 1e-9)
        assert np.median(draws[:, i]) == pytest.approx(c.reclaims_per_h.middle, rel=0.5)


def test_the_same_seed_draws_the_same_world(history):
    found = choice(history, A10G, FIRST + 45 * DAY)
    worlds = DrawnWorlds(history, found, FIRST + 45 * DAY, 20.0)
    one, two = (worlds.draw(np.random.default_rng(4)) for _ in range(2))
    assert (one.spot == two.spot).all()
    assert (one.up == two.up).all()
    assert worlds.step_h == step_of(20.0) == pytest.approx(1 / 6)


def _cut(history, until_s):
    """The same history as somebody saw it then."""
    pools = {}
    for pool in history.pools:
        c = history.changes(pool)
        keep = c.at_s <= until_s
        pools[pool] = Changes(c.at_s[keep], c.on_demand_usd_h[keep], c.spot_usd_h[keep])
    return PriceHistory(pools, history.observed_s[history.observed_s <= until_s], "cut")


def test_a_plan_does_not_see_the_future(history):
    at = FIRST + 28 * DAY  # two days before a price changes
    seen, cut = (DrawnWorlds(h, choice(h, A10G, at), at, 60.0) for h in (history, _cut(history, at)))
    assert seen.choice == cut.choice
    for seed in range(5):
        one, two = (w.draw(np.random.default_rng(seed)) for w in (seen, cut))
        assert (one.spot == two.spot).all()


def test_a_start_that_was_not_observed_to_its_end_is_left_out(history):
    found = list(walk(history, A10G, TERMS, [FIRST + 20 * DAY, FIRST + 50 * DAY + DAY // 2, FIRST + 120 * DAY], 1))
    assert isinstance(found[0], Case)
    assert isinstance(found[1], Unknown)
    assert isinstance(found[2], Unknown)


def test_on_the_past_the_planned_rule_keeps_every_deadline(history):
    starts = [FIRST + d * DAY for d in (*range(1, 45, 4), *range(72, 116, 4))]
    cases = [c for c in walk(history, A10G, TERMS, starts, 1) if isinstance(c, Case)]
    back = summed(cases, 0, 1)
    ours = next(r for r in back.rules if r.rule == "planned")
    assert ours.misses == 0
    assert ours.mean_usd < next(r for r in back.rules if r.rule == "on-demand").mean_usd
    assert ours.median_regret_pct >= 0
    assert ours.regret_low_pct <= ours.median_regret_pct <= ours.regret_high_pct


def test_the_same_start_and_seed_give_the_same_case(history):
    one, two = (past_case(history, A10G, TERMS, FIRST + 20 * DAY, 9) for _ in range(2))
    assert one == two


def outcome(usd, met=True):
    return Outcome(usd, 1.0, met, 0, 1, 1.0, 0.0)


def test_a_rule_that_is_cheaper_without_more_misses_is_reported():
    cases = [Case(0, "w", 1.0, {"planned": outcome(2.0), "cheap": outcome(1.5), "late": outcome(1.0, met=False)})]
    (all_of_it, window) = summed(cases, 0, 0).beaten
    assert (all_of_it.rule, window.rule, window.window) == ("cheap", "cheap", "w")
