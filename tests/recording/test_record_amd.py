"""Does a recording of AMD GPUs go all the way: amdsmi, lake, analyze, audit? Two dies of one MI250X board."""

import time

import pytest

import gpuledger
from fake_amd import FakeAmd
from gpuledger.devices.amd import AmdSource
from gpuledger.devices.replay.script import Board, Scenario, Segment


def die(number, **more):
    work = {"gpu_util_ratio": 0.9, "mem_copy_util_ratio": 0.3, "sm_clock_mhz": 1700.0, "fb_used_bytes": float(50 << 30)}
    script = Scenario([Segment(600.0, **work, **more)], energy_start_mj=0.0 if number else 1e6)
    return Board(script, uuid=f"740c-{number}", model="AMD Instinct MI250X", memory_bytes=64 << 30)


def test_two_dies_from_the_driver_to_the_bill(tmp_path):
    source = AmdSource(FakeAmd([die(0, power_w=420.0, power_limit_w=560.0), die(1, power_w=0.0)]))
    with gpuledger.record(lake=tmp_path / "lake", device=source, hz=20, labels={"namespace": "hpc"}):
        time.sleep(1.0)
    lake = gpuledger.open(tmp_path / "lake")
    rows = lake.samples().df()
    assert set(rows["gpu_uuid"]) == {"740c-0", "740c-1"}
    assert rows.loc[rows["gpu_uuid"] == "740c-1", "power_w"].isna().all()
    made = lake.analyze().statement
    assert made.fleet.gpus == 2
    assert made.fleet.pif == pytest.approx(420 / 560, rel=0.01)
    assert lake.audit(prices=1.0).statement.cost.gpus == 2
