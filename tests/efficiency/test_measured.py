"""Does a second ratio appear over what was measured on the very board, and only then?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.physics.calibration import Calibration, MeasuredGpu
from gpuledger.units import MS_PER_HOUR, PPM, Range

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
PEAK = 989.5


def work(line: Line, gpu: str, ratio: float) -> Any:
    activity = round(ratio * PPM) * MS_PER_HOUR
    pipe = {"tensor_ms": MS_PER_HOUR, "tensor_ppm_ms": activity, "tensor_ppm_mhz_ms": activity * 1830}
    # SMs active for no longer than the pipe: large products.
    pipe |= {"fp32_ms": MS_PER_HOUR, "sm_ms": MS_PER_HOUR, "sm_ppm_ms": activity}
    return line(0, gpu, tensor_precision="bf16", **pipe)


def calibration(**tflops: float | None) -> Calibration:
    return Calibration({u: MeasuredGpu(u, "2026-03-01T00:00:00+00:00", t, "bf16") for u, t in tflops.items()})


def test_work_over_the_measured_peak(state: State, line: Line) -> None:
    found = state(work(line, "a", 0.5), calibration=calibration(a=PEAK / 2))
    counted, over = found.fleet.rfu_counters_pct, found.fleet.rfu_measured_pct
    assert isinstance(counted, Range)
    assert over is not None
    assert (over.low, over.middle, over.high) == pytest.approx((2 * counted.low, 2 * counted.middle, 2 * counted.high))
    assert any("rfu_measured_pct" in a and "bf16" in a and "2026-03-01" in a for a in found.assumptions)
    assert to_json(found)["fleet"]["rfu_measured_pct"]["middle"] == pytest.approx(over.middle)


def test_a_board_that_was_not_measured_is_left_out(state: State, line: Line) -> None:
    found = state(work(line, "a", 0.6), work(line, "b", 0.1), calibration=calibration(a=PEAK / 1.25))
    over = found.fleet.rfu_measured_pct
    assert over is not None
    assert over.middle == pytest.approx(100 * 0.6 * 0.95 * 1.25, rel=1e-3)
    assert over.note == "calibrated boards only"
    each = {g.gpu_uuid: g.means.rfu_measured_pct for g in found.per_gpu}
    assert each["b"] is None
    assert each["a"] is not None
    assert each["a"].note == ""


@pytest.mark.parametrize("given", [None, calibration(a=None), calibration(other=700.0)])
def test_without_a_measurement_there_is_no_such_ratio(state: State, line: Line, given: Calibration | None) -> None:
    found = state(work(line, "a", 0.5), calibration=given)
    assert found.fleet.rfu_measured_pct is None
    assert not any("rfu_measured_pct" in a for a in found.assumptions)
    assert not any("measured" in n["figure"] for n in to_json(found)["not_known"])
