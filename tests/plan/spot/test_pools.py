"""Which zones can hold a job, and why are others refused?"""

from __future__ import annotations

import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.errors import InputError, UnknownName
from gpuledger.plan.spot.pools import NO_RATE, Wanted, choice, kinds_of

DAY = 86_400
FIRST = 1_700_000_000 // DAY * DAY


def wanted(gpus=1, **more):
    return Wanted(get_gpu("a10g"), gpus, **more)


def test_zones_come_cheapest_first_with_the_prices_of_the_day(history):
    found = choice(history, wanted(), FIRST + 10 * DAY)
    assert [(c.pool.zone, c.spot_usd_h) for c in found.candidates] == [
        ("use1-az1", 0.30), ("use1-az2", 0.35), ("usw2-az1", 0.50),
    ]  # fmt: skip
    assert found.on_demand_usd_h == 1.0
    assert not found.refused


def test_spot_above_on_demand_and_offers_that_are_gone_are_refused(history):
    found = choice(history, wanted(), FIRST + 105 * DAY)
    assert [c.pool.zone for c in found.candidates] == ["use1-az1"]
    assert {r.why.split(" on ")[0] for r in found.refused} == {
        "no spot offer", "spot is not below on-demand there",
    }  # fmt: skip


def test_several_instances_cost_and_are_reclaimed_several_times(history):
    one = choice(history, wanted(1), FIRST + 10 * DAY).candidates[0]
    four = choice(history, wanted(4), FIRST + 10 * DAY).candidates[0]
    assert four.spot_usd_h == pytest.approx(4 * one.spot_usd_h)
    assert four.reclaims_per_h.middle == pytest.approx(4 * one.reclaims_per_h.middle)


def test_a_rate_of_the_user_replaces_the_band(history):
    found = choice(history, wanted(reclaims_per_day=2.4), FIRST + 10 * DAY).candidates[0]
    assert found.reclaims_per_h.middle == pytest.approx(0.1)


def test_a_day_that_was_not_observed_is_refused(history):
    with pytest.raises(InputError, match="not observed") as error:
        choice(history, wanted(), FIRST + 60 * DAY)
    assert "without" in error.value.hint


def test_places_that_do_not_exist_suggest_others(history):
    with pytest.raises(UnknownName) as error:
        choice(history, wanted(regions=("us-eest-1",)), FIRST)
    assert "us-east-1" in error.value.hint


def test_a_gpu_without_history_names_those_with_one(history):
    with pytest.raises(InputError, match="no spot price history") as error:
        choice(history, Wanted(get_gpu("t4"), 1), FIRST)
    assert "a10g" in error.value.hint


def test_an_unknown_rate_is_refused_and_not_guessed():
    from gpuledger.catalog.prices.history import load_history

    history = load_history()
    found = choice(history, Wanted(get_gpu("b200-sxm"), 8), history.last_s)
    assert not found.candidates
    assert {r.why for r in found.refused} >= {NO_RATE}
    assert kinds_of(history)["p6-b200.48xlarge"].gpus == 8
