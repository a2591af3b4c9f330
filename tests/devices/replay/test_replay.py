"""Does the real sampler, on a replayed H200, see what the H200 did?"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.doors import from_csv, from_scenario, load_tapes, open_replay
from gpuledger.devices.replay.script import Scenario, Segment
from gpuledger.devices.sampler import Sampler

RECORDING = Path(__file__).parents[2] / "data" / "h200_replay.csv.gz"


def replay(seconds: float, hz: float = 10.0) -> tuple[list[dict[str, float]], object]:
    clock = VirtualClock()
    source = open_replay(RECORDING, clock)
    rows: list[dict[str, float]] = []
    report = Sampler(
        source.devices,
        lambda _f, c, found: rows.extend(dict(zip(c, r, strict=True)) for r in found),
        hz=hz,
        clock=clock,
    ).run(seconds)
    return rows, report


def test_a_workload_replayed_gives_many_observations_with_real_variance() -> None:
    rows, report = replay(30.0)
    assert len(rows) >= 100
    assert pstdev([r["gpu_util_ratio"] for r in rows]) > 0.2
    assert pstdev([r["power_w"] for r in rows]) > 100
    assert report.devices[0].util_period_s == pytest.approx(0.2, abs=0.02)
    assert report.skipped_ticks == 0


def test_activity_read_once_a_second_adds_up_to_what_was_recorded() -> None:
    ((_, tape),) = load_tapes(RECORDING).items()
    rows, _ = replay(30.0)
    for column in ("tensor_ratio", "dram_ratio", "engine_ratio", "fp32_ratio"):
        at = [r["at_ms"] for r in rows] + [rows[0]["at_ms"] + 30_000]
        done = sum(r[column] * (b - a) for r, a, b in zip(rows, at, at[1:], strict=False)) / 30_000
        assert done == pytest.approx(tape.mean(column, 0.0, 30.0), rel=0.02, abs=1e-4), column


def test_energy_is_the_counters() -> None:
    ((_, tape),) = load_tapes(RECORDING).items()
    rows, _ = replay(30.0)
    gained = rows[-1]["energy_mj"] - rows[0]["energy_mj"]
    last_s = (rows[-1]["at_ms"] - rows[0]["at_ms"]) / 1000
    assert gained == pytest.approx(tape.energy_mj(last_s) - tape.energy_mj(0.0), rel=0.01)


def test_a_recording_plays_on_in_a_loop() -> None:
    rows, _ = replay(80.0)
    assert len(rows) > 700
    energy = [r["energy_mj"] for r in rows]
    assert energy == sorted(energy)
    assert fmean(r["power_w"] for r in rows[:300]) == pytest.approx(fmean(r["power_w"] for r in rows[340:640]), rel=0.2)


def test_without_a_loop_the_last_reading_stays() -> None:
    clock = VirtualClock()
    api = from_csv(RECORDING, clock=clock, loop=False)
    clock.sleep(500.0)
    handle = api.nvmlDeviceGetHandleByIndex(0)
    before = api.nvmlDeviceGetPowerUsage(handle)
    clock.sleep(500.0)
    assert api.nvmlDeviceGetPowerUsage(handle) == before


def test_a_scenario_may_have_many_gpus() -> None:
    api = from_scenario(Scenario([Segment(5.0, power_w=100.0, gpu_util_ratio=0.5)]), gpus=8)
    assert len({d.facts.gpu_uuid for d in NvmlSource(api).devices}) == 8


def test_the_fake_has_no_call_the_real_library_lacks() -> None:
    import pynvml

    from gpuledger.devices.replay.fake_nvml import FakeNvml

    calls = [n for n in vars(FakeNvml) if n.startswith("nvml")]
    assert len(calls) > 20
    assert all(callable(getattr(pynvml, n)) for n in calls)
    with pytest.raises(AttributeError):
        FakeNvml([]).nvmlDeviceGetPcieThroughput  # noqa: B018


def test_the_example_in_the_docs_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "recording.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    assert "assert" in example
    exec(compile(example, "docs/recording.md", "exec"), {})
