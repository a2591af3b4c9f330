from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger.catalog.prices import market_price
from gpuledger.cost.inventory import Paid
from gpuledger.cost.pricing import Price, PriceChoice, price_for
from gpuledger.errors import InputError, UnknownName
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
