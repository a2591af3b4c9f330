"""Does a plan of regions cost, rank and refuse as a pencil would?"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.offers import Offer
from gpuledger.catalog.regions import get_place
from gpuledger.errors import InputError
from gpuledger.plan.regions.asked import Asked, Residency, data_bytes, hours_of, load_of, number, residency_of
from gpuledger.plan.regions.build import plan_regions
from gpuledger.plan.regions.statement import Reason
from gpuledger.units import Unknown

TODAY = dt.date(2026, 11, 16)
H100 = get_gpu("h100-sxm")


def offer(cloud, region, usd_per_h, *, zone="a", gpus=8, purchase="on_demand", dated="2026-08-22"):
    return Offer(
        cloud=cloud, instance=f"{gpus}-gpus", accelerator="H100", gpu=H100.key, gpus=Decimal(gpus), region=region,
        zone=zone, purchase=purchase, usd_per_h=usd_per_h if isinstance(usd_per_h, Unknown) else Decimal(usd_per_h),
        dated=dated,
    )  # fmt: skip


LISTED = [
    offer("aws", "us-east-1", "40", zone="a"),
    offer("aws", "us-east-1", "44", zone="b"),
    offer("aws", "eu-north-1", "42"),
    offer("aws", "eu-central-1", "50"),
    offer("gcp", "europe-west4", Unknown("host unknown")),
    offer("hyperbolic", "default", "30"),
]
ASKED = Asked(gpus=(H100,), count=8, hours=Decimal(100))


def plan(asked=ASKED, listed=LISTED):
    return plan_regions(asked, today=TODAY, listed=listed)


def by_name(made):
    return {c.name: c for c in (*made.chosen, *made.runners_up)}


def reasons(made):
    return {r.region: r.reason for r in made.refused_regions}


def test_dollars_and_carbon_by_pencil():
    data = replace(ASKED, billed_gb=Decimal(20_000), data_at=get_place("aws:us-east-1"), load=load_of(50))
    found = by_name(plan(data))
    sweden = found["aws:eu-north-1"]
    # 42 x 100 h, and 20,000 GB at 0.02 to another continent
    assert (sweden.compute_usd, sweden.moving_usd) == (4200, 400)
    assert sweden.usd.middle_usd == 4600
    assert sweden.usd.high_usd == 4200 + 20_000 * Decimal("0.085")
    # 8 x 0.7 kW x 50 % x 100 h x 1.15 = 322 kWh, x 35.82 g
    assert sweden.energy_kwh == pytest.approx(322)
    assert sweden.kg_co2e.middle == pytest.approx(322 * 35.82 / 1000)
    here = found["aws:us-east-1"]
    assert (here.moving_usd, here.usd.middle_usd, here.usd.high_usd, here.zones) == (0, 4000, 4400, 2)


def test_the_front_and_who_beats_the_others():
    made = plan()
    assert {c.name for c in made.chosen} == {"hyperbolic:default", "aws:us-east-1", "aws:eu-north-1"}
    assert {c.name: c.dominated_by for c in made.runners_up} == {"aws:eu-central-1": "aws:us-east-1"}
    assert "cheapest hyperbolic:default" in made.headline
    assert "least carbon aws:eu-north-1" in made.headline
    assert made.carbon_unknown == 1


def test_an_unknown_carbon_figure_keeps_its_reason():
    found = by_name(plan())["hyperbolic:default"].kg_co2e
    assert isinstance(found, Unknown)
    assert "hyperbolic:default" in found.why


def test_what_is_refused_and_why():
    made = plan(replace(ASKED, residency=residency_of(within=["eu"])))
    assert reasons(made) == {
        "aws:us-east-1": Reason.RESIDENCY,
        "gcp:europe-west4": Reason.PRICE_UNKNOWN,
        "hyperbolic:default": Reason.PLACE_UNKNOWN,
    }
    assert {c.name for c in made.chosen} == {"aws:eu-north-1"}
    assert all(r.why and r.instead for r in made.refused)
    zones = plan(replace(ASKED, min_zones=2))
    assert reasons(zones)["aws:eu-north-1"] is Reason.FEW_ZONES
    assert [c.name for c in zones.chosen] == ["aws:us-east-1"]


def test_places_allowed_are_any_of_those_named():
    made = plan(replace(ASKED, residency=residency_of(within=["eu"], country=["us"])))
    assert {c.name for c in (*made.chosen, *made.runners_up)} == {"aws:us-east-1", "aws:eu-north-1", "aws:eu-central-1"}


def test_more_gpus_than_an_instance_has_take_several_and_fewer_take_a_whole_one():
    assert by_name(plan(replace(ASKED, count=9)))["aws:eu-north-1"].instances == 2
    one = by_name(plan(replace(ASKED, count=1)))["aws:eu-north-1"]
    assert (one.instances, one.compute_usd) == (1, 4200)


def test_gpus_that_must_be_in_one_instance():
    small = [offer("aws", "eu-west-1", "5", gpus=1), *LISTED]
    assert by_name(plan(listed=small))["aws:eu-west-1"].instances == 8
    made = plan(replace(ASKED, per_instance=8), small)
    assert reasons(made)["aws:eu-west-1"] is Reason.SMALL_INSTANCES


def test_data_that_moves_every_month_is_paid_every_month():
    asked = replace(ASKED, hours=Decimal(1440), billed_gb=Decimal(1000), data_at=get_place("aws:us-east-1"))
    once = by_name(plan(asked))["aws:eu-north-1"].moving_usd
    assert by_name(plan(replace(asked, moves="monthly")))["aws:eu-north-1"].moving_usd == 2 * once == 40


def test_an_unknown_price_of_moving_is_refused_unless_the_user_gives_one():
    asked = replace(ASKED, billed_gb=Decimal(1000), data_at=get_place("runpod:US"))
    with pytest.raises(InputError) as error:
        plan(asked)
    assert "moving_usd_per_gb" in error.value.hint
    found = by_name(plan(replace(asked, moving_usd_per_gb=Decimal("0.05"))))
    assert found["aws:eu-north-1"].moving_usd == 50


def test_a_stale_cheapest_price_is_flagged_in_the_headline_and_its_cloud_in_the_warnings():
    old = offer("aws", "us-east-2", "10", dated="2025-10-27")
    made = plan(listed=[*LISTED, old])
    assert "cheapest aws:us-east-2 at $1,000 (an old price, of 2025-10-27)" in made.headline
    assert made.warnings == ["Old prices: aws (2025-10-27). Check them before you decide."]
    assert plan().warnings == []


def test_a_country_outside_the_union_widens_it_and_one_inside_is_pointed_out():
    inside = plan(replace(ASKED, residency=residency_of(within=["eea"], country=["de"])))
    assert any("de does not narrow eea" in words for words in inside.warnings)
    assert plan(replace(ASKED, residency=residency_of(within=["eu"], country=["ch"]))).warnings == []


def test_nothing_left_is_an_error_with_the_reasons():
    with pytest.raises(InputError, match=r"no region can run 8 x H100.* 1 is in an unknown country"):
        plan(replace(ASKED, residency=residency_of(country=["br"])))


def test_spot_counts_spot_zones():
    spot = [offer("aws", "eu-north-1", "20", zone=z, purchase="spot") for z in "abc"]
    made = plan(replace(ASKED, purchase="spot"), [*LISTED, *spot])
    assert [(c.name, c.zones, c.usd.middle_usd) for c in made.chosen] == [("aws:eu-north-1", 3, 2000)]
    assert any("taken back" in words for words in made.assumptions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("500 GB", 500 * 10**9), ("2TB", 2 * 10**12), ("1.5 TiB", 3 * 2**39), ("1,000 gb", 10**12)],
)
def test_amounts_of_data(text, expected):
    assert data_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "two TB", "-1 TB", "nan", "5 apples", "inf"])
def test_what_is_not_an_amount_of_data(text):
    with pytest.raises(InputError, match="amount of data"):
        data_bytes(text)


def test_data_without_a_unit_is_refused():
    with pytest.raises(InputError, match="no unit"):
        data_bytes("500")


def test_more_data_than_there_can_be_is_refused():
    with pytest.raises(InputError, match="1,000 PB"):
        data_bytes("1001 PB")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0])
def test_hours_must_be_possible(value):
    with pytest.raises(InputError, match="hours="):
        hours_of(value, None)


def test_hours_and_months():
    assert hours_of(None, None) == 720
    assert hours_of(None, 2) == 1440
    with pytest.raises(InputError, match="both"):
        hours_of(1, 1)
    assert number("x", 2.5) == Decimal("2.5")
    assert Residency() == residency_of()
