"""Which laws hold for any fleet and any prices?"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.plan.tco import breakeven
from gpuledger.plan.tco.inputs import Basis, Input
from gpuledger.plan.tco.model import Fleet, committed_usd, on_demand_usd, own
from gpuledger.plan.tco.ranges import ends, middles, span, swings
from gpuledger.units import Unknown


def some(low, high, places=2):
    return st.decimals(low, high, places=places, allow_nan=False, allow_infinity=False)


VALUES = st.fixed_dictionaries(
    {
        "purchase_usd": some(1000, 60_000), "server_usd": some(0, 5000), "network_usd": some(0, 5000),
        "spares_pct": some(0, 10), "life_years": some(1, 8), "decline_pct": some(0, 90), "capital_pct": some(0, 20),
        "busy_pct": some(10, 100), "host_w": some(0, 600), "pue": some(1, 2), "usd_per_kwh": some("0.01", "0.4"),
        "colo_usd_per_kw_month": some(0, 300), "cooling_usd_per_kw_month": some(0, 50),
        "fte_per_hundred_gpus": some(0, 3), "usd_per_fte_year": some(50_000, 400_000), "maintenance_pct": some(0, 20),
        "failures_pct_year": some(0, 20), "repair_days": some(0, 20), "utilization_pct": some(1, 100),
        "paid_idle_pct": some(0, 100), "rent_usd": some("0.2", 12),
    }
)  # fmt: skip
FLEETS = st.builds(
    Fleet, gpus=st.integers(1, 500), years=st.integers(1, 7), board_w=some(100, 1200), idle_w=some(0, 90),
    method=st.sampled_from(["straight-line", "declining"]), residual_pct=st.none() | some(0, 80),
)  # fmt: skip
CLOSE = Decimal("1e-12")


def difference_of(fleet):
    return lambda v: own(fleet, v).total_usd - on_demand_usd(fleet, v, v["rent_usd"])


def near_zero(value, scale):
    return abs(value) <= CLOSE * scale


@given(FLEETS, VALUES)
def test_lines_add_up_and_none_is_negative(fleet, values):
    made = own(fleet, values)
    parts = [v for k, v in vars(made).items() if k.endswith("_usd")]
    assert all(part >= 0 for part in parts)
    assert 0 <= made.residual_usd <= made.hardware_usd
    assert made.total_usd == made.hardware_usd - made.residual_usd + made.running_usd


@given(FLEETS, VALUES)
def test_twice_the_gpus_cost_twice_as_much(fleet, values):
    double = Fleet(**{**vars(fleet), "gpus": 2 * fleet.gpus})
    one, two = own(fleet, values).total_usd, own(double, values).total_usd
    assert near_zero(two - 2 * one, two)


@given(FLEETS, VALUES)
def test_at_the_break_even_points_both_cost_the_same(fleet, values):
    difference = difference_of(fleet)
    scale = own(fleet, values).total_usd
    share = breakeven.utilization_pct(difference, values)
    if isinstance(share, Decimal):
        assert 0 <= share <= 100
        assert near_zero(difference({**values, "utilization_pct": share}), scale)
    price = breakeven.purchase_usd(difference, values)
    if isinstance(price, Decimal):
        assert price > 0
        assert near_zero(difference({**values, "purchase_usd": price}), scale * (1 + price / values["purchase_usd"]))
        assert (price >= values["purchase_usd"]) == (difference(values) <= 0) or near_zero(difference(values), scale)


def cash_ahead(fleet, made, rent, month):
    """Cash spent on renting less that spent on owning after some months, each purchase counted one by one."""
    bought, at = 1, made.set_months
    while at is not None and at < month and bought < made.sets:
        bought, at = bought + 1, at + made.set_months
    return (rent - made.running_usd) / fleet.months * month - bought * made.set_usd


@given(FLEETS, VALUES)
@settings(max_examples=60)
def test_from_the_break_even_month_on_owning_stays_ahead_and_just_before_it_is_not(fleet, values):
    made, rent = own(fleet, values), on_demand_usd(fleet, values, values["rent_usd"])
    found = breakeven.month(fleet, made, rent)
    if isinstance(found, Unknown):
        last = fleet.months if made.set_months is None else made.sets * made.set_months
        assert cash_ahead(fleet, made, rent, last) < 0
        return
    assert cash_ahead(fleet, made, rent, found * Decimal("0.999999")) < 0
    end = max(fleet.months, found * Decimal("1.000001"))
    steps = [found * Decimal("1.000001") + (end - found * Decimal("1.000001")) * k / 40 for k in range(41)]
    assert all(cash_ahead(fleet, made, rent, month) >= 0 for month in steps)


@given(FLEETS, VALUES)
def test_hardware_is_never_used_after_its_life_for_free(fleet, values):
    plain = Fleet(**{**vars(fleet), "method": "straight-line", "residual_pct": None})
    made = own(plain, values)
    lost, life = made.hardware_usd - made.residual_usd, values["life_years"]
    assert near_zero(lost - made.set_usd * plain.years / life, made.hardware_usd)
    assert (made.sets - 1) * life < plain.years <= made.sets * life


@given(VALUES)
def test_a_value_over_many_lives_is_that_of_small_steps(values):
    fleet, life = Fleet(8, 7, Decimal(700), Decimal(70)), values["life_years"]
    made, steps = own(fleet, values), 2000
    age = [(Decimal(7) * (2 * k + 1) / (2 * steps)) % life for k in range(steps)]
    held = sum(1 - a / life for a in age) * 7 / steps
    expected = values["capital_pct"] / 100 * made.set_usd * held
    assert made.capital_usd == pytest.approx(expected, rel=Decimal("0.01"))


@given(FLEETS, VALUES)
def test_a_commitment_at_the_same_price_never_costs_less_than_on_demand(fleet, values):
    for term in (1, 3):
        committed = committed_usd(fleet, values, values["rent_usd"], term)
        assert committed >= on_demand_usd(fleet, values, values["rent_usd"])


@given(VALUES)
def test_full_use_makes_on_demand_and_a_commitment_of_the_same_price_equal(values):
    fleet = Fleet(8, 3, Decimal(700), Decimal(70))
    full = {**values, "utilization_pct": Decimal(100)}
    assert on_demand_usd(fleet, full, Decimal(2)) == committed_usd(fleet, full, Decimal(2), 3)


def made_input(name, low, middle, high):
    basis = Basis.GIVEN if low == high else Basis.ASSUMED
    return Input(name, name, "", Decimal(low), Decimal(middle), Decimal(high), basis)


def test_swings_are_sorted_and_hold_the_others_fixed():
    inputs = {"a": made_input("a", 1, 2, 3), "b": made_input("b", 10, 10, 10), "c": made_input("c", 0, 0, 0)}

    def cost(v):
        return 100 * v["a"] + v["b"] + v["c"]

    found = swings(inputs, cost, Decimal(10))
    assert [(s.name, s.low_usd, s.high_usd, s.varied) for s in found] == [
        ("a", 110, 310, False), ("b", 209, 211, True),
    ]  # fmt: skip
    assert span(inputs, cost, inputs) == span(inputs, cost, ["a"])
    assert (span(inputs, cost, ["a"]).low_usd, span(inputs, cost, ["a"]).high_usd) == (110, 310)
    assert middles(inputs) == {"a": 2, "b": 10, "c": 0}


@pytest.mark.parametrize(
    ("name", "value", "expected"), [("pue", "1.05", ("1", "1.155")), ("utilization_pct", "95", ("85.5", "100"))]
)
def test_an_input_is_not_moved_beyond_what_is_possible(name, value, expected):
    one = made_input(name, value, value, value)
    assert ends(one, Decimal(10)) == tuple(map(Decimal, expected))
