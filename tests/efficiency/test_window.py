"""Are counter windows that were missed mended, and nothing else?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.pipes import State
from gpuledger.efficiency.window import activity_mhz, make_window, pipe_state

STEADY = {
    "engine_ratio": [0.99, 0.0, 0.99, 0.99],
    "tensor_ratio": [0.5, 0.0, 0.5, 0.5],
    "dram_ratio": [0.3, 0.0, 0.6, 0.3],
    "pcie_tx_bytes_per_s": [1e6, 0.0, 2e6, 1e6],
    "pcie_rx_bytes_per_s": [1e6, 0.0, 2e6, 1e6],
    "sm_clock_mhz": [1600.0, 1700.0, 1700.0, 1800.0],
    "power_w": [690.0, 690.0, 690.0, 690.0],
}


def arrays(columns: dict[str, list[float]]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in columns.items()}


def test_a_missed_window_is_counted_with_the_next() -> None:
    """Four rows of 0.1 s, the second without a refresh: the third covers 0.2 s, and shows twice the traffic."""
    window = make_window(arrays(STEADY), np.full(4, 0.1))
    assert window.counter_s.tolist() == pytest.approx([0.1, 0.0, 0.2, 0.1])
    assert window.mean("tensor_ratio") == pytest.approx(0.5)
    assert window.mean("dram_ratio") == pytest.approx(0.3)
    assert window.mean("pcie_rx_bytes_per_s") == pytest.approx(1e6)
    assert window.mean("power_w") == pytest.approx(690)
    # 0.5 x (1600 x 0.1 + 1700 x 0.2 + 1800 x 0.1) / 0.4
    assert activity_mhz(window)["tensor"] == pytest.approx(850)


def test_an_idle_gpu_is_not_a_missed_window() -> None:
    idle = arrays(STEADY | {"pcie_rx_bytes_per_s": [1e6, 5e5, 1e6, 1e6]})
    assert make_window(idle, np.full(4, 0.1)).mean("tensor_ratio") == pytest.approx(0.375)
    without = {k: v for k, v in arrays(STEADY).items() if not k.startswith("pcie")}
    assert make_window(without, np.full(4, 0.1)).mean("tensor_ratio") == pytest.approx(0.375)


def test_the_product_is_taken_row_by_row() -> None:
    """Activity and clock move against each other: the mean of products is not the product of means."""
    rows = {"tensor_ratio": [1.0, 0.0], "sm_clock_mhz": [1000.0, 2000.0]}
    assert activity_mhz(make_window(arrays(rows), np.ones(2))) == {"tensor": pytest.approx(500.0)}


def test_noise_is_no_activity() -> None:
    rows = {"fp32_ratio": [0.0003, 0.0004], "hmma_ratio": [0.001, 0.001], "sm_clock_mhz": [1980.0, 1980.0]}
    assert activity_mhz(make_window(arrays(rows), np.ones(2))) == {"fp32": 0.0, "hmma": pytest.approx(1.98)}


def test_state_is_weighted_by_the_work() -> None:
    """Three quarters of the tensor work under the power cap (bit 4), at half of the SMs' time."""
    rows = {"tensor_ratio": [0.6, 0.2, 0.0], "sm_ratio": [0.9, 0.7, 0.0], "throttle_bits": [4.0, 0.0, 1.0]}
    state = pipe_state(make_window(arrays(rows), np.ones(3)))
    assert (state.capped_ratio, state.saturation_ratio) == (pytest.approx(0.75), pytest.approx(0.5))


def test_unknown_stays_unknown() -> None:
    nothing = make_window({"tensor_ratio": np.full(3, np.nan), "power_w": np.array([1.0, np.nan, 3.0])}, np.ones(3))
    assert nothing.mean("tensor_ratio") is None
    assert nothing.mean("sm_ratio") is None
    assert nothing.mean("power_w") == 2
    assert activity_mhz(nothing) == {}
    assert pipe_state(nothing) == State(None, None)
    assert len(make_window({}, np.zeros(0))) == 0


@given(st.lists(st.tuples(st.floats(0.001, 1), st.booleans()), min_size=1, max_size=30))
def test_no_time_is_lost_but_at_the_end(rows: list[tuple[float, bool]]) -> None:
    """Windows that are missed at the very end have no next reading; all others are counted."""
    value = np.array([0.0 if missed else v for v, missed in rows])
    window = make_window({"engine_ratio": value, "pcie_rx_bytes_per_s": value}, np.ones(len(rows)))
    kept = [i for i, (_, missed) in enumerate(rows) if not missed]
    assert window.counter_s.sum() == pytest.approx(kept[-1] + 1 if kept else 0)
    assert (window.counter_s[value == 0] == 0).all()
