"""Does every kind of device behave alike under the sampler? One suite, each source through its own library's calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from fake_amd import FakeAmd
from gpuledger.devices.amd import AmdSource
from gpuledger.devices.device import Source, Value
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.reading import SamplerReport
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import DriverError, Fault, LostGpu, SlowCall, Unsupported
from gpuledger.devices.replay.script import Board, Ramp, Scenario, Segment, Square
from gpuledger.devices.sampler import Sampler
from gpuledger.telemetry import schema

SCRIPT = Scenario(
    [
        Segment(
            30.0, power_w=Ramp(100, 700), power_limit_w=700.0, gpu_util_ratio=Square(1.0, 0.2, period_s=4.0),
            mem_copy_util_ratio=0.3, sm_clock_mhz=1600.0, mem_clock_mhz=2000.0, fb_used_bytes=float(8 << 30),
            gpu_temp_c=55.0, mem_temp_c=60.0, engine_ratio=0.6, sm_ratio=0.5, tensor_ratio=0.4, dram_ratio=0.2,
        )
    ]
)  # fmt: skip
# The readings any kind of device must give where its script has them.
COMMON = {
    "at_ms", "gpu_util_ratio", "mem_copy_util_ratio", "power_w", "power_limit_w", "energy_mj", "sm_clock_mhz",
    "mem_clock_mhz", "gpu_temp_c", "mem_temp_c", "fb_used_bytes", "fb_free_bytes",
}  # fmt: skip


@dataclass(frozen=True)
class Maker:
    """How a kind of source is made of boards, and what its library calls things."""

    make: Callable[[Sequence[Board], VirtualClock, Sequence[Fault]], Source]
    power_call: str
    energy_call: str


MAKERS = {
    "nvml": Maker(
        lambda boards, clock, faults: NvmlSource(FakeNvml(boards, clock, faults)),
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTotalEnergyConsumption",
    ),
    "amd": Maker(
        lambda boards, clock, faults: AmdSource(FakeAmd(boards, clock, faults)),
        "amdsmi_get_power_info",
        "amdsmi_get_energy_count",
    ),
}


@pytest.fixture(params=list(MAKERS))
def maker(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


@dataclass
class Run:
    rows: dict[str, list[dict[str, Value]]]
    report: SamplerReport
    missing: dict[str, dict[str, str]]
    source: Source


def rows_of(source: Source, seconds: float, clock: VirtualClock) -> tuple[list[dict[str, Value]], Sampler]:
    """The rows of a source's devices, and the sampler that read them."""
    rows: list[dict[str, Value]] = []
    sampler = Sampler(
        source.devices, lambda _f, c, found: rows.extend(dict(zip(c, r, strict=True)) for r in found), clock=clock
    )
    sampler.run(seconds)
    return rows, sampler


def sample(maker: Maker, seconds: float, *faults: Fault, gpus: int = 1) -> Run:
    clock = VirtualClock()
    source = maker.make([Board(SCRIPT, uuid=f"dev-{i}") for i in range(gpus)], clock, faults)
    rows: dict[str, list[dict[str, Value]]] = {}
    sampler = Sampler(
        source.devices,
        lambda f, c, found: rows.setdefault(f.name, []).extend(dict(zip(c, r, strict=True)) for r in found),
        clock=clock,
    )
    report = sampler.run(seconds)
    source.close()
    return Run(rows, report, {d.facts.name: d.missing for d in report.devices}, source)


def test_it_gives_the_common_readings_within_the_bounds_of_the_schema(maker: Maker) -> None:
    run = sample(maker, 5.0)
    assert set(run.rows["dev-0"][0]) >= COMMON
    for row in run.rows["dev-0"]:
        for column, value in row.items():
            limits = schema.columns()[column]
            if value is not None:
                assert limits.min <= value <= limits.max, column
    assert all(row[c] is not None for row in run.rows["dev-0"] for c in COMMON)


def test_what_it_fills_and_what_it_lacks_are_apart_and_in_the_schema(maker: Maker) -> None:
    run = sample(maker, 3.0)
    filled = {c for row in run.rows["dev-0"] for c, v in row.items() if v is not None}
    missing = run.missing["dev-0"]
    assert not filled & set(missing)
    assert set(missing) <= set(schema.columns())
    assert all(len(why) > 10 for why in missing.values())


