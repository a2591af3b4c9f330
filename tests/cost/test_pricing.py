from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.catalog.prices import market_price
from gpuledger.catalog.prices.own_rates import Rate, read_rates
from gpuledger.cost.inventory import Paid
from gpuledger.cost.pricing import (
    Price,
    PriceChoice,
    drop_rates,
    load_own,
    load_rates,
    own_file,
    price_for,
    store_rates,
)
from gpuledger.errors import InputError, LakeError, UnknownName
from gpuledger.units import Unknown

H100 = "NVIDIA H100 80GB HBM3"


def row(**given: object) -> Paid:
    fields = {"row": 2, "device": "GPU-a", "from_ms": None, "to_ms": None, "instance": "", "region": "",
              "purchase_option": "on_demand", "usd_per_h": None}  # fmt: skip
    return Paid(**(fields | given))  # type: ignore[arg-type]


def known(found: Price | Unknown) -> Price:
    assert not isinstance(found, Unknown)
    return found


def test_the_inventory_comes_first() -> None:
    choice = PriceChoice(Decimal(9))
    found = known(price_for(H100, choice, row(usd_per_h=Decimal("2.5"))))
    assert (found.usd_per_h, found.basis) == (Decimal("2.5"), "inventory")
    looked_up = known(price_for(H100, choice, row(instance="p5.48xlarge", region="us-east-1")))
    assert (looked_up.usd_per_h, looked_up.basis, looked_up.newest) == (Decimal("6.88"), "instance", "2026-08-22")


def test_an_inventory_row_that_cannot_be_looked_up_is_unknown_and_says_which() -> None:
    found = price_for(H100, PriceChoice(), row(instance="p5.48xlarge", region="eu-west-1"))
    assert isinstance(found, Unknown)
    assert "row 2" in found.why
    assert "eu-north-1" in found.why
    wrong = price_for(H100, PriceChoice(), row(instance="p5.48xlrge"))
    assert isinstance(wrong, Unknown)
    assert "did you mean" in wrong.why


def test_an_instance_name_of_ones_own_is_answered_in_a_line() -> None:
    found = price_for(H100, PriceChoice(), row(instance="rack-7"))
    assert found == Unknown("inventory row 2: no instance is called 'rack-7'; write usd_per_h into that row")
    close = price_for(H100, PriceChoice(), row(instance="p5.48xlarg"))
    assert isinstance(close, Unknown)
    assert "did you mean p5.48xlarge" in close.why


def test_a_spot_row_is_looked_up_at_spot_prices() -> None:
    spot = known(
        price_for(H100, PriceChoice(), row(instance="p5.48xlarge", region="us-east-1", purchase_option="spot"))
    )
    assert spot.usd_per_h < Decimal("6.88")
    assert spot.low_usd <= spot.usd_per_h <= spot.high_usd


def test_a_given_price_is_for_all_or_by_gpu() -> None:
    assert known(price_for("some new GPU", PriceChoice(Decimal(2)))).words == "as given: $2 per GPU-hour"
    by_gpu = PriceChoice({"H100-SXM5-80GB": Decimal(3)})
    assert known(price_for(H100, by_gpu)).usd_per_h == 3
    assert known(price_for("NVIDIA A10G", by_gpu)).basis == "market"


def test_an_instance_prices_the_gpu_it_has_and_no_other() -> None:
    choice = PriceChoice(instance="p5.48xlarge", region="us-east-1")
    found = known(price_for(H100, choice))
    assert (found.usd_per_h, found.basis) == (Decimal("6.88"), "instance")
    other = known(price_for("NVIDIA A10G", choice))
    assert other.basis == "market"
    assert "p5.48xlarge has h100-sxm5-80gb" in other.notes[0]


def test_else_the_market_median_with_its_range_and_date() -> None:
    found, listed = known(price_for(H100, PriceChoice())), market_price("h100-sxm5-80gb")
    assert not isinstance(listed, Unknown)
    assert (found.usd_per_h, found.low_usd, found.high_usd) == (listed.usd_per_gpu_h, listed.low_usd, listed.high_usd)
    assert "median" in found.words
    assert "2026-08-22" in found.words


@pytest.mark.parametrize(
    ("model", "why"), [("Banana 9000", "Banana 9000"), (None, "model name"), ("H20-96GB", "no on-demand")]
)
def test_there_is_no_default_price(model: str | None, why: str) -> None:
    found = price_for(model, PriceChoice())
    assert isinstance(found, Unknown)
    assert why in found.why


def test_what_makes_no_sense_is_refused_before_any_work() -> None:
    for wrong in (Decimal(0), Decimal(-1), Decimal("NaN")):
        with pytest.raises(InputError, match="not a price"):
            PriceChoice(wrong)
    with pytest.raises(UnknownName):
        PriceChoice({"Banana 9000": Decimal(1)})
    with pytest.raises(UnknownName):
        PriceChoice(instance="p5.48xlrge")
    with pytest.raises(InputError, match="needs an instance"):
        PriceChoice(region="us-east-1")


