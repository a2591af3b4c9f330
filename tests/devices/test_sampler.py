"""Does sampling go on, at an even pace, whatever happens?"""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise

import pytest

from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import QuickClock, VirtualClock
from gpuledger.devices.replay.doors import from_scenario
from gpuledger.devices.replay.faults import ClockStep, DriverError, LostGpu, Refused, SlowCall, Unsupported
from gpuledger.devices.replay.script import Board, Ramp, Scenario, Segment
from gpuledger.devices.sampler import DEVICES_PER_TICK, Sampler, spread_s
from gpuledger.errors import InputError

BUSY = {
    "power_w": Ramp(100, 600), "gpu_util_ratio": 0.7, "mem_copy_util_ratio": 0.2, "sm_clock_mhz": 1500.0,
    "mem_clock_mhz": 2600.0, "fb_used_bytes": 5e9, "gpu_temp_c": 50.0, "mem_temp_c": 55.0, "throttle_bits": 4.0,
    "engine_ratio": 0.7, "sm_ratio": 0.5, "tensor_ratio": 0.4, "dram_ratio": 0.3,
}  # fmt: skip
SCRIPT = Scenario([Segment(60.0, **BUSY)])
BOARD = Board(SCRIPT)


def test_ticks_lie_on_a_grid(play) -> None:
    at = play([BOARD], 10.0).column("at_ms")
    assert [a - at[0] for a in at] == [100 * k for k in range(100)]


def test_a_slow_call_skips_grid_points_counts_them_and_does_not_shift_the_rest(play) -> None:
    played = play([BOARD], 10.0, faults=[SlowCall("nvmlDeviceGetTotalEnergyConsumption", 0.35, at_s=4.5)])
    at = played.column("at_ms")
    assert played.report.skipped_ticks == 3
    assert played.report.ticks == 97
    # Rows begun late stand where they were read; all others are on the grid still.
    assert sum((a - at[0]) % 100 != 0 for a in at) <= 1
    assert (at[-1] - at[0]) % 100 == 0
    assert played.report.devices[0].slowest_call_ms["energy_mj"] == pytest.approx(350, rel=0.01)


def test_a_gpu_lost_mid_run_ends_alone_and_keeps_its_rows(play) -> None:
    boards = [replace(BOARD, uuid=f"GPU-replay-{i}") for i in range(3)]
    played = play(boards, 10.0, faults=[LostGpu(at_s=4.25, gpu=1)])
    assert [len(played.of(f"GPU-replay-{i}")) for i in range(3)] == [100, 43, 100]
    lost = played.report.devices[1]
    assert lost.lost_at_ms is not None
    assert "lost" in lost.lost_why
    assert played.report.devices[0].lost_at_ms is None
    # The second it was lost in was never closed: its activity is not known, and not invented.
    assert played.of("GPU-replay-1")[-1]["tensor_ratio"] is None
    assert played.of("GPU-replay-1")[30]["tensor_ratio"] == pytest.approx(0.4)


def test_a_driver_error_costs_one_reading(play) -> None:
    played = play([BOARD], 5.0, faults=[DriverError("nvmlDeviceGetPowerUsage", at_s=2.0, times=2)])
    power = played.column("power_w")
    assert len(power) == 50
    assert [k for k, w in enumerate(power) if w is None] == [20, 21]
    device = played.report.devices[0]
    assert device.failures == {"power_w": 2}
    assert "Unknown Error" in device.last_errors["power_w"]
    assert played.report.faults == ()


def test_an_error_in_the_activity_counters_costs_one_second_and_the_next_is_whole(play) -> None:
    played = play([BOARD], 4.0, faults=[DriverError("nvmlGpmMetricsGet", at_s=1.5)])
    tensor = played.column("tensor_ratio")
    assert tensor[:10] == pytest.approx([0.4] * 10)
    assert tensor[10:20] == [None] * 10
    assert tensor[20:] == pytest.approx([0.4] * 20)


def test_what_a_device_lacks_is_said_with_the_reason_and_asked_no_more(play) -> None:
    faults = [
        Unsupported("nvmlDeviceGetTotalEnergyConsumption"),
        Refused("nvmlDeviceGetMemoryInfo"),
        Unsupported("NVML_GPM_METRIC_FP16_UTIL"),
    ]
    played = play([BOARD], 3.0, faults=faults)
    missing = played.missing["GPU-replay-0"]
    assert "Not Supported" in missing["energy_mj"]
    assert "permission" in missing["fb_used_bytes"]
    assert "permission" in missing["fb_free_bytes"]
    assert "FP16" in missing["fp16_ratio"]
    assert "tensor_ratio" not in missing
    assert "energy_mj" not in played.of()[0]
    assert played.report.devices[0].failures == {}


def test_a_clock_step_is_noted_and_followed_forward_and_back(play) -> None:
    played = play([BOARD], 9.0, steps=[ClockStep(3.05, 100.0), ClockStep(6.05, -100.0)])
    assert [s.step_s for s in played.report.clock_steps] == [100.0, -100.0]
    at = played.column("at_ms")
    assert len(set(at)) == len(at) == 90
    assert max(at) - at[0] == pytest.approx(106_900, abs=1100)
    assert at[-1] - at[0] == pytest.approx(8900, abs=10)


