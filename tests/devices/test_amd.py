"""Are AMD's readings taken only where they mean the same?"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from fake_amd import FakeAmd
from gpuledger.devices.amd import AmdSource
from gpuledger.devices.device import Held
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.script import Board, Scenario, Segment
from gpuledger.errors import DeviceError, MissingExtra

MI300 = Scenario(
    [
        Segment(
            60.0, power_w=612.0, power_limit_w=750.0, gpu_util_ratio=0.83, mem_copy_util_ratio=0.4, sm_clock_mhz=2050.0,
            mem_clock_mhz=1300.0, fb_used_bytes=float(90 << 30), gpu_temp_c=71.0, mem_temp_c=64.0,
        )
    ]
)  # fmt: skip
BOARD = Board(MI300, uuid="ac0000a1-0000-1000-80de-1", model="AMD Instinct MI300X OAM", memory_bytes=192 << 30)


def test_readings_arrive_in_the_units_of_the_schema() -> None:
    clock = VirtualClock()
    (device,) = AmdSource(FakeAmd([BOARD], clock)).devices
    clock.sleep(10.0)
    found = {c: v for f in device.fields for c, v in zip(f.columns, f.read(), strict=True)}
    assert found["gpu_util_ratio"] == 0.83
    assert found["mem_copy_util_ratio"] == 0.4
    assert found["power_w"] == 612.0
    assert found["power_limit_w"] == 750.0
    assert found["fb_used_bytes"] == 90 << 30
    assert found["fb_free_bytes"] == 102 << 30
    assert (found["sm_clock_mhz"], found["mem_clock_mhz"]) == (2050, 1300)
    assert (found["gpu_temp_c"], found["mem_temp_c"]) == (71, 64)
    assert found["energy_mj"] == pytest.approx(1e6 + 612e3 * 10, abs=2)
    assert device.facts.gpu_model == "AMD Instinct MI300X OAM"


def test_pipes_are_not_known_and_that_is_said() -> None:
    (device,) = AmdSource(FakeAmd([BOARD])).devices
    assert "amdsmi" in device.absent["tensor_ratio"]
    assert "engine_ratio" in device.absent


def test_the_second_die_of_a_package_has_no_power_of_its_own() -> None:
    die = Scenario([Segment(60.0, power_w=0.0, gpu_util_ratio=0.5, sm_clock_mhz=1700.0)], energy_start_mj=0.0)
    (device,) = AmdSource(FakeAmd([Board(die, model="AMD Instinct MI250X")])).devices
    fields = {f.columns[0]: f for f in device.fields}
    for name in ("power_w", "energy_mj"):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            fields[name].read()
        assert device.judge(caught.value).judgement == "unsupported"


def test_a_power_cap_is_read_in_either_unit_and_a_missing_one_is_not_known() -> None:
    class Host(FakeAmd):
        """The host of virtual machines reports watts."""

        def amdsmi_get_power_cap_info(self, handle):
            return {"power_cap": 750}

    class Without(FakeAmd):
        def amdsmi_get_power_cap_info(self, handle):
            return {"power_cap": 0}

    (device,) = AmdSource(Host([BOARD])).devices
    assert next(f for f in device.fields if f.columns == ("power_limit_w",)).read() == (750.0,)
    (device,) = AmdSource(Without([BOARD])).devices
    with pytest.raises(Exception) as caught:  # noqa: PT011
        next(f for f in device.fields if f.columns == ("power_limit_w",)).read()
    assert device.judge(caught.value).judgement == "unsupported"


def test_the_processes_on_a_device_and_their_memory() -> None:
    (device,) = AmdSource(FakeAmd([replace(BOARD, pids={31: 5 << 30, 32: None})])).devices
    assert device.holders() == [Held(31, 5 << 30), Held(32)]
    assert device.processes() == [31, 32]


def test_older_releases_name_things_differently() -> None:
    class Old(FakeAmd):
        def amdsmi_get_clock_info(self, handle, kind):
            return {"cur_clk": 1700}

        def amdsmi_get_energy_count(self, handle):
            return {"power": 1_000_000, "counter_resolution": 15.259}

        def amdsmi_get_power_info(self, handle):
            return {"average_socket_power": 250, "current_socket_power": "N/A"}

    (device,) = AmdSource(Old([BOARD])).devices
    fields = {f.columns[0]: f for f in device.fields}
    assert fields["sm_clock_mhz"].read() == (1700,)
    assert fields["energy_mj"].read() == (15259,)
    assert fields["power_w"].read() == (250.0,)


def test_a_driver_that_refuses_is_explained() -> None:
    with pytest.raises(DeviceError, match="does not answer") as caught:
        AmdSource(FakeAmd([BOARD], init_error=34))
    assert "amd-smi" in caught.value.hint
    with pytest.raises(DeviceError, match="no GPU"):
        AmdSource(FakeAmd([]))


def test_without_the_library_the_next_step_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(MissingExtra, match="amdsmi"):
        AmdSource()
