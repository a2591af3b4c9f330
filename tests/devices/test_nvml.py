"""Is NVML asked for the right things, in the right units, and is its refusal put into words?"""

from __future__ import annotations

import pynvml
import pytest

from gpuledger.devices import gpm
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import LostGpu, Unsupported
from gpuledger.devices.replay.script import Board, Ramp, Scenario, Segment
from gpuledger.errors import DeviceError
from gpuledger.telemetry import schema

FULL = Scenario(
    [
        Segment(
            60.0, power_w=Ramp(650, 690), power_limit_w=700.0, gpu_util_ratio=0.99, mem_copy_util_ratio=0.25,
            sm_clock_mhz=1470.0, mem_clock_mhz=3201.0, fb_used_bytes=float(10 << 30), gpu_temp_c=60.0, mem_temp_c=48.0,
            throttle_bits=4.0, pcie_replays=3.0, remapped_correctable_rows=2.0, engine_ratio=0.989, sm_ratio=0.95,
            occupancy_ratio=0.14, integer_ratio=0.01, tensor_ratio=0.929, dfma_ratio=0.0, hmma_ratio=0.929,
            imma_ratio=0.0, dram_ratio=0.17, fp64_ratio=0.0, fp32_ratio=0.02, fp16_ratio=0.0, pcie_tx_bytes_per_s=5e6,
            pcie_rx_bytes_per_s=1e7, nvlink_bytes_per_s=4e9,
        )
    ]
)  # fmt: skip


def read(api: FakeNvml, clock: VirtualClock) -> dict[str, object]:
    (device,) = NvmlSource(api).devices
    for field in device.fields:
        field.read()
    clock.sleep(1.0)
    return {c: v for f in device.fields for c, v in zip(f.columns, f.read(), strict=True)}


def test_every_reading_arrives_in_the_unit_of_its_column() -> None:
    clock = VirtualClock()
    found = read(FakeNvml([Board(FULL)], clock), clock)
    power = 650 + 40 / 60
    want = {
        "gpu_util_ratio": 0.99, "mem_copy_util_ratio": 0.25, "power_w": round(power, 3), "power_limit_w": 700.0,
        "sm_clock_mhz": 1470, "mem_clock_mhz": 3201, "fb_used_bytes": 10 << 30,
        "fb_free_bytes": (143_771 << 20) - (10 << 30), "gpu_temp_c": 60, "mem_temp_c": 48, "throttle_bits": 4,
        "pcie_replays": 3, "remapped_correctable_rows": 2, "engine_ratio": 0.989,
        "tensor_ratio": 0.929, "dram_ratio": 0.17, "pcie_rx_bytes_per_s": 1e7, "nvlink_bytes_per_s": 4e9,
    }  # fmt: skip
    for column, value in want.items():
        assert found[column] == pytest.approx(value), column
    assert found["energy_mj"] == pytest.approx(1e6 + 1000 * (650 + power) / 2, abs=1)


def test_every_column_it_fills_is_one_of_the_schema_and_within_its_bounds() -> None:
    clock = VirtualClock()
    for column, value in read(FakeNvml([Board(FULL)], clock), clock).items():
        limits = schema.columns()[column]
        assert limits.kind in ("level", "counter")
        assert value is not None
        assert limits.min <= value <= limits.max, column
        assert (limits.type == "int64") <= isinstance(value, int), column


def test_an_older_gpu_has_no_activity_counters_and_says_so() -> None:
    (device,) = NvmlSource(FakeNvml([Board(FULL, gpm=False, model="NVIDIA A100-SXM4-80GB")])).devices
    assert set(gpm.columns()) <= set(device.absent)
    assert "Hopper" in device.absent["tensor_ratio"]
    assert not any(f.kind == "mean" for f in device.fields)


def test_a_gpu_that_can_report_no_throttle_reason_is_not_said_to_be_free_of_them() -> None:
    class Mute(FakeNvml):
        """Answers 0 whatever happens, and says that it knows no reasons."""

        def nvmlDeviceGetSupportedClocksEventReasons(self, *_args: object) -> int:  # noqa: N802
            return 0

        def nvmlDeviceGetCurrentClocksEventReasons(self, *_args: object) -> int:  # noqa: N802
            return 0

    (device,) = NvmlSource(Mute([Board(FULL)])).devices
    assert not any("throttle_bits" in f.columns for f in device.fields)
    assert "no clock event reasons" in device.absent["throttle_bits"]

    class Speaking(Mute):
        def nvmlDeviceGetSupportedClocksEventReasons(self, *_args: object) -> int:  # noqa: N802
            return 0x1FF

    (device,) = NvmlSource(Speaking([Board(FULL)])).devices
    assert next(f for f in device.fields if "throttle_bits" in f.columns).read() == (0,)


