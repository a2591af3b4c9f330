from __future__ import annotations

import datetime as dt
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.prices.offers import Offer
from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.plan.market import ANY_REGION, market_options
from gpuledger.units import Unknown


def offer(usd: str | None, **given: object) -> Offer:
    fields = {"cloud": "a", "instance": "i", "accelerator": "L4", "gpu": "l4", "gpus": Decimal(4), "region": "r",
              "zone": "z1", "purchase": "on_demand", "dated": "2026-08-22", "source": "a list",
              "usd_per_h": Unknown("no host price") if usd is None else Decimal(usd)}  # fmt: skip
    return Offer(**(fields | given))  # type: ignore[arg-type]


def test_p5_in_us_east_1_costs_what_the_list_says_for_eight() -> None:
    listed = market_options(clouds=["aws"], regions=["us-east-1"], purchase="on-demand")
    (found,) = (o for o in listed if o.instance == "p5.48xlarge")
    assert (found.instance, found.gpus, found.usd_per_instance_h) == ("p5.48xlarge", 8, Decimal("55.04"))
    assert (found.usd_per_gpu_h, found.price_scope, found.as_of) == (Decimal("6.88"), "instance", dt.date(2026, 8, 22))
    assert found.gpu.key == "h100-sxm5-80gb"
    assert found.availability is not None
    assert found.availability.spot_zones <= found.availability.zones


def test_zones_of_a_region_are_one_option_at_the_cheapest() -> None:
    (found,) = market_options(listed=[offer("8"), offer("4", zone="z2")])
    assert (found.usd_per_instance_h, found.usd_per_gpu_h, found.high_usd_per_gpu_h) == (4, 1, 2)
    assert found.zones == ("z1", "z2")


def test_spot_figures_say_how_much_is_listed_and_what_is_not_known() -> None:
    found = market_options(listed=[offer("8"), offer("2", purchase="spot"), offer("8", zone="z2")])
    assert [o.purchase for o in found] == ["spot", "on-demand"]
    seen = found[0].availability
    assert seen is not None
    assert (seen.zones, seen.spot_zones, seen.spot_saving_ratio) == (2, 1, 0.75)
    assert isinstance(seen.reclaim_ratio, Unknown)


def test_an_unknown_price_is_an_option_with_a_reason_and_comes_last() -> None:
    found = market_options(listed=[offer(None, region="q"), offer("4000")])
    assert isinstance(found[1].usd_per_gpu_h, Unknown)
    assert found[1].usd_per_gpu_h.why == "no host price"


def test_bids_fractions_and_unknown_gpus_are_no_options() -> None:
    listed = [
        offer("1", apart="a bid"),
        offer("1", gpus=Decimal("0.5"), apart="a fraction of a GPU"),
        offer("1", gpu=Unknown("not in the catalog")),
    ]
    assert market_options(listed=listed) == ()


def test_your_rate_takes_the_place_of_the_listed_price() -> None:
    mine = Rate(
        cloud="a", instance="i", gpu="l4", count=4, region="", purchase="on_demand", usd_per_h="0.50",
        price_scope="gpu", as_of="2026-10-01", note="negotiated",
    ).offer  # fmt: skip
    found = market_options(listed=[offer("8"), offer("2", purchase="spot")], own=[mine])
    assert [(o.purchase, o.yours) for o in found] == [("on-demand", True), ("spot", False)] or [
        (o.purchase, o.yours) for o in found
    ] == [("spot", False), ("on-demand", True)]
    own = next(o for o in found if o.yours)
    assert (own.usd_per_gpu_h, own.usd_per_instance_h, own.region) == (Decimal("0.50"), 2, ANY_REGION)
    assert market_options(listed=[offer("8")], own=[mine], regions=["r"])[0].yours


@given(st.lists(st.tuples(st.integers(1, 9999), st.integers(1, 8), st.sampled_from("rst")), min_size=1, max_size=12))
def test_cheapest_first_and_both_prices_agree(made: list[tuple[int, int, str]]) -> None:
    listed = [
        offer(f"{cents / 100}", gpus=Decimal(n), region=region, instance=f"i{i}")
        for i, (cents, n, region) in enumerate(made)
    ]
    found = market_options(listed=listed)
    per_gpu = [o.usd_per_gpu_h for o in found]
    assert per_gpu == sorted(per_gpu)  # type: ignore[type-var]
    for o in found:
        assert abs(o.usd_per_gpu_h * o.gpus - o.usd_per_instance_h) < Decimal("1e-20")  # type: ignore[operator]