class Oversleeps(VirtualClock):
    """A machine under load: now and then a wait takes up to a tick longer."""

    def __init__(self, by_s: float) -> None:
        super().__init__()
        self._waits, self._by_s = 0, by_s

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self._waits += 1
        return super().wait(stop, seconds + (self._by_s if self._waits % 7 == 0 else 0.0))


@pytest.mark.parametrize("by_s", [0.0, 0.03, 0.06, 0.089, 0.095, 0.0995, 0.099999, 0.1, 0.13])
def test_a_tick_that_began_late_is_not_followed_by_one_of_the_same_instant(by_s: float) -> None:
    clock, at = Oversleeps(by_s), list[int]()
    source = NvmlSource(from_scenario(SCRIPT, clock=clock))
    sampler = Sampler(source.devices, lambda _f, _c, r: at.extend(int(row[0]) for row in r), clock=clock)
    report = sampler.run(10.0)
    assert report.ticks + report.skipped_ticks == 100
    assert min(b - a for a, b in pairwise(at)) >= 8


def test_devices_take_turns_with_the_costly_readings() -> None:
    clock = VirtualClock()
    calls: list[tuple[int, int]] = []
    api = from_scenario(SCRIPT, gpus=2 * DEVICES_PER_TICK, clock=clock)
    source = NvmlSource(api)
    assert spread_s(len(source.devices), 10.0, 1.0) == pytest.approx(0.1)
    assert spread_s(1, 10.0, 1.0) == 0.0
    sampler = Sampler(
        source.devices,
        lambda f, _c, r: calls.append((f.index, len(r))),
        hz=20.0,
        clock=clock,
        slow_s=0.5,
        release_s=0.5,
    )
    sampler.run(1.3)
    # 26 ticks; a release every ten of them, for the second four devices one tick later.
    assert [n for i, n in calls if i == 0] == [10, 10, 6]
    assert [n for i, n in calls if i == DEVICES_PER_TICK] == [11, 10, 5]


def test_a_thread_of_its_own_delivers_everything_before_stop_returns() -> None:
    clock = QuickClock(speed=50.0, lasts_s=9.95)
    rows: list[tuple[object, ...]] = []
    rounds: list[int] = []
    source = NvmlSource(from_scenario(SCRIPT, clock=clock))
    sampler = Sampler(
        source.devices, lambda _f, _c, r: rows.extend(r), clock=clock, on_release=lambda: rounds.append(1)
    )
    sampler.start()
    clock.until(9.95)
    report = sampler.stop()
    assert len(rows) == report.devices[0].rows
    assert (report.ticks, report.skipped_ticks) == (100, 0)
    assert len(rounds) == 6, "at 0, 2, 4, 6 and 8 s, and at the end"
    assert report.cpu_s > 0
    assert report.ended_ms - report.started_ms == pytest.approx(9950, abs=2)


def test_what_is_stopped_before_it_got_going_has_one_reading() -> None:
    rows: list[tuple[object, ...]] = []
    source = NvmlSource(from_scenario(SCRIPT, clock=VirtualClock()))
    sampler = Sampler(source.devices, lambda _f, _c, r: rows.extend(r), clock=VirtualClock())
    sampler.stop()
    assert sampler.run().ticks == len(rows) == 1


def test_a_sink_that_fails_does_not_end_the_sampler() -> None:
    clock = VirtualClock()
    source = NvmlSource(from_scenario(SCRIPT, clock=clock))

    def broken(*_args: object) -> None:
        raise RuntimeError("no room")

    report = Sampler(source.devices, broken, clock=clock).run(5.0)
    assert report.ticks == 50
    assert any("no room" in f for f in report.faults)


@pytest.mark.parametrize("hz", [0.0, -1.0, 1000.0])
def test_a_rate_that_makes_no_sense_is_refused(hz: float) -> None:
    with pytest.raises(InputError, match="Hz"):
        Sampler([], lambda *_: None, hz=hz)
    with pytest.raises(InputError, match="costly"):
        Sampler([], lambda *_: None, slow_s=hz if hz <= 0 else 99.0)


def test_a_slow_rate_reads_everything_on_every_tick(play) -> None:
    played = play([BOARD], 20.0, hz=0.5)
    assert [a - played.column("at_ms")[0] for a in played.column("at_ms")] == [2000 * k for k in range(10)]
    assert played.column("tensor_ratio") == pytest.approx([0.4] * 10)


def test_rows_are_released_in_time_also_at_a_slow_rate() -> None:
    clock = VirtualClock()
    source = NvmlSource(from_scenario(SCRIPT, clock=clock))
    given: list[float] = []
    Sampler(source.devices, lambda *_: given.append(clock.monotonic()), hz=0.5, clock=clock).run(20.0)
    assert {round(b - a, 3) for a, b in pairwise(given)} == {2.0}
