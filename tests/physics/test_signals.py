"""Do the signals of samples and of ledger lines say the same of the same time?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpuledger.efficiency.window import Window, make_window

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.physics.signals import LONG_IDLE_S, Signals, from_line, from_window
from gpuledger.units import GIB, MIB, MS_PER_HOUR, PPM

HOUR = MS_PER_HOUR


@pytest.fixture(scope="module")
def h200() -> Gpu:
    return get_gpu("NVIDIA H200")


def window(**columns: Any) -> Window:
    rows = max(len(np.atleast_1d(v)) for v in columns.values())
    return make_window({k: np.broadcast_to(np.asarray(v, float), rows) for k, v in columns.items()}, np.ones(rows))


def test_power_is_set_against_limit_and_idle(h200: Gpu) -> None:
    """H200: 81 W idle, 700 W limit. 390.5 W is half of the way; at a limit of 600 W it is 0.651 of it."""
    found = from_window(window(power_w=[390.5]), h200)
    assert (found.power_ratio, found.power_above_idle_ratio) == (pytest.approx(390.5 / 700), pytest.approx(0.5))
    assert from_window(window(power_w=[390.5]), h200, 600.0).power_ratio == pytest.approx(0.6508, rel=1e-3)
    assert from_window(window(power_w=[390.5])).power_ratio is None
    assert from_window(window(power_w=[40.0]), h200).power_above_idle_ratio == 0


def test_memory_traffic_and_clock(h200: Gpu) -> None:
    rows = window(
        fb_used_bytes=[14 * GIB], fb_free_bytes=[126 * GIB], nvlink_bytes_per_s=[90e9], pcie_rx_bytes_per_s=[3e9],
        pcie_tx_bytes_per_s=[1e9], sm_clock_mhz=[990.0],
    )  # fmt: skip
    found = from_window(rows, h200)
    assert found.fb_used_ratio == pytest.approx(0.1)
    # Held from 2 % of the card on, which is 2.8 GiB here.
    assert found.held_ratio == pytest.approx(5.0)
    assert (found.nvlink_ratio, found.pcie_bytes_per_s) == (pytest.approx(0.1), pytest.approx(4e9))
    assert found.clock_ratio == pytest.approx(0.5)
    # The card's size not known: 2 GiB decide.
    assert from_window(window(fb_used_bytes=[3 * GIB])).held_ratio == pytest.approx(1.5)


def test_bins_and_bounces() -> None:
    bouncing = from_window(window(gpu_util_ratio=[0.0, 1.0] * 10))
    assert bouncing.util_bins is not None
    assert (bouncing.util_bins[0], bouncing.util_bins[19]) == (0.5, 0.5)
    # Ten starts in twenty seconds, the first of them from a stop: 30 a minute.
    assert bouncing.bounces_per_min == pytest.approx(30)
    assert from_window(window(gpu_util_ratio=[0.5] * 20)).bounces_per_min == 0
    assert from_window(window(power_w=[100.0] * 20)).bounces_per_min is None


def test_long_pauses_are_left_out_and_short_ones_are_not() -> None:
    short, long = [0.0] * int(LONG_IDLE_S), [0.0] * int(LONG_IDLE_S + 1)
    work = [0.9] * 30
    found = from_window(window(engine_ratio=work + short))
    assert (found.engine_ratio, found.idle_ratio) == (pytest.approx(0.45), 0)
    found = from_window(window(engine_ratio=work + long))
    assert (found.engine_ratio, found.idle_ratio) == (pytest.approx(0.9), pytest.approx(31 / 61))
    asleep = from_window(window(engine_ratio=long))
    assert (asleep.engine_ratio, asleep.idle_ratio) == (0, 1)
    # Without engine activity utilization says what a pause is.
    assert from_window(window(gpu_util_ratio=work + long)).util_ratio == pytest.approx(0.9)


def test_a_line_says_what_its_samples_say(line: Callable[..., dict[str, Any]], h200: Gpu) -> None:
    """Half an hour idle, half an hour at work: the work is judged by its own half."""
    half = HOUR // 2
    sums: dict[str, Any] = {"idle_ms": half, "fb_ms": HOUR, "fb_mib_ms": 1000 * HOUR, "card_bytes": 100_000 * MIB}
    for name, ratio in (("engine", 0.8), ("sm", 0.6), ("dram", 0.2), ("tensor", 0.4)):
        sums |= {f"{name}_ms": HOUR, f"{name}_ppm_ms": round(ratio * PPM) * half}
    sums |= {"nvlink_ms": HOUR, "nvlink_bytes": 90 * 10**9 * 1800, "clock_ms": HOUR, "clock_mhz_ms": 990 * HOUR}
    found = from_line(line(0, util=0.4, pif=0.5, **sums), h200)
    assert found.idle_ratio == pytest.approx(0.5)
    pipes = (found.engine_ratio, found.sm_ratio, found.dram_ratio, found.tensor_ratio)
    assert pipes == pytest.approx((0.8, 0.6, 0.2, 0.4))
    assert (found.util_ratio, found.power_ratio) == (pytest.approx(0.4), pytest.approx(0.5))
    assert (found.nvlink_ratio, found.clock_ratio) == (pytest.approx(0.1), pytest.approx(0.5))
    assert found.fb_used_ratio == pytest.approx(0.01)
    assert found.util_bins is not None
    assert sum(found.util_bins) == pytest.approx(1)
    assert (found.occupancy_ratio, found.pcie_bytes_per_s, found.bounces_per_min) == (None, None, None)


def test_a_line_that_is_all_idle(line: Callable[..., dict[str, Any]]) -> None:
    found = from_line(line(0, util=0.0, idle_held_ms=HOUR, engine_ms=HOUR))
    assert (found.idle_ratio, found.engine_ratio) == (1, 0)


def test_nothing_is_nothing(line: Callable[..., dict[str, Any]]) -> None:
    assert from_line({}).known() == frozenset()
    assert from_window(make_window({}, np.zeros(0))) == Signals()
    assert "util_ratio" not in from_line(line(0)).known()
