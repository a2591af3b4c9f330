from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.prices.offers import Offer, load_offers
from gpuledger.catalog.prices.rows import Wanted
from gpuledger.catalog.prices.spread import Spread, compare_prices, spot_cuts, spot_saving
from gpuledger.units import Unknown

TODAY = dt.date(2026, 11, 15)


def offer(cloud: str, usd: str, purchase: str = "on_demand", zone: str = "z", **given: object) -> Offer:
    fields = {"cloud": cloud, "instance": "i", "accelerator": "L4", "gpu": "l4", "gpus": Decimal(1), "region": "r",
              "zone": zone, "purchase": purchase, "dated": "2026-11-01", "usd_per_h": Decimal(usd)}  # fmt: skip
    return Offer(**(fields | given))  # type: ignore[arg-type]


def test_clouds_and_spread_by_pencil() -> None:
    listed = [offer("a", "1"), offer("a", "2", zone="y"), offer("b", "4"), offer("b", "1", "spot")]
    (one,) = compare_prices(Wanted(), TODAY, listed=listed).gpus
    assert [(c.cloud, c.on_demand_usd) for c in one.clouds] == [("a", 1), ("b", 4)]
    assert isinstance(one.on_demand, Spread)
    # Each cloud weighs one half: a quarter lies at $1, half at $2 or below, so the median is midway to $4.
    assert (one.on_demand.min_usd, one.on_demand.median_usd, one.on_demand.max_usd) == (1, 3, 4)
    assert not isinstance(one.saving, Unknown)
    assert (one.saving.p50_pct, one.saving.zones, one.saving.clouds) == (75, 1, 1)


def test_spot_is_compared_in_the_same_zone_only() -> None:
    listed = [offer("a", "4", zone="x"), offer("a", "1", "spot", zone="y")]
    assert spot_cuts(listed) == {}
    assert isinstance(spot_saving(listed), Unknown)


def test_spot_above_on_demand_counts_against_spot() -> None:
    saving = spot_saving([offer("a", "4"), offer("a", "5", "spot")])
    assert not isinstance(saving, Unknown)
    assert (saving.p50_pct, saving.above_on_demand) == (-25, 1)


def test_the_claim_for_spot_stands_beside_what_the_lists_show() -> None:
    found = compare_prices(Wanted(cloud="aws"), TODAY).saving
    assert not isinstance(found, Unknown)
    assert (found.claim_low_pct, found.claim_high_pct) == (60, 70)
    assert found.p10_pct < found.claim_low_pct < found.claim_high_pct < found.p90_pct
    assert found.within_claim_pct < 50
    assert found.above_on_demand > 0


def test_every_offer_is_used_or_left_out_with_a_reason() -> None:
    found = compare_prices(Wanted(), TODAY)
    used = sum(s.offers for one in found.gpus for s in (one.on_demand, one.spot) if isinstance(s, Spread))
    left = sum(n for _, n in found.left_out)
    not_gpus = sum(isinstance(o.gpu, Unknown) and o.gpu.why.startswith("not a GPU") for o in load_offers())
    assert used + left + not_gpus == len(load_offers())
    assert all(why for why, _ in found.left_out)


def test_vast_and_runpod_sell_no_spot_and_p5e_no_on_demand() -> None:
    for cloud in ("vast", "runpod"):
        for one in compare_prices(Wanted(cloud=cloud), TODAY).gpus:
            assert isinstance(one.spot, Unknown)
    (p5e,) = compare_prices(Wanted(instance="p5e.48xlarge"), TODAY).gpus
    assert isinstance(p5e.on_demand, Unknown)
    assert isinstance(p5e.spot, Spread)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5000), st.integers(1, 5000)), min_size=1, max_size=20))
def test_figures_lie_in_order(made: list[tuple[str, int, int]]) -> None:
    listed = [
        offer(cloud, f"{price / 100}", purchase, zone=f"z{n}")
        for n, (cloud, *both) in enumerate(made)
        for price, purchase in zip(both, ("on_demand", "spot"), strict=True)
    ]
    (one,) = compare_prices(Wanted(), TODAY, listed=listed).gpus
    for spread in (one.on_demand, one.spot):
        assert isinstance(spread, Spread)
        assert spread.min_usd <= spread.p10_usd <= spread.median_usd <= spread.p90_usd <= spread.max_usd
    assert not isinstance(one.saving, Unknown)
    assert one.saving.min_pct <= one.saving.p10_pct <= one.saving.p50_pct <= one.saving.p90_pct <= one.saving.max_pct
    assert one.saving.zones == len(made)


def test_a_claim_of_exactly_70_percent_is_within_it() -> None:
    saving = spot_saving([offer("a", "10"), offer("a", "3", "spot")])
    assert not isinstance(saving, Unknown)
    assert saving.within_claim_pct == pytest.approx(100)
