from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog import prices
from gpuledger.catalog.prices import age_days, find_offers, instance_price, market_price, offers
from gpuledger.catalog.prices.offers import Offer, accelerators, gpu_meant, load_offers
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown, day_start_ms


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return list(offers._rows(offers.facts().offers))


def test_the_shipped_facts_are_whole(rows: list[dict[str, str]]) -> None:
    """Every row with a price is an offer, every spelling is in the alias file, and the alias file has no others."""
    assert {r["accelerator"] for r in rows} == set(accelerators())
    kept = {(o.cloud, o.accelerator, o.region, o.zone) for o in load_offers()}
    priced = [r for r in rows if float(r["on_demand_usd_h"] or 0)]
    assert priced
    assert {(r["cloud"], r["accelerator"], r["region"], r["zone"]) for r in priced} <= kept
    assert {"aws", "azure", "gcp", "lambda", "runpod", "vast"} <= {r["cloud"] for r in rows}


def test_every_spelling_is_a_gpu_or_says_why_it_is_none() -> None:
    for name, meaning in accelerators().items():
        assert meaning if isinstance(meaning, str) else meaning.why, name


def test_every_rule_names_offers_that_exist(rows: list[dict[str, str]]) -> None:
    seen = {(r["accelerator"], r["cloud"], r["instance_type"]) for r in rows}
    for rule in offers._aliases().rules:
        for cloud in rule.clouds:
            found = {i for a, c, i in seen if (a, c) == (rule.accelerator, cloud)}
            assert found, rule
            assert set(rule.instances) <= found, rule


def test_no_price_is_zero_and_no_offer_is_there_twice() -> None:
    keys = Counter(
        (o.cloud, o.instance, o.accelerator, o.gpus, o.region, o.zone, o.purchase, o.gpu_mem_mib) for o in load_offers()
    )
    assert max(keys.values()) == 1
    known = [o.usd_per_h for o in load_offers() if not isinstance(o.usd_per_h, Unknown)]
    assert min(known) > 0
    assert all(o.gpus > 0 for o in load_offers())


def test_dates_are_days_up_to_the_day_of_the_catalog() -> None:
    dates = {dt.date.fromisoformat(o.dated) for o in load_offers()}
    assert min(dates) == dt.date(2025, 9, 11)
    assert max(dates) == dt.date(2026, 8, 22)


def test_a_spot_price_of_zero_or_equal_to_on_demand_is_no_spot_offer() -> None:
    clouds = {o.cloud for o in load_offers() if o.purchase == "spot"}
    assert not clouds & {"vast", "runpod", "mithril"}
    assert {"aws", "gcp", "azure"} <= clouds


def test_spot_above_on_demand_is_kept_and_flagged() -> None:
    flagged = [o for o in load_offers() if "spot above on-demand" in o.flags]
    assert flagged
    assert all(o.purchase == "spot" for o in flagged)
    for offer in flagged[:5]:
        twin = find_offers(instance=offer.instance, region=offer.region, purchase="on_demand")
        assert any(o.zone == offer.zone and o.usd_per_h < offer.usd_per_h for o in twin)  # type: ignore[operator]


def test_p5e_is_sold_as_spot_only() -> None:
    assert find_offers(instance="p5e.48xlarge", purchase="on_demand") == []
    assert find_offers(instance="p5e.48xlarge", purchase="spot")
    found = instance_price("p5e.48xlarge")
    assert isinstance(found, Unknown)
    assert "no on-demand price" in found.why


def test_a_gcp_accelerator_costs_its_host_too() -> None:
    # a2-highgpu-8g in us-central1: 23.47126 for the accelerators, 5.91582 for the host.
    found = find_offers(instance="a2-highgpu-8g", region="us-central1", purchase="on_demand")
    assert {o.usd_per_h for o in found} == {Decimal("29.38708")}
    assert {o.gpu for o in found} == {"a100-sxm4-40gb"}
    host = offers._host_prices()["a2-highgpu-8g", found[0].zone]["on_demand"]
    assert host == Decimal("5.91582")


