"""Is energy times PUE times carbon intensity right, counted once, and unknown where the place is?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fleets import DAY, POWER, UTIL, lake_of, mig, samples

from gpuledger.catalog.regions import find_place
from gpuledger.catalog.regions.grid import g_per_kwh, pue_of
from gpuledger.cost.emissions.build import Placing, energy_statement
from gpuledger.cost.emissions.hourly import read_hourly
from gpuledger.cost.emissions.places import Whereabouts
from gpuledger.cost.emissions.statement import EnergyStatement
from gpuledger.cost.pieces import Device
from gpuledger.encode import encode
from gpuledger.errors import FileFault, InputError, UnknownName
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.report.documents import document_of
from gpuledger.report.tables import Table
from gpuledger.units import MS_PER_HOUR, Range, Unknown

HOURS = 3


def drawn(watts: float, region: str = "", gpu: str = "GPU-a", **labels: Any) -> list[dict[str, Any]]:
    """Three hours at a constant power."""
    place = {"region": region} if region else {}
    return samples(range(HOURS * 60 + 1), gpu, **{UTIL: 80, POWER: watts}, **place, **labels)


def stated(lake: Lake, scope: Scope | None = None, **placing: Any) -> EnergyStatement:
    return energy_statement(lake, scope, Placing(**placing), price=2)


def factor(cloud: str, region: str) -> float:
    """Kilograms per kWh at the board, by the facts."""
    grams = g_per_kwh(find_place(cloud, region))
    assert isinstance(grams, Range)
    return pue_of(cloud)[0].middle * grams.middle / 1000


def test_carbon_is_energy_times_pue_times_intensity(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, drawn(500, "aws:eu-west-1"))
    found = stated(lake).fleet
    kwh = 0.5 * (HOURS + 1 / 60)
    assert found.energy_kwh == pytest.approx(kwh, rel=1e-6)
    assert isinstance(found.carbon_kg, Range)
    assert found.carbon_kg.middle == pytest.approx(kwh * 1.15 * 279.7 / 1000, rel=1e-6)
    assert found.carbon_kg.low <= found.carbon_kg.middle <= found.carbon_kg.high
    assert float(found.paid_usd) == pytest.approx(2 * (HOURS + 1 / 60), rel=1e-6)  # type: ignore[arg-type]


def test_owners_and_regions_add_up_to_the_fleet(tmp_path: Path) -> None:
    rows = drawn(500, "aws:eu-west-1", namespace="a") + drawn(300, "gcp:europe-north1", "GPU-b", namespace="b")
    found = stated(lake_of(tmp_path, rows))
    for rows_of in (found.by_owner, found.by_region):
        kg = [row.carbon_kg.middle for row in rows_of if isinstance(row.carbon_kg, Range)]
        assert sum(kg) == pytest.approx(found.fleet.carbon_kg.middle)  # type: ignore[union-attr]
        assert sum(row.energy_kwh for row in rows_of) == pytest.approx(found.fleet.energy_kwh)  # type: ignore[misc]
    assert [row.name for row in found.by_owner] == ["a", "b"]
    assert {row.name for row in found.by_region} == {"aws:eu-west-1", "gcp:europe-north1"}


def test_a_board_cut_into_slices_draws_and_emits_once(tmp_path: Path) -> None:
    rows = [r for s in range(7) for r in drawn(700, "aws:eu-west-1", namespace=f"n{s}", **mig(str(s + 1), "1g.5gb"))]
    found = stated(lake_of(tmp_path, rows))
    kwh = 0.7 * (HOURS + 1 / 60)
    assert found.fleet.energy_kwh == pytest.approx(kwh, rel=1e-6)
    assert found.fleet.carbon_kg.middle == pytest.approx(kwh * factor("aws", "eu-west-1"), rel=1e-6)  # type: ignore[union-attr]
    assert [row.energy_kwh for row in found.by_owner] == pytest.approx([kwh / 7] * 7, rel=1e-6)


@pytest.mark.parametrize("region", ["", "us-east-1", "moon-base-1"])
def test_an_unknown_place_makes_carbon_unknown_and_nothing_else(tmp_path: Path, region: str) -> None:
    found = stated(lake_of(tmp_path, drawn(500, region)))
    assert isinstance(found.fleet.carbon_kg, Unknown)
    assert isinstance(found.fleet.energy_kwh, float)
    assert found.fleet.unplaced_kwh == pytest.approx(found.fleet.energy_kwh)
    assert encode("energy", found)["carbon_kg"] is None


def test_a_part_without_a_place_is_reported_and_not_counted(tmp_path: Path) -> None:
    rows = drawn(500, "aws:eu-west-1") + drawn(300, "", "GPU-b")
    found = stated(lake_of(tmp_path, rows)).fleet
    assert found.carbon_kg.middle == pytest.approx(0.5 * (HOURS + 1 / 60) * factor("aws", "eu-west-1"), rel=1e-6)  # type: ignore[union-attr]
    assert found.unplaced_kwh == pytest.approx(0.3 * (HOURS + 1 / 60), rel=1e-6)


def test_carbon_of_a_part_is_not_called_the_least_there_is(tmp_path: Path) -> None:
    """The place of the rest may have less carbon than the middle of the range, not only more."""
    found = stated(lake_of(tmp_path, drawn(500, "aws:eu-west-1") + drawn(300, "", "GPU-b")))
    made = document_of(found)
    assert "CO2e for the 1.508 kWh with a known place" in made.headline
    assert "at least" not in made.headline
    (owners,) = [block for block in made.summary if isinstance(block, Table) and block.name == "owners"]
    assert [row[owners.heads.index("CO2e")].text[-1] for row in owners.rows] == ["+", "+"]
    assert "no known place" in owners.note


def test_without_power_neither_is_known(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, samples(range(61), region="aws:eu-west-1", **{UTIL: 50}))
    found = stated(lake).fleet
    assert isinstance(found.energy_kwh, Unknown)
    assert found.carbon_kg == found.energy_kwh


def device(region: str | None) -> Device:
    return Device("GPU-a", None, None, None, region, 0, 1)


def test_a_region_of_one_cloud_needs_no_more() -> None:
    assert Whereabouts().of(device("eu-west-1")).name == "aws:eu-west-1"  # type: ignore[union-attr]
    assert isinstance(Whereabouts().of(device("us-east-1")), Unknown)  # of two clouds
    assert Whereabouts(cloud="AWS").of(device("us-east-1")).name == "aws:us-east-1"  # type: ignore[union-attr]
    assert Whereabouts(at="gcp:us-central1").of(device(None)).name == "gcp:us-central1"  # type: ignore[union-attr]
    assert Whereabouts(at="gcp:us-central1").of(device("eu-west-1")).name == "aws:eu-west-1"  # type: ignore[union-attr]


def test_the_instance_of_the_inventory_tells_the_cloud(tmp_path: Path) -> None:
    stock = tmp_path / "inventory.csv"
    stock.write_text("device,from,to,instance,region,purchase_option,usd_per_h\nGPU-a,,,p4d.24xlarge,us-east-1,,3\n")
    lake = lake_of(tmp_path, drawn(500))
    found = energy_statement(lake, inventory=stock)
    assert [row.name for row in found.by_region] == ["aws:us-east-1"]


@pytest.mark.parametrize(("given", "kind"), [({"cloud": "awz"}, UnknownName), ({"at": "us-east-1"}, InputError)])
def test_a_place_that_is_not_one_is_refused(given: dict[str, str], kind: type[InputError]) -> None:
    with pytest.raises(kind):
        Whereabouts(**given)


def hourly(folder: Path, text: str) -> Path:
    file = folder / "carbon.csv"
    file.write_text(f"hour,region,g_per_kwh\n{text}")
    return file


def test_hours_weigh_by_the_energy_drawn_in_them(tmp_path: Path) -> None:
    # An hour at 200 W and 100 g/kWh, an hour at 600 W and 500 g/kWh: 0.02 + 0.3 kg, times PUE.
    rows = samples(range(60), region="aws:eu-west-1", **{UTIL: 50, POWER: 200})
    rows += samples(range(60, 120), region="aws:eu-west-1", **{UTIL: 50, POWER: 600})
    file = hourly(tmp_path, "2026-03-02T00:00Z,aws:eu-west-1,100\n2026-03-02T01:00Z,aws:eu-west-1,500\n")
    found = stated(lake_of(tmp_path, rows), hours=read_hourly(file))
    assert found.fleet.carbon_kg.middle == pytest.approx(0.32 * 1.15, rel=1e-3)  # type: ignore[union-attr]
    assert found.by_hour_pct == pytest.approx(100)
    grams = found.by_region[0].g_per_kwh
    assert isinstance(grams, Range)
    assert grams.middle == pytest.approx(400, rel=1e-3)


def test_each_hour_has_its_energy_and_carbon_and_they_add_up(tmp_path: Path) -> None:
    rows = samples(range(60), region="aws:eu-west-1", **{UTIL: 50, POWER: 200})
    rows += samples(range(60, 120), region="aws:eu-west-1", **{UTIL: 50, POWER: 600})
    file = hourly(tmp_path, "2026-03-02T00:00Z,aws:eu-west-1,100\n2026-03-02T01:00Z,aws:eu-west-1,500\n")
    found = stated(lake_of(tmp_path, rows), hours=read_hourly(file))
    first, second = found.by_hour
    assert (first.start_ms, second.start_ms) == (DAY, DAY + MS_PER_HOUR)
    assert (first.energy_kwh, second.energy_kwh) == pytest.approx((0.2, 0.6), rel=1e-2)
    kg = [hour.carbon_kg.middle for hour in found.by_hour]  # type: ignore[union-attr]
    assert kg == pytest.approx([0.02 * 1.15, 0.3 * 1.15], rel=1e-2)
    assert first.energy_kwh + second.energy_kwh == pytest.approx(found.fleet.energy_kwh)
    assert sum(kg) == pytest.approx(found.fleet.carbon_kg.middle)  # type: ignore[union-attr]


def test_hours_that_the_file_lacks_take_the_yearly_average(tmp_path: Path) -> None:
    file = hourly(tmp_path, "2026-03-02T00:00Z,IE,100\n")  # by grid
    lake = lake_of(tmp_path, samples(range(121), region="aws:eu-west-1", **{UTIL: 50, POWER: 500}))
    window = Scope(DAY, DAY + 2 * MS_PER_HOUR)
    found = stated(lake, window, hours=read_hourly(file))
    assert found.by_hour_pct == pytest.approx(50, rel=1e-3)
    assert found.fleet.carbon_kg.middle == pytest.approx(1.15 * (0.5 * 0.1 + 0.5 * 0.2797), rel=1e-3)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-03-02T00:00Z,IE,lots\n", "not grams"),
        ("2026-03-02T00:00Z,IE,-1\n", "not grams"),
        ("2026-03-02T00:00Z,IE,100000\n", "not grams"),
        ("2026-03-02T00:30Z,IE,100\n", "start of an hour"),
        ("yesterday,IE,100\n", "not a time"),
        ("2026-03-02T00:00Z,IE,100\n2026-03-02T00:00Z,IE,101\n", "two figures"),
        ("", "no rows"),
    ],
)
def test_a_bad_file_of_hours_is_refused_whole(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(FileFault, match=words):
        read_hourly(hourly(tmp_path, text))


def test_a_file_without_its_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "carbon.csv"
    file.write_text("when,where,what\n1,2,3\n")
    with pytest.raises(FileFault, match="hour, region, g_per_kwh"):
        read_hourly(file)
