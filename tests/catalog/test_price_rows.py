from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.offers import Offer, facts, load_offers
from gpuledger.catalog.prices.own_rates import Rate
from gpuledger.catalog.prices.rows import PriceRow, Wanted, price_rows
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown

TODAY = dt.date(2026, 11, 15)


def offer(cloud: str = "a", usd: str | None = "8", **given: object) -> Offer:
    fields = {"cloud": cloud, "instance": "i", "accelerator": "H100", "gpu": "h100-sxm5-80gb", "gpus": Decimal(8),
              "region": "r1", "zone": "z1", "purchase": "on_demand", "dated": "2026-11-01",
              "usd_per_h": Unknown("no host") if usd is None else Decimal(usd)}  # fmt: skip
    return Offer(**(fields | given))  # type: ignore[arg-type]


def rows(*listed: Offer, wanted: Wanted | None = None, **given: object) -> tuple[PriceRow, ...]:
    return price_rows(wanted or Wanted(), TODAY, listed=listed, **given).rows  # type: ignore[arg-type]


def test_the_published_price_of_p5_is_for_eight_gpus() -> None:
    found = price_rows(Wanted(instance="p5.48xlarge", region="us-east-1", purchase="on_demand"), TODAY)
    (row,) = found.rows
    assert (row.usd_per_instance_h, row.gpus, row.usd_per_gpu_h) == (Decimal("55.04"), 8, Decimal("6.88"))
    assert (row.price_scope, row.as_of, row.age_days, row.stale) == ("instance", dt.date(2026, 8, 22), 85, False)


def test_figures_per_tflops_and_per_gb_are_the_price_over_the_facts() -> None:
    # An H100 at $1 an hour: 80 GB class memory and a dense bf16 peak of 989.5 TFLOPS.
    gpu = get_gpu("h100-sxm")
    (row,) = rows(offer())
    assert row.usd_per_gpu_h == 1
    assert float(row.usd_per_tflops_h) == pytest.approx(1 / gpu.peak("bf16"))  # type: ignore[arg-type, operator]
    assert float(row.usd_per_gb_h) == pytest.approx(1e9 / gpu.memory_bytes.value)  # type: ignore[arg-type]


def test_a_row_is_the_cheapest_place_of_an_instance_or_one_a_place() -> None:
    listed = (offer(usd="9"), offer(usd="8", zone="z2"), offer(usd="10", region="r2", zone="z3"))
    (row,) = rows(*listed)
    assert (row.usd_per_instance_h, row.zone, row.places, row.high_usd_per_gpu_h) == (8, "z2", 3, Decimal("1.25"))
    assert [r.region for r in rows(*listed, by="region")] == ["r1", "r2"]
    assert [r.zone for r in rows(*listed, by="zone")] == ["z2", "z1", "z3"]


def test_unknown_prices_come_last_with_their_reason_and_bids_behind_prices() -> None:
    listed = (offer("c", None), offer("b", "0.08", apart="a bid, not a price"), offer("a", "80"))
    found = rows(*listed)
    assert [r.cloud for r in found] == ["a", "b", "c"]
    assert isinstance(found[-1].usd_per_gpu_h, Unknown)
    assert found[-1].usd_per_gpu_h.why == "no host"


@pytest.mark.parametrize(
    ("dated", "purchase", "stale"),
    [("2026-05-20", "on_demand", False), ("2026-05-18", "on_demand", True), ("2026-10-16", "spot", False),
     ("2026-10-15", "spot", True)],
)  # fmt: skip
def test_a_price_is_stale_from_the_age_the_facts_name(dated: str, purchase: str, stale: bool) -> None:
    assert facts().stale_after_days == {"on_demand": 180, "spot": 30}
    (row,) = rows(offer(dated=dated, purchase=purchase))
    assert row.stale is stale


def test_filters_hold_for_every_row() -> None:
    wanted = Wanted(gpu="a100-sxm4-80gb", gpus=8, purchase="spot", usd_per_gpu_h_max=Decimal(3), memory_gb_min=80)
    found = price_rows(wanted, TODAY, by="zone").rows
    assert found
    for row in found:
        assert (row.gpu, row.gpus, row.purchase) == ("a100-sxm4-80gb", 8, "spot")
        assert row.usd_per_gpu_h <= 3  # type: ignore[operator]


