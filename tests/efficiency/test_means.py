"""Are means, quantiles and shares what a pencil says?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.means import quantiles_pct
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.physics.assumed import blind
from gpuledger.report.documents.efficiency import A_RANGE, key_figures
from gpuledger.units import MS_PER_HOUR, PPM, Range, Unknown

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
A100 = "NVIDIA A100-SXM4-40GB"


def test_means_are_weighted_by_time(state: State, line: Line) -> None:
    found = state(line(0, util=0.9, pif=0.8), line(1, util=0.3, pif=0.2, ms=MS_PER_HOUR // 2)).fleet
    assert found.gpu_util_pct == pytest.approx((90 + 30 / 2) / 1.5)
    assert found.pif == pytest.approx((0.8 + 0.2 / 2) / 1.5)
    assert found.rfu_power_pct == pytest.approx(60)
    assert found.efficiency_gap_pp == pytest.approx(70 - 60)
    assert found.observed_h == pytest.approx(1.5)
    assert found.power_w == pytest.approx(700 * 0.6)


def test_pif_is_over_each_board_not_over_the_sum_of_watts(state: State, line: Line) -> None:
    """Half of 700 W and all of 400 W: PIF 0.75 on average, though 750 of 1100 W is 0.68."""
    found = state(line(0, "GPU-a", pif=0.5), line(0, "GPU-b", pif=1.0, model=A100)).fleet
    assert found.pif == pytest.approx(0.75)


def test_idle_power_taken_off(state: State, line: Line) -> None:
    """H100: 70 W idle of 700 W. At 385 W, half of the 630 W between."""
    assert state(line(0, pif=385 / 700)).fleet.rfu_power_idle_corrected_pct == pytest.approx(50)
    assert state(line(0, pif=0.05)).fleet.rfu_power_idle_corrected_pct == 0


def test_idle_power_that_is_not_in_the_catalog(state: State, line: Line) -> None:
    row = line(0, pif=0.5, model="Tesla V100-SXM2-16GB", limit_mw=300_000)
    row |= {"pif_ms": MS_PER_HOUR, "pif_uj": 150_000 * MS_PER_HOUR}
    found = state(row)
    assert found.fleet.pif == pytest.approx(0.5)
    assert isinstance(found.fleet.rfu_power_idle_corrected_pct, Unknown)
    assert any("idle power" in n.why for n in found.not_known)


def test_energy_in_kwh(state: State, line: Line) -> None:
    """700 W for an hour, half of it."""
    assert state(line(0, pif=0.5)).fleet.energy_kwh == pytest.approx(0.35)


def test_memory_is_the_counter_as_it_is(state: State, line: Line) -> None:
    row = line(0, dram_ms=MS_PER_HOUR, dram_ppm_ms=400_000 * MS_PER_HOUR)
    assert state(row).fleet.memory_pct == pytest.approx(40)


BLIND = blind([True] * 4)


def pipes(**activity: float) -> dict[str, int]:
    """Pipe activity (ratio) at 1830 MHz for an hour."""
    out: dict[str, int] = {}
    for pipe, ratio in activity.items():
        out[f"{pipe}_ms"] = MS_PER_HOUR
        out[f"{pipe}_ppm_ms"] = round(ratio * PPM) * MS_PER_HOUR
        out[f"{pipe}_ppm_mhz_ms"] = round(ratio * PPM) * 1830 * MS_PER_HOUR
    return out


def counters(found: EfficiencyStatement) -> Range:
    assert isinstance(found.fleet.rfu_counters_pct, Range)
    return found.fleet.rfu_counters_pct


def test_counters_with_a_label(state: State, line: Line) -> None:
    found = counters(state(line(0, tensor_precision="bf16", **pipes(tensor=0.5, fp32=0.2))))
    vector = 100 * 0.2 * 256 / 4096
    # The counter takes an add for a fused multiply-add, so vector work is a range too.
    # How full the SMs are is not recorded: the products may have a single row each, 0.08 of what the pipe can do.
    assert found.low == pytest.approx(50 * 0.08 + 0.45 * vector, rel=1e-3)
    assert found.middle == pytest.approx(50 * 0.95 + vector, rel=1e-3)
    assert found.high == pytest.approx(50 * 1.00 + 1.03 * vector, rel=1e-3)
    assert (found.evidence, found.note) == ("counters", BLIND)
    assert isinstance(found.point, Unknown)


def test_counters_of_the_tensor_pipe_alone_are_a_lower_bound(state: State, line: Line) -> None:
    found = counters(state(line(0, **pipes(tensor=0.5))))
    assert "only the tensor pipe is recorded: a lower bound" in found.note
    assert "tf32 to fp8" in found.note
    # tf32 runs at half the rate of bf16 and fp8 at twice it; SM activity, which would narrow it, is not recorded.
    assert found.low == pytest.approx(50 / 2 * 0.08, rel=1e-3)
    assert found.middle == pytest.approx(50 * 0.95, rel=1e-3)
    assert found.high == pytest.approx(50 * 2 * 1.0, rel=1e-3)


def test_the_high_end_holds_the_vector_work_that_may_hide(state: State, line: Line) -> None:
    """bf16 at 10 %: 9.5 % of the peak. The engine is busy all the time: fp32 at 1/16 of the peak may fill the rest."""
    found = counters(state(line(0, util=1.0, tensor_precision="bf16", **pipes(tensor=0.1))))
    assert found.middle == pytest.approx(9.5, rel=1e-3)
    assert found.high == pytest.approx(9.5 + (100 - 9.5) * 66.9 / 989.5, rel=2e-3)
    seen = counters(state(line(0, util=1.0, tensor_precision="bf16", **pipes(tensor=0.1, fp32=0.0))))
    assert seen.high == pytest.approx(10, rel=1e-3)


def test_kinds_of_tensor_work_are_counted_apart_where_known(state: State, line: Line) -> None:
    """int8 runs at twice the rate of bf16, fp64 at a sixteenth; the tensor counter itself is then left out."""
    split = pipes(tensor=0.6, hmma=0.3, imma=0.2, dfma=0.1, fp32=0.0)
    found = counters(state(line(0, tensor_precision="bf16", **split)))
    assert found.high == pytest.approx(30 + 0.97 * 20 * 2 + 1.03 * 10 / 16, rel=1e-3)
    # Known for a part of the line only: the whole pipe is the better witness.
    split |= {"hmma_ms": MS_PER_HOUR // 2}
    assert counters(state(line(0, tensor_precision="bf16", **split))).high == pytest.approx(60, rel=1e-3)


def test_vector_pipes_without_a_tensor_pipe(state: State, line: Line) -> None:
    found = counters(state(line(0, util=0.9, **pipes(fp32=0.8))))
    assert found.middle == pytest.approx(100 * 0.8 * 256 / 4096, rel=1e-3)
    assert "the tensor pipe is not recorded: a lower bound" in found.note
    # Matrix products at full rate, in fp8 twice the peak of bf16, may fill the rest of the busy time.
    assert found.high == pytest.approx(5 + 2 * 85, rel=1e-3)
    assert isinstance(found.point, Unknown)


def test_counters_are_weighted_by_time_as_power_is(state: State, line: Line) -> None:
    half = {name: value // 2 for name, value in pipes(tensor=0.2, fp32=0.0).items()}
    rows = [
        line(0, tensor_precision="bf16", **pipes(tensor=0.8, fp32=0.0)),
        line(1, tensor_precision="fp8", ms=MS_PER_HOUR // 2, **half),
    ]
    found = counters(state(*rows))
    assert found.high == pytest.approx((80 + 40 / 2) / 1.5, rel=1e-3)
    assert found.note == BLIND


def test_counters_on_a_gpu_without_rates(state: State, line: Line) -> None:
    found = state(line(0, model="AMD Instinct MI300X", **pipes(tensor=0.5)))
    assert isinstance(found.fleet.rfu_counters_pct, Unknown)
    assert "catalog" in found.fleet.rfu_counters_pct.why


def test_a_quantile_is_interpolated_in_its_bin() -> None:
    """Four bins of 25 %: 1, 1, 2, 0 hours. Half of the time lies below 50 %, three quarters below 62.5 %."""
    hours = np.array([[1.0, 1.0, 2.0, 0.0]])
    assert quantiles_pct(hours, 0.50) == [pytest.approx(50)]
    assert quantiles_pct(hours, 0.75) == [pytest.approx(62.5)]
    assert quantiles_pct(hours, 1.00) == [pytest.approx(75)]


def test_no_time_has_no_quantile() -> None:
    known, unknown = quantiles_pct(np.array([[0.0, 4.0], [0.0, 0.0]]), 0.5)
    assert known == pytest.approx(75)
    assert isinstance(unknown, Unknown)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_a_quantile_is_off_by_a_bin_at_most(values: list[float], q: float) -> None:
    bins = np.bincount([min(int(v * 20), 19) for v in values], minlength=20).astype(float)[None, :]
    (found,) = quantiles_pct(bins, q)
    true = sorted(values)[min(len(values) - 1, int(np.ceil(q * len(values) - 1e-9)) - 1)]
    assert not isinstance(found, Unknown)
    assert abs(found - 100 * true) <= 5 + 1e-6


@given(st.lists(st.floats(0, 100), min_size=20, max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise(bins: list[float], a: float, b: float) -> None:
    (low,), (high,) = (quantiles_pct(np.array([bins]), q) for q in sorted((a, b)))
    if isinstance(low, Unknown) or isinstance(high, Unknown):
        assert sum(bins) == 0
    else:
        assert 0 <= low <= high + 1e-9 <= 100 + 1e-6


def test_a_range_for_want_of_counters_names_them(state: State, line: Line) -> None:
    used = {"tensor_ms": MS_PER_HOUR, "tensor_ppm_ms": PPM // 2 * MS_PER_HOUR, "fp32_ms": MS_PER_HOUR}
    used |= {"tensor_ppm_mhz_ms": PPM // 2 * 1830 * MS_PER_HOUR, "tensor_precision": "bf16"}
    (figure,) = (f for f in key_figures(state(line(0, util=0.9, pif=0.5, **used))) if f.label == "RFU by counters")
    assert figure.note == A_RANGE
    assert counters(state(line(0, util=0.9, pif=0.5, **used))).note == BLIND
    more = dict.fromkeys(("sm_ms", "occupancy_ms", "dram_ms", "engine_ms"), MS_PER_HOUR)
    more |= {"sm_ppm_ms": used["tensor_ppm_ms"], "occupancy_ppm_ms": PPM // 10 * MS_PER_HOUR}
    (figure,) = (f for f in key_figures(state(line(0, util=0.9, **used, **more))) if f.label == "RFU by counters")
    assert figure.note == "what the pipes did, of the dense peak"
