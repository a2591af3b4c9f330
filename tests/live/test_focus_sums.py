"""Do FOCUS rows add up to the audit of the same window, to the last digit?"""

from __future__ import annotations

import csv
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cost.fleets import B300, DAY, ENGINE, H100, MEMORY, POWER, UTIL, bill, lake_of, mig, random_fleet, samples
from gpuledger.cost.build import cost_statement
from gpuledger.cost.emissions.build import Placing, energy_statement
from gpuledger.cost.emissions.hourly import HourlyIntensity
from gpuledger.cost.statement import BUCKETS, CostRow, CostStatement
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.live.focus.build import FocusExport, focus_export
from gpuledger.live.focus.files import focus_csv
from gpuledger.live.focus.rows import Row
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Range, Unknown

ZERO = Decimal(0)
UNSEEN = "GPU-c195f12f-f2a7-5b50-b391-9ce8d061eb39"
PRICE = "2.3456789"  # so that no hour is a whole number of the smallest unit


def column(bucket: str) -> str:
    return f"x_{''.join(part.capitalize() for part in bucket.split('_'))}Cost"


def added(made: FocusExport, name: str, key: str) -> dict[Any, Decimal]:
    found: dict[Any, Decimal] = defaultdict(lambda: ZERO)
    for row in made.rows:
        found[row[key]] += row[name]
    return {k: v for k, v in found.items() if v}


def paid_by(rows: tuple[CostRow, ...]) -> dict[str, Decimal]:
    return {r.name: r.dollars.paid_usd for r in rows if not isinstance(r.dollars, Unknown) and r.dollars.paid_usd}


def assert_equal(made: FocusExport, told: CostStatement) -> None:
    """Totals, buckets, owners and devices, exactly."""
    if isinstance(told.dollars, Unknown):
        assert not made.rows
        return
    for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"):
        assert sum((r[name] for r in made.rows), ZERO) == told.dollars.paid_usd, name
    for bucket in BUCKETS:
        assert sum((r[column(bucket)] or ZERO for r in made.rows), ZERO) == told.dollars.each()[bucket], bucket
    assert sum((r["x_WasteCost"] or ZERO for r in made.rows), ZERO) == told.dollars.waste_usd
    assert added(made, "EffectiveCost", "x_Namespace") == paid_by(told.by_namespace)
    assert added(made, "EffectiveCost", "x_Team") == paid_by(told.by_team)
    by_gpu: dict[str, Decimal] = {}
    for gpu in told.by_gpu:
        if not isinstance(gpu.dollars, Unknown) and gpu.dollars.paid_usd:
            name = f"{gpu.gpu_uuid}/{gpu.gpu_instance_id}" if gpu.gpu_instance_id else gpu.gpu_uuid
            by_gpu[name] = gpu.dollars.paid_usd
    assert added(made, "EffectiveCost", "ResourceId") == by_gpu
    for row in made.rows:
        assert sum((row[column(b)] or ZERO for b in BUCKETS), ZERO) == row["EffectiveCost"]
        assert_judged(row)


def assert_judged(row: Row) -> None:
    """Waste is empty where all of the cost is open, and the evidence says so; a figure there is never made up."""
    opened = (row["x_UnratedCost"] or ZERO) + (row["x_UnobservedCost"] or ZERO)
    unknown = bool(row["EffectiveCost"]) and opened == row["EffectiveCost"]
    assert (row["x_WasteCost"] is None) == unknown
    assert row["x_WasteEvidence"].startswith("unknown: ") == unknown
    if row["x_UnratedCost"]:
        assert (row["x_ProductiveCost"] is None) == (row["x_StalledCost"] is None)
        assert row["x_ProductiveCost"] != ZERO or row["x_StalledCost"]
    if not opened:
        assert row["x_WasteEvidence"] == "all of the cost is rated"