@pytest.mark.parametrize("name", ["T4", "P4", "P100", "V100"])
def test_gcp_accelerators_on_unlisted_hosts_have_no_whole_price(name: str) -> None:
    found = [o for o in find_offers(gpu=name, cloud="gcp") if o.accelerator == name] or [
        o for o in load_offers() if o.cloud == "gcp" and o.accelerator == name
    ]
    assert found
    assert all(isinstance(o.usd_per_h, Unknown) and "host" in o.usd_per_h.why for o in found)


def test_a_host_listed_at_zero_is_not_free() -> None:
    found = find_offers(gpu="b200-sxm", cloud="gcp")
    assert found
    assert all(isinstance(o.usd_per_h, Unknown) for o in found)


def test_the_price_of_an_instance_is_never_taken_for_that_of_a_gpu() -> None:
    offer = find_offers(instance="p5.48xlarge", region="us-east-1", purchase="on_demand")[0]
    assert (offer.usd_per_h, offer.gpus, offer.usd_per_gpu_h) == (Decimal("55.04"), 8, Decimal("6.88"))
    price = instance_price("p5.48xlarge", "us-east-1")
    assert not isinstance(price, Unknown)
    assert (price.usd_per_gpu_h, price.low_usd, price.high_usd) == (Decimal("6.88"),) * 3


def test_a_wrong_count_is_mended_and_said() -> None:
    found = find_offers(instance="Standard_ND96isr_H100_v5")
    assert {o.gpus for o in found} == {Decimal(8)}
    assert all("eight" in o.flags[0] for o in found)


@pytest.mark.parametrize(("vcpus", "share"), [(4, "0.125"), (8, "0.25"), (16, "0.5"), (32, "1")])
def test_a_share_of_a_gpu_is_no_whole_one(vcpus: int, share: str) -> None:
    """NVv4: $0.2330 an hour for an eighth of an MI25 is $1.864 for all of it, which is what NV32as_v4 costs."""
    found = find_offers(instance=f"Standard_NV{vcpus}as_v4", region="eastus", purchase="on_demand")
    assert [o.gpus for o in found] == [Decimal(share)]
    assert [o.usd_per_gpu_h for o in found] == [Decimal("1.864")]
    assert [o.apart for o in found] == ["" if share == "1" else "a fraction of a GPU"]


def test_bid_floors_and_fractions_stay_out_of_market_figures() -> None:
    apart = {o.cloud for o in load_offers() if o.apart and o.gpus >= 1}
    assert apart == {"mithril"}
    l4 = market_price("l4")
    assert not isinstance(l4, Unknown)
    fractions = [o for o in load_offers() if o.gpu == "l4" and o.gpus < 1]
    assert fractions
    assert all(o.apart for o in fractions)


@pytest.mark.parametrize(
    ("cloud", "instance", "accelerator", "memory", "gpu"),
    [
        ("aws", "p4d.24xlarge", "A100", 40960, "a100-sxm4-40gb"),
        ("lambda", "gpu_1x_a100", "A100", 40960, "a100-pcie-40gb"),
        ("vast", "1x-A100_SXM4-32-65536", "A100", 81920, "a100-sxm4-80gb"),
        ("azure", "Standard_NC40ads_H100_v5", "H100", None, "h100-nvl-94gb"),
        ("nebius", "gpu-rtx6000_1gpu-24vcpu-218gb", "RTX6000", 98304, "rtx-pro-6000-server"),
        ("lambda", "gpu_1x_rtx6000", "RTX6000", 24576, "quadro-rtx-6000"),
    ],
)
def test_the_narrowest_rule_says_which_gpu_is_meant(
    cloud: str, instance: str, accelerator: str, memory: int | None, gpu: str
) -> None:
    assert gpu_meant(accelerator, cloud, instance, memory) == gpu


@pytest.mark.parametrize(
    ("cloud", "accelerator"), [("hyperbolic", "H100"), ("lambda", "GH200"), ("seeweb", "A100"), ("aws", "Trainium")]
)
def test_an_offer_that_does_not_say_its_gpu_is_unknown(cloud: str, accelerator: str) -> None:
    assert isinstance(gpu_meant(accelerator, cloud, "any", 24576), Unknown)


