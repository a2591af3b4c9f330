"""Are missed counter windows filled from the reading that covers them, and nothing else touched?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.physics.mending import FINE_STEP_MS, mend

NAN = float("nan")


def mended(engine, dram=None, rx=None, span=None, starts=(0,), **more) -> dict[str, list[float]]:
    n = len(engine)
    readings = {"engine_ratio": engine, "dram_ratio": dram or [0.0] * n, "pcie_rx_bytes_per_s": rx or engine, **more}
    arrays = {name: np.array(values, dtype=np.float32) for name, values in readings.items()}
    found = mend(arrays, np.array(span or [100] * n), np.array(starts))
    return {name: np.round(values.astype(float), 6).tolist() for name, values in found.items()}


def test_the_next_reading_covers_both_windows() -> None:
    """Activity is a mean over both; memory and links count amounts, so over twice the time the rate is half."""
    found = mended([0.5, 0.0, 0.8], dram=[0.2, 0.0, 0.6], rx=[10, 0, 80])
    assert found["engine_ratio"] == [0.5, 0.8, 0.8]
    assert found["dram_ratio"] == [0.2, 0.3, 0.3]
    assert found["pcie_rx_bytes_per_s"] == [10, 40, 40]


def test_several_in_a_row_share_the_next() -> None:
    """Three windows of 100 ms in one of 200 ms: two fifths of the rate it shows."""
    found = mended([0.0, 0.0, 0.0, 0.8], dram=[0.0, 0.0, 0.0, 0.5], rx=[0, 0, 0, 50], span=[100, 100, 100, 200])
    assert found["engine_ratio"] == [0.8] * 4
    assert found["dram_ratio"] == [0.2] * 4
    assert found["pcie_rx_bytes_per_s"] == [20] * 4


def test_what_comes_after_the_last_reading_is_not_known() -> None:
    found = mended([0.5, 0.0, 0.0], dram=[0.1, 0.0, 0.0])
    assert found["engine_ratio"][0] == 0.5
    assert np.isnan(found["engine_ratio"][1:] + found["dram_ratio"][1:]).all()


def test_another_devices_reading_fills_nothing() -> None:
    found = mended([0.5, 0.0, 0.7, 0.7], starts=(0, 2))
    assert np.isnan(found["engine_ratio"][1])
    assert found["engine_ratio"][2:] == [0.7, 0.7]


def test_an_idle_gpu_that_answers_its_driver_is_idle() -> None:
    """Some PCIe traffic, or none recorded at all: the window was not missed."""
    assert mended([0.5, 0.0, 0.8], rx=[10, 1, 10])["engine_ratio"] == [0.5, 0.0, 0.8]
    assert mended([0.5, 0.0, 0.8], rx=[NAN, NAN, NAN])["engine_ratio"] == [0.5, 0.0, 0.8]
    assert mended([0.5, NAN, 0.8], rx=[1, 0, 1])["pcie_rx_bytes_per_s"] == [1, 0, 1]


def test_slow_readings_meet_a_refresh_every_time() -> None:
    slow = FINE_STEP_MS + 1
    assert mended([0.5, 0.0, 0.8], span=[100, slow, 100])["engine_ratio"] == [0.5, 0.0, 0.8]
    assert mended([0.5, 0.0, 0.8], span=[slow, FINE_STEP_MS, slow])["engine_ratio"] == [0.5, 0.8, 0.8]


def test_what_nobody_records_is_not_made_up() -> None:
    found = mended([0.5, 0.0, 0.8], sm_ratio=[0.1, 0.0, NAN])
    assert set(found) == {"engine_ratio", "dram_ratio", "pcie_rx_bytes_per_s", "sm_ratio"}
    assert np.isnan(found["sm_ratio"][1])


share = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(share, share, st.sampled_from([100, 200])), min_size=1, max_size=12))
def test_amounts_are_kept(rows: list[tuple[float, float, int]]) -> None:
    """What memory moved is the same after as before, up to what was missed at the end."""
    engine, dram, span = (list(column) for column in zip(*rows, strict=True))
    found = mended(engine, dram=dram, rx=[max(e, d) for e, d in zip(engine, dram, strict=True)], span=span)
    moved = sum(0 if np.isnan(d) else d * s for d, s in zip(found["dram_ratio"], span, strict=True))
    assert abs(moved - sum(d * s for d, s in zip(dram, span, strict=True))) < 1e-3
