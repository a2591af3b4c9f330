"""Do readings at two rates make rows whose sums are right?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.script import Board, Ramp, Scenario, Segment, Square
from gpuledger.devices.sampler import Sampler

BUSY = {"gpu_util_ratio": 0.5, "mem_copy_util_ratio": 0.1, "sm_clock_mhz": 1500.0, "fb_used_bytes": 3e9}


def test_a_mean_covers_the_very_second_of_its_rows(play) -> None:
    # Busy from 0.5 s to 1.5 s: half of the first second, half of the second, none of the third.
    scenario = Scenario(
        [
            Segment(0.5, power_w=Ramp(100, 101), tensor_ratio=0.0, **BUSY),
            Segment(1.0, power_w=Ramp(101, 102), tensor_ratio=0.8, **BUSY),
            Segment(1.5, power_w=Ramp(102, 103), tensor_ratio=0.0, **BUSY),
        ]
    )
    tensor = play([Board(scenario)], 3.0).column("tensor_ratio")
    assert tensor == pytest.approx([0.4] * 10 + [0.4] * 10 + [0.0] * 10)


def test_a_counter_is_spread_evenly_between_its_readings_and_loses_nothing(play) -> None:
    scenario = Scenario(
        [Segment(2.0, power_w=Ramp(100, 101), **BUSY), Segment(2.0, power_w=Ramp(300, 301), **BUSY)],
        energy_start_mj=5e6,
    )
    energy = play([Board(scenario)], 4.0).column("energy_mj")
    # 100.5 W for two seconds are 201 J, a twentieth of it per row.
    assert energy[:3] == [5_000_000, 5_010_050, 5_020_100]
    assert energy[20] == 5_201_000
    assert energy[21] == 5_201_000 + 30_050
    assert energy == sorted(energy)


def test_levels_hold_from_their_reading_on(play) -> None:
    scenario = Scenario(
        [
            Segment(0.5, power_w=Ramp(100, 101), gpu_temp_c=40.0, **BUSY),
            Segment(1.5, power_w=Ramp(100, 101), gpu_temp_c=60.0, **BUSY),
        ]
    )
    assert play([Board(scenario)], 2.0).column("gpu_temp_c") == [40] * 10 + [60] * 10


def test_repeats_within_the_counters_period_are_no_observations(play) -> None:
    # Power stands still; utilization changes every fifth of a second for ten seconds, then stands still too.
    scenario = Scenario(
        [
            Segment(10.0, power_w=200.0, gpu_util_ratio=Square(1.0, 0.0, period_s=0.4), sm_clock_mhz=1500.0),
            Segment(10.0, power_w=200.0, gpu_util_ratio=1.0, sm_clock_mhz=1500.0),
        ]
    )
    played = play([Board(scenario, util_period_s=0.2)], 20.0)
    (device,) = played.report.devices
    assert device.util_period_s == pytest.approx(0.2, rel=0.02)
    at = played.column("at_ms")
    steps = {round((b - a) / 100) for a, b in pairwise(at[30:])}
    assert steps == {2} or steps == {1, 2}
    assert device.repeats_left_out >= 60
    assert device.rows + device.repeats_left_out == 200
    # Ten readings a second, five refreshes a second: the still half has five rows a second, not ten.
    still = [a for a in at if a >= at[0] + 11_000]
    assert len(still) == pytest.approx(45, abs=10)


def test_a_row_never_stands_for_more_than_two_ticks(play) -> None:
    scenario = Scenario(
        [Segment(30.0, power_w=200.0, gpu_util_ratio=Square(1.0, 0.0, period_s=2.0), sm_clock_mhz=1500.0)]
    )
    at = play([Board(scenario, util_period_s=1.0)], 30.0).column("at_ms")
    assert max(b - a for a, b in pairwise(at)) <= 200


def test_until_the_period_is_known_every_reading_counts(play) -> None:
    scenario = Scenario([Segment(5.0, power_w=200.0, gpu_util_ratio=0.3, sm_clock_mhz=1500.0)])
    played = play([Board(scenario)], 5.0)
    assert len(played.of()) == 50
    assert played.report.devices[0].util_period_s is None


def test_a_load_that_changes_every_two_seconds_tells_no_period(play) -> None:
    beat = Square(1.0, 0.0, period_s=4.0, duty=0.5)
    scenario = Scenario([Segment(40.0, power_w=200.0, **{**BUSY, "gpu_util_ratio": beat})])
    played = play([Board(scenario, util_period_s=0.2)], 40.0)
    assert played.report.devices[0].util_changes >= 15
    assert played.report.devices[0].util_period_s is None


def test_a_tick_on_which_nothing_answers_makes_no_row(play) -> None:
    from gpuledger.devices.replay.faults import DriverError

    scenario = Scenario([Segment(5.0, power_w=Ramp(100, 200), **BUSY)])
    calls = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetClockInfo")
    # The clock of memory is read with the same call each second, hence more failures than ticks.
    faults = [DriverError(c, at_s=2.05, times=3) for c in calls]
    played = play([Board(scenario)], 5.0, faults=faults)
    assert played.report.devices[0].silent_ticks == 3
    assert len(played.of()) == 47
    assert played.report.devices[0].failures["power_w"] == 3


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.2, 3.0), st.floats(0, 1), st.floats(50, 700)), min_size=1, max_size=6),
    st.sampled_from([2.0, 5.0, 10.0, 20.0]),
)
def test_activity_and_energy_summed_over_rows_are_what_the_device_did(pieces, hz: float) -> None:
    scenario = Scenario(
        [Segment(s, power_w=w, tensor_ratio=a, gpu_util_ratio=a, sm_clock_mhz=1500.0) for s, a, w in pieces]
    )
    seconds = int(scenario.length_s)
    if seconds < 1:
        return
    clock, rows = VirtualClock(), []
    source = NvmlSource(FakeNvml([Board(scenario)], clock))
    Sampler(
        source.devices, lambda _f, c, r: rows.extend(dict(zip(c, x, strict=True)) for x in r), hz=hz, clock=clock
    ).run(seconds)
    at = [r["at_ms"] for r in rows] + [rows[0]["at_ms"] + 1000 * seconds]
    spans = [b - a for a, b in pairwise(at)]
    done = sum(r["tensor_ratio"] * ms for r, ms in zip(rows, spans, strict=True))
    assert done == pytest.approx(1000 * seconds * scenario.mean("tensor_ratio", 0, seconds), rel=0.03, abs=3)
    gained = rows[-1]["energy_mj"] - rows[0]["energy_mj"]
    true = scenario.energy_mj((at[-2] - at[0]) / 1000) - scenario.energy_mj(0)
    assert gained == pytest.approx(true, abs=700 * 1000)  # the last second is spread evenly
