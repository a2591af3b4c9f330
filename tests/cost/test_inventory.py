from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.catalog.prices import instance_price
from gpuledger.cost.inventory import COLUMNS, demo_inventory, read_inventory
from gpuledger.errors import FactError, FileFault, InputError
from gpuledger.telemetry.fleet import demo_fleet
from gpuledger.units import MS_PER_HOUR, Unknown, day_start_ms

HEAD = ",".join(COLUMNS)
DAY = day_start_ms("2026-01-20")


def write(tmp_path: Path, *rows: str, head: str = HEAD) -> Path:
    file = tmp_path / "inventory.csv"
    file.write_text("\n".join([head, *rows]) + "\n")
    return file


def test_a_row_says_who_is_paid_for_when_and_how_much(tmp_path: Path) -> None:
    found = read_inventory(
        write(
            tmp_path, "GPU-a,2026-01-20,2026-01-20T06:00:00+01:00,p5.48xlarge,us-east-1,spot,$2.10", "GPU-b,,,,,owned,0"
        )
    )
    first, second = found.rows
    assert (first.from_ms, first.to_ms) == (DAY, DAY + 5 * MS_PER_HOUR)
    assert (first.purchase_option, first.usd_per_h, first.row) == ("spot", Decimal("2.10"), 2)
    assert (second.from_ms, second.to_ms, second.usd_per_h) == (None, None, 0)
    assert first.within(DAY - 1, DAY + 1) == (DAY, DAY + 1)
    assert first.within(0, DAY) is None


def test_columns_may_be_left_out_but_not_invented(tmp_path: Path) -> None:
    assert read_inventory(write(tmp_path, "GPU-a,2", head="device,usd_per_h")).rows[0].purchase_option == "on_demand"
    with pytest.raises(FactError, match="column 'usd_per_hour' is unknown") as caught:
        read_inventory(write(tmp_path, "GPU-a,2", head="device,usd_per_hour"))
    assert "usd_per_h" in caught.value.hint
    with pytest.raises(FactError, match="'device' is missing"):
        read_inventory(write(tmp_path, "2", head="usd_per_h"))


@pytest.mark.parametrize(
    ("row", "field", "value", "hint"),
    [
        (",,,p5.48xlarge,,,", "device", "''", "UUID"),
        ("GPU-a,20.01.2026,,,,,2", "from", "'20.01.2026'", "2026-01-20"),
        ("GPU-a,2026-01-21,2026-01-20,,,,2", "to", "'2026-01-20'", "later"),
        ("GPU-a,,,,,on-demand,2", "purchase_option", "'on-demand'", "on_demand"),
        ("GPU-a,,,,,,2 dollars", "usd_per_h", "'2 dollars'", "6.88"),
        ("GPU-a,,,,,,-1", "usd_per_h", "'-1'", "above 0"),
        ("GPU-a,,,,,,0", "usd_per_h", "'0'", "owned"),
        ("GPU-a,,,,,,NaN", "usd_per_h", "'NaN'", "above 0"),
        ("GPU-a,,,,,,", "usd_per_h", "''", "instance"),
        ("GPU-a,,,p5.48xlarge,,reserved,", "usd_per_h", "''", "reserved prices are not listed"),
    ],
)
def test_an_error_names_file_row_field_value_and_next_step(
    tmp_path: Path, row: str, field: str, value: str, hint: str
) -> None:
    with pytest.raises(FactError) as caught:
        read_inventory(write(tmp_path, "GPU-z,,,,,,1", row))
    assert caught.value.message == f"{tmp_path / 'inventory.csv'}: row 3, {field}: found {value}"
    assert hint in caught.value.hint


def test_a_device_is_paid_for_once_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="row 3, from: GPU-a is already paid for by row 2"):
        read_inventory(write(tmp_path, "GPU-a,2026-01-20,,,,,2", "GPU-a,2026-01-25,,,,,3"))
    touching = write(tmp_path, "GPU-a,2026-01-25,,,,,3", "GPU-a,2026-01-20,2026-01-25,,,,2")
    assert [r.usd_per_h for r in read_inventory(touching).by_device["GPU-a"]] == [2, 3]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_inventory(tmp_path / "nowhere.csv")
    with pytest.raises(FileFault, match="no rows"):
        read_inventory(write(tmp_path))
    with pytest.raises(FactError, match="more values than columns"):
        read_inventory(write(tmp_path, "GPU-a,,,,,,2,3"))
    (tmp_path / "inventory.csv").write_bytes(b"device\n\xff\xfe\n")
    with pytest.raises(FileFault, match="not text"):
        read_inventory(tmp_path / "inventory.csv")


def test_the_demo_inventory_pays_the_demo_fleet_at_listed_prices() -> None:
    shipped = demo_inventory().by_device
    fleet = {a.uuid: a for a in demo_fleet()}
    assert set(shipped) == set(fleet)
    for uuid, (row,) in shipped.items():
        listed = instance_price(row.instance, row.region)
        assert not isinstance(listed, Unknown)
        assert row.usd_per_h == listed.usd_per_gpu_h
        assert row.region == fleet[uuid].region
        assert row.instance.split(".")[0] == fleet[uuid].node_group