def test_a_limit_or_a_reason_the_device_does_not_give_is_null_and_never_0(maker: Maker) -> None:
    script = Scenario([Segment(30.0, power_w=400.0, gpu_util_ratio=0.5, sm_clock_mhz=1600.0)])
    clock = VirtualClock()
    rows, sampler = rows_of(maker.make([Board(script)], clock, ()), 3.0, clock)
    assert len(rows) == 30
    (missing,) = (d.missing for d in sampler.report().devices)
    for column in ("power_limit_w", "throttle_bits"):
        assert {row.get(column) for row in rows} == {None}
        assert len(missing[column]) > 10


def test_the_power_limit_is_read_as_it_is_set(maker: Maker) -> None:
    same = {"power_w": 400.0, "gpu_util_ratio": 0.5, "sm_clock_mhz": 1600.0}
    script = Scenario([Segment(3.0, power_limit_w=700.0, **same), Segment(7.0, power_limit_w=450.0, **same)])
    clock = VirtualClock()
    rows, _ = rows_of(maker.make([Board(script)], clock, ()), 8.0, clock)
    limits = [row["power_limit_w"] for row in rows]
    assert limits[:20] == [700.0] * 20
    assert limits[-40:] == [450.0] * 40


def test_the_processes_that_hold_it(maker: Maker) -> None:
    source = maker.make([Board(SCRIPT, pids={31: 5 << 30, 32: None})], VirtualClock(), ())
    (device,) = source.devices
    assert [(h.pid, h.memory_bytes) for h in device.holders()] == [(31, 5 << 30), (32, None)]
    assert list(device.processes()) == [31, 32]


def test_time_and_energy_only_grow(maker: Maker) -> None:
    rows = sample(maker, 10.0).rows["dev-0"]
    assert all(a["at_ms"] < b["at_ms"] for a, b in pairwise(rows))
    assert all(a["energy_mj"] <= b["energy_mj"] for a, b in pairwise(rows))
    gained = rows[-1]["energy_mj"] - rows[0]["energy_mj"]
    assert gained == pytest.approx(SCRIPT.energy_mj(9.9) - SCRIPT.energy_mj(0), rel=0.01)


def test_all_devices_of_a_host_are_read(maker: Maker) -> None:
    run = sample(maker, 3.0, gpus=9)
    assert sorted(run.rows) == [f"dev-{i}" for i in range(9)]
    assert {len(r) for r in run.rows.values()} <= {29, 30}


def test_a_lost_device_ends_alone(maker: Maker) -> None:
    run = sample(maker, 5.0, LostGpu(at_s=2.5, gpu=1), gpus=2)
    assert len(run.rows["dev-0"]) == 50
    assert len(run.rows["dev-1"]) == pytest.approx(25, abs=2)
    assert run.report.devices[1].lost_at_ms is not None


def test_an_unsupported_field_is_missing_and_the_rest_goes_on(maker: Maker) -> None:
    run = sample(maker, 3.0, Unsupported(maker.energy_call))
    assert "energy_mj" in run.missing["dev-0"]
    assert len(run.rows["dev-0"]) == 30


def test_a_passing_error_is_counted_and_the_next_reading_stands(maker: Maker) -> None:
    run = sample(maker, 3.0, DriverError(maker.power_call, at_s=1.0))
    power = [r["power_w"] for r in run.rows["dev-0"]]
    assert power.count(None) == 1
    assert run.report.devices[0].failures == {"power_w": 1}


def test_a_slow_call_is_counted_in_skipped_ticks(maker: Maker) -> None:
    run = sample(maker, 5.0, SlowCall(maker.power_call, 0.5, at_s=2.0))
    assert run.report.skipped_ticks == pytest.approx(4, abs=1)
    assert run.report.ticks + run.report.skipped_ticks == 50


def test_the_driver_names_itself(maker: Maker) -> None:
    assert len(sample(maker, 1.0).source.driver.split()) >= 2
