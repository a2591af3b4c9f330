"""Do the activity counters give means without holes, and degrade one by one?"""

from __future__ import annotations

import pynvml
import pytest

from gpuledger.devices import gpm
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import DriverError, Unsupported
from gpuledger.devices.replay.script import Board, Ramp, Scenario, Segment
from gpuledger.telemetry import schema

COLUMNS = gpm.columns()


def reader(scenario: Scenario, clock: VirtualClock, *faults: object) -> tuple[gpm.GpmReader, dict[str, str]]:
    absent: dict[str, str] = {}
    api = FakeNvml([Board(scenario)], clock, faults)
    return gpm.GpmReader(api, api.nvmlDeviceGetHandleByIndex(0), None, absent), absent


def test_every_metric_is_one_of_nvml_and_fills_a_column_of_the_schema() -> None:
    for metric in gpm.metrics():
        assert isinstance(getattr(pynvml, metric.metric), int)
        assert metric.column in schema.columns()
    assert len({m.metric for m in gpm.metrics()}) == len(gpm.metrics())


def test_windows_lie_end_to_end_however_uneven() -> None:
    clock = VirtualClock()
    scenario = Scenario([Segment(10.0, tensor_ratio=Ramp(0.0, 1.0))])
    read, _ = reader(scenario, clock)
    assert set(read.read()) == {None}
    area, lengths = 0.0, (0.3, 1.7, 0.1, 2.4, 3.5)
    for length in lengths:
        clock.sleep(length)
        area += length * float(read.read()[COLUMNS.index("tensor_ratio")] or 0)
    assert area == pytest.approx(sum(lengths) ** 2 / 20)  # the area under the ramp: nothing missed, nothing twice


def test_a_window_that_fails_does_not_spoil_the_next() -> None:
    clock = VirtualClock()
    scenario = Scenario([Segment(1.0, sm_ratio=0.2), Segment(1.0, sm_ratio=0.6), Segment(1.0, sm_ratio=0.9)])
    read, _ = reader(scenario, clock, DriverError("nvmlGpmMetricsGet", at_s=1.5))
    read.read()
    clock.sleep(1.0)
    assert read.read()[COLUMNS.index("sm_ratio")] == pytest.approx(0.2)
    clock.sleep(1.0)
    with pytest.raises(pynvml.NVMLError):
        read.read()
    clock.sleep(1.0)
    assert read.read()[COLUMNS.index("sm_ratio")] == pytest.approx(0.9)


def test_a_metric_the_gpu_lacks_is_named_and_asked_no_more() -> None:
    clock = VirtualClock()
    scenario = Scenario([Segment(9.0, sm_ratio=0.2, fp64_ratio=0.1)])
    read, absent = reader(scenario, clock, Unsupported("NVML_GPM_METRIC_FP64_UTIL"))
    read.read()
    for _ in range(2):
        clock.sleep(1.0)
        found = dict(zip(COLUMNS, read.read(), strict=True))
        assert found["fp64_ratio"] is None
        assert found["sm_ratio"] == pytest.approx(0.2)
    assert "FP64" in absent["fp64_ratio"]
    assert "sm_ratio" not in absent


def test_a_metric_without_data_in_one_window_is_asked_again() -> None:
    clock = VirtualClock()
    scenario = Scenario([Segment(1.0, dram_ratio=0.5), Segment(1.0, sm_ratio=0.5), Segment(1.0, dram_ratio=0.7)])
    read, absent = reader(scenario, clock)
    read.read()
    found = []
    for _ in range(3):
        clock.sleep(1.0)
        found.append(read.read()[COLUMNS.index("dram_ratio")])
    assert found == [pytest.approx(0.5), None, pytest.approx(0.7)]
    assert "dram_ratio" not in absent


@pytest.mark.parametrize(("said", "kept"), [(1.0, 1.0), (1.01, 1.0), (1.5, None), (-0.1, None), (float("nan"), None)])
def test_a_share_that_cannot_be_true_is_not_kept(said: float, kept: float | None) -> None:
    clock = VirtualClock()
    read, _ = reader(Scenario([Segment(9.0, sm_ratio=said)]), clock)
    read.read()
    clock.sleep(1.0)
    assert read.read()[COLUMNS.index("sm_ratio")] == kept


def test_the_sample_buffers_are_given_back() -> None:
    clock = VirtualClock()
    api = FakeNvml([Board(Scenario([Segment(1.0, sm_ratio=0.1)]))], clock)
    read = gpm.GpmReader(api, api.nvmlDeviceGetHandleByIndex(0), None, {})
    assert len(api._buffers) == 2
    read.close()
    assert not api._buffers