WITHIN = Scope(DAY + 7 * MS_PER_HOUR + 12_345, DAY + 31 * MS_PER_HOUR)


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_rows_of_any_fleet_add_up(tmp_path: Path, seed: int) -> None:
    # Boards whole and sliced, resliced, shared; known and unknown models; a window within days.
    lake = lake_of(tmp_path, random_fleet(seed, step=15))
    assert_equal(focus_export(lake, price=PRICE), cost_statement(lake, price=PRICE))
    assert_equal(focus_export(lake, WITHIN, price=PRICE), cost_statement(lake, WITHIN, price=PRICE))
    made, told = focus_export(lake), cost_statement(lake)  # market prices; some models have none
    assert_equal(made, told)
    assert sum(left.paid_h for left in made.left_out) == pytest.approx(sum(u.paid_h for u in told.unpriced))
    assert {left.why for left in made.left_out} == {u.why for u in told.unpriced}


def test_the_synthetic_fleet_adds_up_as_a_whole_and_for_one_owner(lake: Lake) -> None:
    assert_equal(focus_export(lake), cost_statement(lake))
    one = Scope(namespaces=("research",))
    assert_equal(focus_export(lake, one), cost_statement(lake, one))


def test_unrated_time_has_no_waste_and_the_rows_say_why(tmp_path: Path) -> None:
    hours = range(0, 24 * 60, 5)
    busy = samples(hours, "GPU-dark", B300, namespace="dark", **{UTIL: 100, POWER: 900})
    rated = samples(hours, "GPU-lit", H100, namespace="lit", **{UTIL: 95, POWER: 300, MEMORY: 9000})
    lake = lake_of(tmp_path, busy + rated)
    made = focus_export(lake, price=PRICE)
    assert_equal(made, cost_statement(lake, price=PRICE))
    rows = {row["x_Namespace"]: row for row in made.rows if row["EffectiveCost"]}
    dark, lit = rows["dark"], rows["lit"]
    assert [dark[f"x_{b}Cost"] for b in ("Productive", "Stalled", "Waste")] == [None, None, None]
    assert dark["x_UnratedCost"] == dark["EffectiveCost"]
    assert "unrated" in dark["x_WasteEvidence"]
    assert lit["x_WasteCost"] > 0
    assert lit["x_ProductiveCost"] > 0
    header, *lines = list(csv.reader(focus_csv(made.rows).splitlines()))
    cells = [dict(zip(header, line, strict=True)) for line in lines]
    assert [c["x_WasteCost"] for c in cells if c["x_Namespace"] == "dark"] == [""]


def test_the_random_fleets_have_time_without_a_price(tmp_path: Path) -> None:
    # Else the rows that are left out would never be tried.
    lake = lake_of(tmp_path, samples(range(120), model="Banana 9000", **{UTIL: 50}))
    made = focus_export(lake)
    assert not made.rows
    (left,) = made.left_out
    assert (left.gpus, left.rows) == (1, 1)
    assert left.paid_h == pytest.approx(2)
    assert "Banana 9000" in left.why


def two_owners() -> list[dict[str, Any]]:
    """Three days of one board: two owners that share it as slices, a day without a sample, then one owner alone."""
    use = {UTIL: 60, POWER: 200, ENGINE: 0.6, MEMORY: 9000}
    rows = [r for s in ("1", "2") for r in samples(range(1440), **mig(s, "3g.20gb"), namespace=f"team-{s}", **use)]
    return rows + samples(range(2 * 1440, 3 * 1440), namespace="night", **use)


def test_a_day_without_a_sample_is_paid_for_too(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, two_owners())
    made = focus_export(lake, price=PRICE)
    assert_equal(made, bill(lake, price=PRICE))
    gap = [r for r in made.rows if r["ChargePeriodStart"].day == 3]
    assert [r["x_Namespace"] for r in gap] == ["unallocated"]
    assert gap[0]["x_UnobservedCost"] == gap[0]["EffectiveCost"]
    assert float(gap[0]["EffectiveCost"]) == pytest.approx(24 * float(PRICE))