def test_a_power_limit_of_0_is_not_known() -> None:
    class Zero(FakeNvml):
        def nvmlDeviceGetEnforcedPowerLimit(self, *_args: object) -> int:  # noqa: N802
            return 0

    (device,) = NvmlSource(Zero([Board(FULL)])).devices
    assert next(f for f in device.fields if "power_limit_w" in f.columns).read() == (None,)


def test_mig_instances_are_devices_of_their_own() -> None:
    half = Scenario([Segment(60.0, sm_clock_mhz=1500.0, fb_used_bytes=1e9, tensor_ratio=0.5)])
    idle = Scenario([Segment(60.0, sm_clock_mhz=1500.0, fb_used_bytes=2e8, tensor_ratio=0.0)])
    clock = VirtualClock()
    board = Board(FULL, instances=((1, 3, half), (5, 4, idle)))
    source = NvmlSource(FakeNvml([board], clock))
    first, second = source.devices
    assert [d.facts.name for d in source.devices] == ["GPU-replay-0/1", "GPU-replay-0/5"]
    assert (first.facts.slice_ratio, second.facts.slice_ratio) == (3 / 7, 4 / 7)
    assert first.facts.other_names == ("MIG-replay-0-1",)
    assert "MIG" in first.absent["gpu_util_ratio"]
    assert "split" in first.absent["power_w"]
    means = {d.facts.name: next(f for f in d.fields if f.kind == "mean") for d in source.devices}
    for field in means.values():
        field.read()
    clock.sleep(1.0)
    place = gpm.columns().index("tensor_ratio")
    assert [f.read()[place] for f in means.values()] == pytest.approx([0.5, 0.0])
    memory = next(f for f in first.fields if "fb_used_bytes" in f.columns)
    assert memory.read()[0] == 1_000_000_000


def test_a_board_whose_slices_are_not_told_has_no_share() -> None:
    half = Scenario([Segment(60.0, sm_clock_mhz=1500.0, tensor_ratio=0.5)])
    api = FakeNvml(
        [Board(FULL, instances=((1, 3, half),))], faults=[Unsupported("nvmlDeviceGetGpuInstanceProfileInfo")]
    )
    source = NvmlSource(api)
    assert source.devices[0].facts.slice_ratio is None
    assert any("slices" in n for n in source.notes)


@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver", "install"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded", "modprobe"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "permission", "/dev/nvidia"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "different versions", "reboot"),
        (pynvml.NVML_ERROR_UNKNOWN, "does not answer", "nvidia-smi"),
    ],
)
def test_a_driver_that_refuses_is_explained_with_the_next_step(code: int, words: str, hint: str) -> None:
    with pytest.raises(DeviceError, match=words) as caught:
        NvmlSource(FakeNvml([Board(FULL)], init_error=code))
    assert hint in caught.value.hint
    assert "replay:" in caught.value.hint


def test_without_any_gpu_the_driver_is_let_go_and_the_next_step_said() -> None:
    api = FakeNvml([])
    with pytest.raises(DeviceError, match="no GPU") as caught:
        NvmlSource(api)
    assert "--gpus" in caught.value.hint
    assert api.opened == 0


def test_a_gpu_that_is_lost_before_the_start_is_left_out_and_the_others_stay() -> None:
    boards = [Board(FULL, uuid="GPU-a"), Board(FULL, uuid="GPU-b")]
    source = NvmlSource(FakeNvml(boards, faults=[LostGpu(at_s=0.0, gpu=0)]))
    assert [d.facts.gpu_uuid for d in source.devices] == ["GPU-b"]
    assert any("GPU 0" in n for n in source.notes)


def test_older_drivers_and_libraries_are_asked_the_older_way() -> None:
    class Old(FakeNvml):
        """A library that has the newer names while its driver does not."""

        def nvmlDeviceGetTemperatureV(self, *_args: object) -> int:  # noqa: N802
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    (device,) = NvmlSource(Old([Board(FULL)])).devices
    field = next(f for f in device.fields if f.columns == ("gpu_temp_c",))
    assert field.read() == (60,)


def test_the_driver_is_let_go_at_the_end() -> None:
    api = FakeNvml([Board(FULL)])
    source = NvmlSource(api)
    assert api.opened == 1
    source.close()
    assert api.opened == 0
    assert source.driver == "NVIDIA 580.159.04"


def test_on_a_machine_without_a_driver_the_real_library_ends_in_words() -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        with pytest.raises(DeviceError):
            NvmlSource()
    else:
        pynvml.nvmlShutdown()
        pytest.skip("there is a driver here")