def test_what_is_no_gpu_is_left_out_and_counted_unless_asked_for() -> None:
    everything = price_rows(Wanted(), TODAY)
    assert {"Inferentia", "Trainium", "GAUDI2", "Qualcomm AI100"} <= dict(everything.not_gpus).keys()
    assert not any(row.gpu_name in dict(everything.not_gpus) for row in everything.rows)
    assert price_rows(Wanted(instance="trn1.2xlarge"), TODAY).rows


def test_every_cloud_is_there_and_every_row_has_both_prices_or_a_reason() -> None:
    found = price_rows(Wanted(), TODAY).rows
    assert {row.cloud for row in found} == {o.cloud for o in load_offers()}
    for row in found:
        if isinstance(row.usd_per_gpu_h, Unknown):
            assert "host" in row.usd_per_gpu_h.why
            assert row.price_scope == "accelerator"
        else:
            assert abs(row.usd_per_gpu_h * row.gpus - row.usd_per_instance_h) < Decimal("1e-20")  # type: ignore[operator]


def test_google_prices_are_accelerator_and_host() -> None:
    scopes = {(o.cloud == "gcp", o.price_scope) for o in load_offers()}
    assert scopes == {(True, "accelerator"), (False, "instance")}


def test_a_spot_price_above_on_demand_keeps_its_flag() -> None:
    flagged = [r for r in price_rows(Wanted(), TODAY, by="zone").rows if "spot above on-demand" in r.flags]
    listed = [o for o in load_offers() if "spot above on-demand" in o.flags and isinstance(o.gpu, str)]
    assert len(flagged) == len(listed) > 0


def test_your_rate_takes_the_place_of_the_listed_one() -> None:
    mine = Rate(
        cloud="aws", instance="p5.48xlarge", gpu="h100-sxm5-80gb", count=8, region="us-east-1", purchase="on_demand",
        usd_per_h="20", price_scope="instance", as_of="2026-10-01", note="negotiated",
    ).offer  # fmt: skip
    wanted = Wanted(instance="p5.48xlarge", purchase="on_demand")
    found = price_rows(wanted, TODAY, own=[mine], by="region")
    assert (found.rows[0].yours, found.rows[0].usd_per_gpu_h, found.rows[0].source) == (
        True,
        Decimal("2.5"),
        "yours: negotiated",
    )
    assert [r.yours for r in found.rows if r.region == "us-east-1"] == [True]
    assert found.replaced_by_yours == sum(
        o.instance == "p5.48xlarge" and o.region == "us-east-1" and o.purchase == "on_demand" for o in load_offers()
    )
    assert price_rows(wanted, TODAY, by="region").replaced_by_yours == 0


@pytest.mark.parametrize(
    ("wanted", "near"),
    [({"region": "us-esat-1"}, "us-east-1"), ({"cloud": "asw"}, "aws"), ({"gpu": "h100z"}, "H100"),
     ({"instance": "p5.48xlrge"}, "p5.48xlarge"), ({"zone": "use1-az44"}, "use1-az4")],
)  # fmt: skip
def test_a_name_nobody_offers_is_answered_with_the_nearest(wanted: dict[str, str], near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        price_rows(Wanted(**wanted), TODAY)  # type: ignore[arg-type]
    assert near in caught.value.hint


@pytest.mark.parametrize("wanted", [{"gpus": 0}, {"usd_per_gpu_h_max": Decimal(0)}])
def test_what_cannot_be_wanted_is_refused(wanted: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Wanted(**wanted)  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(1, 9000), st.sampled_from([1, 2, 4, 8])), min_size=1, max_size=12),
    st.sampled_from(["gpu", "instance", "tflops", "gb"]),
)
def test_rows_are_in_order_of_what_they_are_sorted_by(made: list[tuple[int, int]], order: str) -> None:
    listed = [offer("c", f"{c / 100}", instance=f"i{n}", gpus=Decimal(g)) for n, (c, g) in enumerate(made)]
    figures = [getattr(row, f"usd_per_{order}_h") for row in rows(*listed, order=order)]
    assert figures == sorted(figures)
    assert len(figures) == len(made)