def test_slices_count_the_energy_of_their_board_once(tmp_path: Path) -> None:
    # 200 W for two of three days: 9.6 kWh, half of it by two slices that repeat their board's power.
    lake = lake_of(tmp_path, two_owners())
    made = focus_export(lake, price=1)
    found = [row["x_EnergyKwh"] for row in made.rows if row["x_EnergyKwh"] is not None]
    assert sum(found) == pytest.approx(9.6, rel=1e-3)
    assert sum(found) == pytest.approx(made.statement.energy_kwh, rel=1e-12)
    slices = [row["x_EnergyKwh"] for row in made.rows if row["ResourceType"] == "MIG instance"]
    assert slices == pytest.approx([2.4, 2.4], rel=1e-3)


def test_an_inventory_sets_what_is_paid(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, two_owners())
    stock = tmp_path / "inventory.csv"
    stock.write_text(
        "device,from,to,instance,region,purchase_option,usd_per_h\n"
        "GPU-a,2026-03-01,2026-03-04,,,spot,1.7654321\n"
        f"{UNSEEN},2026-03-02,2026-03-05,p4d.24xlarge,us-east-1,on_demand,\n"
    )
    scope = Scope(DAY - MS_PER_DAY, DAY + 4 * MS_PER_DAY)
    made = focus_export(lake, scope, inventory=stock)
    assert_equal(made, cost_statement(lake, scope, inventory=stock))
    assert {r["PricingCategory"] for r in made.rows if r["ResourceId"].startswith("GPU-a")} == {"Dynamic"}
    unseen = [r for r in made.rows if r["ResourceId"] == UNSEEN]
    assert [r["ChargePeriodStart"].day for r in unseen] == [2, 3, 4]
    assert {r["x_PriceBasis"] for r in unseen} == {"instance"}


@pytest.mark.parametrize("by_hour", [False, True])
def test_carbon_adds_up_to_the_energy_statement(lake: Lake, by_hour: bool) -> None:
    start = cost_statement(lake).start_ms
    grams = {start + h * MS_PER_HOUR: 50.0 + 7 * h for h in range(40)}  # the last hours are not in the file
    hours = HourlyIntensity("hours.csv", {f"aws:{r}": grams for r in ("us-east-1", "us-west-2", "eu-west-1")})
    placing = Placing(cloud="aws", hours=hours if by_hour else None)
    told = energy_statement(lake, placing=placing).fleet.carbon_kg
    assert isinstance(told, Range)
    found = [row["x_CarbonKgCo2e"] for row in focus_export(lake, placing=placing).rows]
    assert sum(found) == pytest.approx(told.middle, rel=1e-9)


def test_carbon_of_an_unknown_place_is_empty_with_the_reason(lake: Lake) -> None:
    rows = [row for row in focus_export(lake).rows if row["RegionId"] == "us-east-1"]
    assert rows
    assert all(row["x_CarbonKgCo2e"] is None and row["x_EnergyKwh"] > 0 for row in rows)
    assert all("several clouds" in row["x_CarbonSource"] for row in rows)


def test_the_rest_of_a_board_that_is_cut_has_its_own_share_and_the_boards_price(tmp_path: Path) -> None:
    rows = [r for s in "123" for r in samples(range(24 * 60), "GPU-m", **mig(s, "2g.20gb"), **{UTIL: 90, POWER: 300})]
    made = focus_export(lake_of(tmp_path, rows), price=Decimal("2.79"))
    shares = {row["ResourceId"]: row["x_BoardSharePct"] for row in made.rows}
    assert shares["GPU-m"] == pytest.approx(100 / 7, abs=0.01)
    assert sum(shares.values()) == pytest.approx(100, abs=0.01)
    assert {row["ListUnitPrice"] for row in made.rows} == {Decimal("2.79")}
    for row in made.rows:
        assert abs(row["ListUnitPrice"] * row["PricingQuantity"] - row["ListCost"]) < Decimal("1e-9")
