"""What did the fleet do hour by hour?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpuledger.efficiency.hours import device_hours
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.ledger import gpu_hours
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, PPM, day_start_ms

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
START = day_start_ms("2026-01-20")
A100 = "NVIDIA A100-SXM4-40GB"


def test_tflops_and_watts_are_sums_over_gpus_of_their_means(state: State, line: Line) -> None:
    """A GPU seen for a quarter of the hour counts with its mean, not with a quarter of it."""
    rows = [line(0, "GPU-a", util=0.9, pif=0.5), line(0, "GPU-b", util=0.1, pif=1.0, model=A100, ms=MS_PER_HOUR // 4)]
    (hour,) = state(*rows).hours
    assert hour.realized_power_tflops == pytest.approx(646 * 0.5 + 102)
    assert hour.power_kw == pytest.approx(0.35 + 0.4)
    assert hour.gpu_util_pct == pytest.approx((90 + 10 / 4) / 1.25)
    assert hour.efficiency_gap_pp == pytest.approx((90 + 10 / 4) / 1.25 - (50 + 100 / 4) / 1.25)
    assert (hour.start_ms, hour.gpus, hour.samples) == (START, 2, 120)


def test_hours_and_folded_days_stand_side_by_side(state: State, line: Line) -> None:
    day = 24 * MS_PER_HOUR
    rows = [line(0, util=0.5, grain_ms=day, ms=day), line(24, util=0.7), line(25, util=0.9)]
    found = state(*rows).hours
    assert [(h.hours, h.gpu_util_pct) for h in found] == [
        (24, pytest.approx(50)),
        (1, pytest.approx(70)),
        (1, pytest.approx(90)),
    ]


def test_counters_by_hour(state: State, line: Line) -> None:
    """SMs active for no longer than the pipe: large products."""
    used = {"tensor_precision": "bf16", **dict.fromkeys(("tensor_ms", "fp32_ms", "sm_ms"), MS_PER_HOUR)}

    def at(ratio: float) -> dict[str, int]:
        activity = round(PPM * ratio) * MS_PER_HOUR
        return {"tensor_ppm_ms": activity, "sm_ppm_ms": activity, "tensor_ppm_mhz_ms": activity * 1830}

    rows = [line(0, **used, **at(0.5)), line(1, **used, **at(0.25))]
    found = [h.rfu_counters_pct for h in state(*rows).hours]
    assert found == [pytest.approx(50 * 0.95, rel=1e-3), pytest.approx(25 * 0.95, rel=1e-3)]


def test_cells_of_the_plane(state: State, line: Line) -> None:
    rows = [
        line(0, "GPU-a", util=0.96, pif=0.99),
        line(1, "GPU-a", util=1.0, pif=1.0),
        line(0, "GPU-b", util=0.82, pif=0.41),
        line(1, "GPU-b", util=0.82, pif=0.41, ms=MS_PER_HOUR // 2),
    ]
    found = [(c.util_low_pct, c.pif_low, c.hours, c.klass) for c in state(*rows).util_power]
    assert found == [(80, 0.4, 1.5, "bottlenecked"), (95, 0.95, 2, "efficient")]


def test_slices_of_a_board_come_together_whatever_file_is_next() -> None:
    """A slice that ended reaches over midnight; the first file of the next day ends with its board as a whole."""
    midnight = MS_PER_DAY

    def rows(devices: list[int], hour_ms: int) -> dict[str, np.ndarray]:
        count = len(devices)
        sums = {name: np.ones(count, dtype=np.int64) for name in ("limit_mw", *gpu_hours.SUMS)}
        hours = {"hour_ms": np.full(count, hour_ms), "grain_ms": np.full(count, MS_PER_HOUR)}
        return {"device": np.array(devices), **hours, **sums}

    before = {name: np.concatenate([rows([1], 0)[name], rows([1], midnight)[name]]) for name in rows([1], 0)}
    files = [(0, before), (midnight, rows([0], midnight)), (midnight, rows([2], midnight))]
    found = [
        np.unique(some["device"][some["hour_ms"] == midnight]).tolist()
        for some in device_hours(files, np.array([0, 0, 1]))
    ]
    assert [devices for devices in found if devices] == [[0, 1], [2]]