def test_offers_are_found_by_any_of_their_names_cheapest_first() -> None:
    found = find_offers(gpu="NVIDIA H100 80GB HBM3", cloud="aws", purchase="on_demand")
    assert {o.instance for o in found} == {"p5.48xlarge", "p5.4xlarge"}
    per_gpu = [o.usd_per_gpu_h for o in found]
    assert per_gpu == sorted(per_gpu)  # type: ignore[type-var]
    assert find_offers(gpu="rtx4090") == find_offers(gpu="RTX4090") != []


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ({"instance": "p5.48xlrge"}, "p5.48xlarge"),
        ({"region": "us-esat-1"}, "us-east-1"),
        ({"cloud": "amazonaws"}, "aws"),
        ({"gpu": "h10"}, ""),
    ],
)
def test_a_name_nobody_offers_is_an_error_that_helps(asked: dict[str, str], nearest: str) -> None:
    with pytest.raises(UnknownName) as caught:
        find_offers(**asked)
    assert nearest in caught.value.hint


def test_an_unheard_of_purchase_option_is_refused() -> None:
    with pytest.raises(InputError, match="reserved"):
        find_offers(purchase="reserved")


def _offer(cloud: str, usd: str, gpus: int = 1, apart: str = "") -> Offer:
    return Offer(
        cloud=cloud, instance="i", accelerator="X", gpu="x", gpus=Decimal(gpus), region="r", zone="z",
        purchase="on_demand", usd_per_h=Decimal(usd), dated="2026-01-01", apart=apart,
    )  # fmt: skip


def test_each_cloud_counts_the_same_however_much_it_lists() -> None:
    # Three offers of one cloud at $1 weigh as much as one of another at $3: half the weight lies at or below $1.
    found = prices.price_over("x", "on_demand", [*(_offer("a", "1") for _ in range(3)), _offer("b", "3")])
    assert not isinstance(found, Unknown)
    assert (found.usd_per_gpu_h, found.low_usd, found.high_usd) == (Decimal(2), Decimal(1), Decimal(3))
    assert (found.offers, found.clouds) == (4, ("a", "b"))


def test_unknown_where_nothing_usable_is_offered() -> None:
    assert isinstance(market_price("h20-96gb"), Unknown)
    found = prices.price_over("x", "on_demand", [_offer("a", "1", apart="a bid, not a price")])
    assert isinstance(found, Unknown)
    assert "a bid, not a price" in found.why


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5000), st.integers(1, 8)), min_size=1, max_size=30))
def test_a_market_price_lies_between_its_offers(made: list[tuple[str, int, int]]) -> None:
    listed = [_offer(cloud, f"{cents / 100}", gpus) for cloud, cents, gpus in made]
    found = prices.price_over("x", "on_demand", listed)
    assert not isinstance(found, Unknown)
    per_gpu = [o.usd_per_h / o.gpus for o in listed]  # type: ignore[operator]
    assert min(per_gpu) <= found.low_usd <= found.usd_per_gpu_h <= found.high_usd <= max(per_gpu)
    assert found == prices.price_over("x", "on_demand", listed[::-1])


@pytest.mark.parametrize(
    ("gpu", "low", "high"), [("h100-sxm5-80gb", 3, 5), ("a100-sxm4-80gb", 1.5, 3), ("a100-pcie-80gb", 1, 3)]
)
def test_medians_lie_near_the_published_price_bands(gpu: str, low: float, high: float) -> None:
    found = market_price(gpu)
    assert not isinstance(found, Unknown)
    assert low <= found.usd_per_gpu_h <= high


def test_a_price_says_how_old_it_is() -> None:
    assert age_days("2026-08-22", day_start_ms("2026-08-25")) == 3
    found = market_price("a10g")
    assert not isinstance(found, Unknown)
    assert "2026-08-22" in found.words
    assert "354 offers of 1 cloud" in found.words
