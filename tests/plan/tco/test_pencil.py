"""Does the comparison come to what a pencil comes to, line by line? The same example is in docs/plan-tco.md."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger import plan
from gpuledger.plan.tco.inputs import Basis
from gpuledger.plan.tco.words import dollars

EXAMPLE = {
    "gpu": "h100-sxm", "gpus": 8, "years": 3, "purchase_usd": 30_000, "network_usd": 0, "spares_pct": 0,
    "life_years": 5, "capital_pct": 10, "busy_pct": 100, "host_w": 300, "pue": 1.2, "usd_per_kwh": 0.10,
    "colo_usd_per_kw_month": 150, "fte_per_hundred_gpus": 0.5, "usd_per_fte_year": 200_000, "maintenance_pct": 4,
    "failures_pct_year": 0, "utilization_pct": 50, "rent_usd": 3, "three_year_usd": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return plan.tco(**EXAMPLE)


def test_owning_line_by_line(made):
    assert {line.name: line.usd for line in made.lines} == {
        "Hardware": 240_000,  # 8 x 30,000
        "Residual value": -96_000,  # 240,000 x (1 - 3/5)
        "Capital": 50_400,  # 10 % x (240,000 + 96,000) / 2 x 3 years
        "Power": Decimal("17281.728"),  # 8 x (0.5 x 0.7 + 0.5 x 0.07 + 0.3) kW x 26,280 h x 1.2 x 0.10
        "Colocation": 43_800,  # 8 x 1 kW x 150 x 36.5 months
        "Staff": 24_000,  # 0.08 x 0.5 x 200,000 x 3
        "Maintenance": 28_800,  # 4 % x 240,000 x 3
        "Cover for failed GPUs": 0,
    }
    assert made.own.energy_kwh == Decimal("172817.28")
    assert made.own.total_usd == Decimal("308281.728")
    assert sum(line.usd for line in made.lines) == made.own.total_usd


def test_every_path(made):
    totals = {p.name: p.usd.middle_usd for p in made.paths}
    # on demand: 8 x 26,280 h x 50 % x 3; committed: 8 x 26,280 h x 2
    assert totals == {"own": Decimal("308281.728"), "on-demand": 315_360, "3-year": 420_480}
    assert [p.name for p in made.paths] == ["own", "on-demand", "3-year"]
    own = made.chosen
    assert own.usd_per_gpu_h == Decimal("308281.728") / 210_240
    assert own.usd_per_used_gpu_h == 2 * own.usd_per_gpu_h
    assert made.path("3-year").usd_per_used_gpu_h == 4


def test_where_owning_and_on_demand_meet(made):
    rent = made.path("on-demand")
    # 240,000 / ((315,360 - 164,281.728) / 36.5)
    assert float(rent.break_even_month) == pytest.approx(57.983, abs=0.001)
    # (315,360 - 85,081.728) / (8 x 0.93), as each hardware dollar costs 0.6 + 0.21 + 0.12
    assert float(rent.break_even_purchase_usd) == pytest.approx(30_951.38, abs=0.01)
    # 300,334.656 / (630,720 - 15,894.144)
    assert float(rent.break_even_utilization_pct) == pytest.approx(48.8487, abs=0.0001)


def test_what_is_given_has_no_range(made):
    assert made.chosen.usd.low_usd == made.chosen.usd.high_usd  # nothing that is still assumed matters here
    given = {one.name for one in made.inputs if one.basis is Basis.GIVEN}
    assert {"purchase_usd", "rent_usd", "pue"} <= given
    assert not any(one.ranged for one in made.inputs if one.basis is Basis.GIVEN)


def test_the_capital_of_a_declining_balance_by_pencil():
    made = plan.tco(**EXAMPLE, depreciation="declining", decline_pct=50)
    # values 240,000, 120,000, 60,000, 30,000; 10 % of 180,000 + 90,000 + 45,000
    assert made.own.residual_usd == 30_000
    assert made.own.capital_usd == 31_500


def test_a_resale_value_of_the_user_is_taken_as_it_is():
    made = plan.tco(**EXAMPLE, residual_pct=25)
    assert made.own.residual_usd == 60_000
    assert made.own.capital_usd == 45_000  # 10 % of (240,000 + 60,000) / 2 x 3


def test_cover_for_failed_gpus_by_pencil():
    made = plan.tco(**{**EXAMPLE, "failures_pct_year": 10, "repair_days": 7.3})
    assert made.own.cover_usd == Decimal("630.72")  # 210,240 h x 50 % x 10 % x 7.3 / 365 x $3


def test_five_years_have_one_three_year_term_and_two_years_on_demand():
    made = plan.tco(**{**EXAMPLE, "years": 5, "one_year_usd": 2.5})
    assert made.path("3-year").usd.middle_usd == 420_480 + 2 * 105_120
    assert made.path("1-year").usd.middle_usd == 8 * 43_800 * Decimal("2.5")


def test_hardware_is_bought_again_when_its_life_is_over():
    made = plan.tco(**{**EXAMPLE, "years": 8})
    assert made.own.sets == 2
    assert made.own.hardware_usd == 480_000
    assert made.own.residual_usd == 96_000  # 240,000 x (2 - 8/5)
    # 10 % x 240,000 x (5 / 2 for the first set, 3 - 9/10 for the second)
    assert made.own.capital_usd == 110_400
    assert made.own.maintenance_usd == 76_800  # 4 % of one set x 8
    assert (made.chosen.upfront_usd, made.path("own").paid_again) == (240_000, (Decimal(5) * 8760 / 720,))
    assert "bought 2 times" in made.headline
    shown = {line.name: line.words for line in made.lines}
    assert "x 2 times, once every 5 years" in shown["Hardware"]


def test_a_resale_value_of_the_user_holds_for_all_the_years():
    assert plan.tco(**{**EXAMPLE, "years": 8}, residual_pct=5).own.sets == 1


def test_the_headline_has_the_ranges_and_how_many_inputs_can_turn_it():
    made = plan.tco(gpu="h100-sxm", gpus=8)
    base = made.path("own").usd.middle_usd - made.path("on-demand").usd.middle_usd
    turning = [s.name for s in made.swings if (s.low_usd < 0) != (base < 0) or (s.high_usd < 0) != (base < 0)]
    assert made.turning == turning
    assert turning
    assert f"the ranges overlap, and {len(turning)} of {len(made.swings)} inputs can each turn that" in made.headline
    for path in made.paths:
        assert f"{dollars(path.usd.low_usd)} to {dollars(path.usd.high_usd)}" in made.headline


def test_a_verdict_that_no_input_turns_says_so():
    made = plan.tco(**{**EXAMPLE, "rent_usd": 30})
    assert not made.turning
    assert f"none of the {len(made.swings)} inputs turns that alone" in made.headline
