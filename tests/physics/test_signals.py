"""Do the figures of a stretch of time say what its samples said?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import samples as make

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.ledger import lines
from gpuledger.ledger.posting import post
from gpuledger.physics.signals import BINS, GpuFacts, Signals, from_sums, signal_rows
from gpuledger.units import GIB

IDLE = ("idle_ms", "idle_held_ms", "idle_unknown_ms")


def sums_of(rows: list[dict[str, Any]], limits: Thresholds, step_ms: int = 1000) -> dict[str, Any]:
    """The sums of samples at even steps: of the time that was not idle, or of all of it where all of it was."""
    given = {"gpu_uuid": "G", "gpu_model": make.H200}
    table = post(make.table([given | r | {"at_ms": make.DAY + i * step_ms} for i, r in enumerate(rows)]), limits).lines
    worked = table.filter(pc.not_equal(table["state"].cast("string"), "idle"))
    mine = worked if worked.num_rows else table
    out: dict[str, Any] = {name: sum(mine[name].to_pylist()) for name in lines.names("sum")}
    out["card_bytes"] = max((c for c in mine["card_bytes"].to_pylist() if c is not None), default=None)
    out["limit_mw"] = mine["limit_mw"][0].as_py()
    states = zip(mine["state"].to_pylist(), mine["observed_ms"].to_pylist(), strict=True)
    out["capped_ms"] = sum(ms for state, ms in states if state == "capped")
    out["all_ms"] = sum(table["observed_ms"].to_pylist())
    return out | {"resting_ms": sum(sum(table[name].to_pylist()) for name in IDLE)}


def signals(rows: list[dict[str, Any]], limits: Thresholds, gpu: Gpu | None = None, **more: Any) -> Signals:
    return from_sums(sums_of(rows, limits, **more), gpu)


def test_power_is_set_against_limit_and_idle(limits: Thresholds, h200: Gpu) -> None:
    """H200: 81 W idle, 700 W limit. 390.5 W is half of the way; at a limit of 600 W it is 0.651 of it."""
    row = {"gpu_util_ratio": 0.5, "power_w": 390.5}
    found = signals([row], limits, h200, step_ms=1000)
    assert found.power_ratio is None, "one sample stands for no time"
    found = signals([row] * 2, limits, h200)
    assert (found.power_ratio, found.power_above_idle_ratio) == (pytest.approx(390.5 / 700), pytest.approx(0.5))
    capped = signals([row | {"power_limit_w": 600.0}] * 2, limits, h200)
    assert capped.power_ratio == pytest.approx(390.5 / 600)
    assert capped.power_above_idle_ratio == pytest.approx(309.5 / 519)
    assert signals([row] * 2, limits).power_above_idle_ratio is None
    assert signals([row | {"power_w": 40.0}] * 2, limits, h200).power_above_idle_ratio == 0


def test_time_at_a_lowered_power_limit(limits: Thresholds, h200: Gpu) -> None:
    """H200: made for 700 W. Three of five seconds at a limit of 500 W."""
    work = {"gpu_util_ratio": 1.0, "sm_ratio": 0.9, "engine_ratio": 1.0, "power_limit_w": 500.0}
    rows = [work | {"power_w": 495.0}] * 3 + [work | {"power_w": 300.0}] * 2
    assert signals(rows, limits, h200).capped_ratio == pytest.approx(3 / 5)
    assert signals([work | {"power_w": 300.0}] * 2, limits, h200).capped_ratio == 0


def test_memory_traffic_and_clock(limits: Thresholds, h200: Gpu) -> None:
    row = {
        "gpu_util_ratio": 0.5, "fb_used_bytes": 14 * GIB, "fb_free_bytes": 126 * GIB, "nvlink_bytes_per_s": 90e9,
        "pcie_rx_bytes_per_s": 3e9, "pcie_tx_bytes_per_s": 1e9, "sm_clock_mhz": 990.0,
    }  # fmt: skip
    found = signals([row] * 2, limits, h200)
    assert found.fb_used_ratio == pytest.approx(0.1)
    # Held from 2 % of the card on, which is 2.8 GiB here.
    assert found.held_ratio == pytest.approx(5.0)
    assert (found.nvlink_ratio, found.pcie_bytes_per_s) == (pytest.approx(0.1), pytest.approx(4e9))
    assert found.clock_ratio == pytest.approx(0.5)
    # The card's size not known: 2 GiB decide.
    small = signals([{"gpu_util_ratio": 0.5, "fb_used_bytes": 3 * GIB}] * 2, limits)
    assert (small.held_ratio, small.fb_used_ratio) == (pytest.approx(1.5), None)


def test_waits_and_bounces(limits: Thresholds) -> None:
    """Ten times 1 s of work and 1 s of pause: the last pause is at the edge, so 9 of 19 s are waits, 9 of them."""
    found = signals([{"gpu_util_ratio": u} for u in [1.0, 0.0] * 10], limits)
    assert found.wait_ratio == pytest.approx(9 / 19)
    assert found.bounces_per_min == pytest.approx(9 * 60 / 19)
    assert found.idle_ratio == pytest.approx(1 / 20)
    assert found.util_bins is not None
    assert (found.util_bins[0], found.util_bins[BINS - 1]) == (pytest.approx(9 / 19), pytest.approx(10 / 19))
    steady = signals([{"gpu_util_ratio": 0.5}] * 20, limits)
    assert (steady.bounces_per_min, steady.wait_ratio) == (0, 0)


def test_long_pauses_are_left_out_and_short_ones_are_not(limits: Thresholds) -> None:
    """30 s of work at 90 %, a pause, and 30 s of work: 29 s of pause are part of it, 30 s are idle."""
    work = [{"engine_ratio": 0.9}] * 30
    short = signals([*work, *[{"engine_ratio": 0.0}] * 29, *work], limits)
    assert (short.engine_ratio, short.idle_ratio) == (pytest.approx(0.9 * 60 / 89), 0)
    long = signals([*work, *[{"engine_ratio": 0.0}] * 30, *work], limits)
    assert (long.engine_ratio, long.idle_ratio) == (pytest.approx(0.9), pytest.approx(30 / 90))
    asleep = signals([{"engine_ratio": 0.0}] * 40, limits)
    assert (asleep.engine_ratio, asleep.idle_ratio) == (0, 1)
    # Without engine activity utilization says what a pause is.
    by_util = [{"gpu_util_ratio": 0.9}] * 30
    assert signals([*by_util, *[{"gpu_util_ratio": 0.0}] * 31, *by_util], limits).util_ratio == pytest.approx(0.9)


def test_rows_are_judged_each_by_itself(limits: Thresholds, h200: Gpu) -> None:
    """Rows at once, of an H200 and of a GPU nobody knows: each as it is alone."""
    busy = {"gpu_util_ratio": 0.5, "engine_ratio": 0.4, "power_w": 390.5, "sm_clock_mhz": 990.0}
    stretches = [sums_of([busy] * 5, limits), sums_of([{"gpu_util_ratio": 0.9}] * 5, limits)]
    both = {name: np.array([np.nan if s[name] is None else float(s[name]) for s in stretches]) for name in stretches[0]}
    found = signal_rows(both, GpuFacts.of([h200, None], np.array([0, 1])))
    for i, gpu in enumerate((h200, None)):
        alone = from_sums(stretches[i], gpu)
        for name, values in found.items():
            value = getattr(alone, name)
            assert (np.isnan(values[i]) and value is None) or values[i] == value, name


def test_nothing_is_nothing(limits: Thresholds) -> None:
    empty = dict.fromkeys((*lines.names("sum"), "all_ms", "resting_ms", "capped_ms"), 0)
    empty |= {"card_bytes": None, "limit_mw": None}
    assert from_sums(empty) == Signals()
    unstated = signals([{"power_w": 100.0}] * 3, limits)
    assert {"util_ratio", "engine_ratio", "util_bins"}.isdisjoint(unstated.known())