def rate(usd: str = "2.10", **given: object) -> Rate:
    fields = {"cloud": "aws", "instance": "p5.48xlarge", "gpu": "h100-sxm5-80gb", "count": 8, "region": "",
              "purchase": "on_demand", "usd_per_h": usd, "price_scope": "gpu", "as_of": "2026-10-01"}  # fmt: skip
    return Rate(**(fields | given))  # type: ignore[arg-type]


def paid(**given: object) -> Paid:
    fields = {"row": 2, "device": "GPU-a", "from_ms": None, "to_ms": None, "instance": "p5.48xlarge",
              "region": "us-east-1", "purchase_option": "on_demand", "usd_per_h": None}  # fmt: skip
    return Paid(**(fields | given))  # type: ignore[arg-type]


def test_rates_come_back_as_they_were_stored_and_can_be_dropped(tmp_path: Path) -> None:
    assert load_rates(tmp_path) == ()
    rates = (rate(), rate("1.00", purchase="spot"))
    store_rates(tmp_path, rates, "rates.csv")
    assert load_rates(tmp_path) == rates
    assert [o.usd_per_h for o in load_own(tmp_path)] == [Decimal("16.80"), Decimal("8.00")]
    assert drop_rates(tmp_path)
    assert not drop_rates(tmp_path)
    assert load_own(tmp_path) == ()


def test_a_refused_file_changes_nothing(tmp_path: Path) -> None:
    store_rates(tmp_path, [rate()], "rates.csv")
    before = own_file(tmp_path).read_bytes()
    (tmp_path / "bad.json").write_text("[{}]", encoding="utf-8")
    with pytest.raises(Exception, match="price_scope"):
        store_rates(tmp_path, read_rates(tmp_path / "bad.json", dt.date(2026, 11, 15)), "bad.json")
    assert own_file(tmp_path).read_bytes() == before
    assert sorted(p.name for p in own_file(tmp_path).parent.iterdir()) == ["yours.json"]


@pytest.mark.parametrize("content", [b"{", b'{"version": 99}', b'{"version": 1, "rates": [{"gpu": 3}]}'])
def test_a_stored_file_that_cannot_be_read_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    own_file(tmp_path).parent.mkdir()
    own_file(tmp_path).write_bytes(content)
    with pytest.raises(LakeError) as caught:
        load_rates(tmp_path)
    assert caught.value.hint


def test_your_rate_stands_before_the_list_but_after_what_was_paid_or_given() -> None:
    own = (rate().offer,)
    mine = known(price_for(H100, PriceChoice(own=own)))
    assert (mine.usd_per_h, mine.basis, mine.newest) == (Decimal("2.10"), "yours", "2026-10-01")
    assert mine.words.startswith("yours: p5.48xlarge")
    assert known(price_for(H100, PriceChoice(Decimal(9), own=own))).basis == "given"
    assert known(price_for(H100, PriceChoice(own=own), paid(usd_per_h=Decimal(3)))).basis == "inventory"
    looked_up = known(price_for(H100, PriceChoice(own=own), paid()))
    assert (looked_up.usd_per_h, looked_up.basis) == (Decimal("2.10"), "yours")
    by_instance = known(price_for(H100, PriceChoice(instance="p5.48xlarge", region="us-east-1", own=own)))
    assert by_instance.basis == "yours"


def test_a_rate_prices_its_own_gpu_region_and_purchase_only() -> None:
    own = (rate(region="us-west-2").offer,)
    assert known(price_for("NVIDIA A10G", PriceChoice(own=own))).basis == "market"
    assert known(price_for(H100, PriceChoice(own=own), paid())).usd_per_h == Decimal("6.88")
    assert known(price_for(H100, PriceChoice(own=own), paid(region="us-west-2"))).basis == "yours"
    spot = (rate(purchase="spot").offer,)
    assert known(price_for(H100, PriceChoice(own=spot))).basis == "market"
    assert known(price_for(H100, PriceChoice(own=spot), paid(purchase_option="spot"))).basis == "yours"


def test_the_rate_of_the_region_stands_before_that_of_all() -> None:
    own = (rate("2.10").offer, rate("1.90", region="us-east-1").offer)
    assert known(price_for(H100, PriceChoice(own=own), paid())).usd_per_h == Decimal("1.90")
    assert known(price_for(H100, PriceChoice(own=own), paid(region="us-west-2"))).usd_per_h == Decimal("2.10")


def test_several_rates_of_a_gpu_give_a_median_with_its_range() -> None:
    own = tuple(rate(usd, region=r).offer for usd, r in (("2", "us-east-1"), ("3", "us-west-2"), ("7", "eu-north-1")))
    found = known(price_for(H100, PriceChoice(own=own)))
    assert (found.usd_per_h, found.low_usd, found.high_usd) == (3, 2, 7)


def test_an_instance_of_your_own_may_be_named() -> None:
    own = (rate(cloud="yours", instance="rack-7").offer,)
    assert known(price_for(H100, PriceChoice(instance="rack-7", own=own))).basis == "yours"
    with pytest.raises(UnknownName):
        PriceChoice(instance="rack-8", own=own)
    other = known(price_for("NVIDIA A10G", PriceChoice(instance="rack-7", own=own)))
    assert other.basis == "market"
