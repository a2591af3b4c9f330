"""Is each sample in the state that its readings show?"""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
import samples as make
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.batch import Batch
from gpuledger.ledger.facts import row_facts
from gpuledger.physics.states import FREE, HELD, LABELS, NO_MEMORY, NOT_ALL_SEEN, Judged, State, judge
from gpuledger.telemetry import schema
from gpuledger.units import GIB

A10G = "NVIDIA A10G"


def judged(rows: list[dict[str, Any]], limits: Thresholds) -> Judged:
    table = make.table([{"at_ms": make.DAY + i, "gpu_uuid": "G"} | row for i, row in enumerate(rows)])
    batch = Batch(table)
    readings = {n: v for n in schema.readings() if (v := batch.numbers(n)) is not None}
    return judge(readings, row_facts(batch), limits.idle, batch.n)


def state_of(limits: Thresholds, model: str | None = make.H200, **row: Any) -> str:
    (code,) = judged([{"gpu_model": model} | row], limits).state.tolist()
    return LABELS[code]


# All pipes of an H200 at 1500 MHz. Peak: 989.5 TFLOP/s; a tensor pipe active all the time is 0.95 x 1500 / 1830 of it
# (0.78), an fp32 pipe 256 / 4096 x 1500 / 1830 (0.051).
PIPES = {"engine_ratio": 0.9, "sm_clock_mhz": 1500.0, "tensor_ratio": 0.0, "fp32_ratio": 0.0, "dram_ratio": 0.0}


@pytest.mark.parametrize(
    ("state", "row"),
    [
        ("unstated", {"power_w": 300.0}),
        ("idle", {"engine_ratio": 0.009}),
        ("plain", {"engine_ratio": 0.01}),
        # The engine tells before the SMs, the SMs before utilization.
        ("idle", {"engine_ratio": 0.0, "sm_ratio": 0.5, "gpu_util_ratio": 1.0}),
        ("idle", {"sm_ratio": 0.0, "gpu_util_ratio": 1.0}),
        ("idle", {"gpu_util_ratio": 0.09}),
        ("plain", {"gpu_util_ratio": 0.10}),
        # 81 W idle, 700 W limit: 14 % of the way is 81 + 0.14 x 619 = 167.7 W.
        ("idle", {"gpu_util_ratio": 0.0, "power_w": 167.0}),
        ("plain", {"gpu_util_ratio": 0.0, "power_w": 168.0}),
        # At a limit of 300 W it is 81 + 0.14 x 219 = 111.7 W.
        ("plain", {"gpu_util_ratio": 0.0, "power_w": 112.0, "power_limit_w": 300.0}),
        ("idle", {"gpu_util_ratio": 0.0, "power_w": 111.0, "power_limit_w": 300.0}),
        # Counters are believed: power does not make an idle engine busy, but copies over PCIe do.
        ("idle", {"engine_ratio": 0.0, "power_w": 500.0}),
        ("plain", {"engine_ratio": 0.0, "pcie_rx_bytes_per_s": 3e9, "pcie_tx_bytes_per_s": 1e9}),
        ("idle", {"engine_ratio": 0.0, "pcie_rx_bytes_per_s": 3.9e9}),
        # Shares of the peak: 0.025 x 0.78 = 0.0195 is light, 0.026 x 0.78 = 0.0203 is not.
        ("light", PIPES | {"tensor_ratio": 0.025}),
        ("matrix", PIPES | {"tensor_ratio": 0.026}),
        ("vector", PIPES | {"fp32_ratio": 0.5}),
        ("light", PIPES | {"fp32_ratio": 0.38}),
        ("memory", PIPES | {"tensor_ratio": 0.3, "dram_ratio": 0.25}),
        ("matrix", PIPES | {"tensor_ratio": 0.3, "dram_ratio": 0.22}),
        # Kinds of tensor work in place of the whole.
        ("light", PIPES | {"tensor_ratio": 0.9, "hmma_ratio": 0.0, "imma_ratio": 0.0, "dfma_ratio": 0.0}),
        ("matrix", PIPES | {"tensor_ratio": 0.9, "hmma_ratio": 0.0}),  # it may be the kind that is not recorded
        ("matrix", PIPES | {"tensor_ratio": 0.0, "hmma_ratio": 0.5, "imma_ratio": 0.0, "dfma_ratio": 0.0}),
        ("matrix", PIPES | {"hmma_ratio": 0.0, "imma_ratio": 0.0, "dfma_ratio": 0.9}),
        # A limit of 600 W (86 % of 700 W) and 97 % of it drawn; said to be capped by power, or nobody says.
        ("capped", PIPES | {"tensor_ratio": 0.9, "power_limit_w": 600.0, "power_w": 582.5}),
        ("capped", PIPES | {"tensor_ratio": 0.9, "power_limit_w": 600.0, "power_w": 590.0, "throttle_bits": 0x4}),
        ("matrix", PIPES | {"tensor_ratio": 0.9, "power_limit_w": 600.0, "power_w": 590.0, "throttle_bits": 0x20}),
        ("matrix", PIPES | {"tensor_ratio": 0.9, "power_limit_w": 600.0, "power_w": 581.0}),
        ("matrix", PIPES | {"tensor_ratio": 0.9, "power_limit_w": 690.0, "power_w": 690.0, "throttle_bits": 0x4}),
        ("idle", {"engine_ratio": 0.0, "power_limit_w": 100.0, "power_w": 100.0}),
    ],
)
def test_by_pencil(limits: Thresholds, state: str, row: dict[str, Any]) -> None:
    assert state_of(limits, **row) == state


@pytest.mark.parametrize(
    ("state", "row"),
    [
        ("matrix-unseen", {"tensor_ratio": 0.5}),
        ("light-unseen", {"tensor_ratio": 0.01}),
        ("memory-unseen", {"tensor_ratio": 0.1, "dram_ratio": 0.5}),
        ("vector-unseen", {"fp32_ratio": 0.9}),
        ("plain", {"dram_ratio": 0.5}),
        # 122 W idle + 520 W x 0.5 + 350 W x 0.2 = 452 W explain it: below 280 W more, vector work is ruled out.
        ("matrix", {"tensor_ratio": 0.5, "dram_ratio": 0.2, "power_w": 700.0}),
        ("matrix-unseen", {"tensor_ratio": 0.5, "dram_ratio": 0.2, "power_w": 733.0}),
        ("matrix-unseen", {"tensor_ratio": 0.5, "power_w": 500.0}),
        # 122 + 280 = 402 W with nothing seen.
        ("light", {"tensor_ratio": 0.0, "dram_ratio": 0.0, "power_w": 401.0}),
        ("light-unseen", {"tensor_ratio": 0.0, "dram_ratio": 0.0, "power_w": 403.0}),
    ],
)
def test_pipes_that_are_not_recorded(limits: Thresholds, state: str, row: dict[str, Any]) -> None:
    assert state_of(limits, engine_ratio=0.9, sm_clock_mhz=1500.0, **row) == state


def test_a_gpu_whose_power_was_not_measured_rules_nothing_out(limits: Thresholds) -> None:
    row = {"engine_ratio": 0.9, "sm_clock_mhz": 1500.0, "tensor_ratio": 0.5, "dram_ratio": 0.0, "power_w": 100.0}
    assert state_of(limits, A10G, **row) == "matrix-unseen"
    # Not in the catalog: what its pipes are worth is not known.
    assert state_of(limits, "Some GPU nobody knows", **row) == "plain"
    assert state_of(limits, None, gpu_util_ratio=0.0, power_w=500.0) == "idle"


def test_the_rated_clock_stands_in_for_a_missing_one(limits: Thresholds) -> None:
    """0.022 x 0.95 = 0.0209 of the peak at the rated clock, 0.0063 at 550 MHz."""
    row = {"engine_ratio": 0.9, "tensor_ratio": 0.022, "fp32_ratio": 0.0}
    assert state_of(limits, **row) == "matrix"
    assert state_of(limits, **row, sm_clock_mhz=550.0) == "light"


@pytest.mark.parametrize(
    ("memory", "row"),
    [
        (FREE, {"fb_used_bytes": 2 * GIB}),
        (HELD, {"fb_used_bytes": 2 * GIB + 1}),
        # 2 % of a card of 141 GiB is 2.82 GiB.
        (FREE, {"fb_used_bytes": int(2.8 * GIB), "fb_free_bytes": int(138.2 * GIB)}),
        (HELD, {"fb_used_bytes": int(2.9 * GIB), "fb_free_bytes": int(138.1 * GIB)}),
        (NO_MEMORY, {}),
    ],
)
def test_how_memory_stands(limits: Thresholds, memory: int, row: dict[str, Any]) -> None:
    assert judged([{"engine_ratio": 0.0} | row], limits).memory.tolist() == [memory]
    both = judged([{"engine_ratio": 0.0} | row, {"engine_ratio": 0.0, "fb_used_bytes": 0}], limits)
    assert both.memory.tolist() == [memory, FREE]


def test_names_are_in_order_and_unseen_states_follow_their_own() -> None:
    assert LABELS[State.MATRIX_UNSEEN] == "matrix-unseen"
    assert [LABELS[s].removesuffix("-unseen") for s in NOT_ALL_SEEN] == ["light", "matrix", "vector", "memory"]
    assert len(set(LABELS)) == len(State)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_arrays_agree_with_the_plain_reading_of_the_rules(limits: Thresholds, data: st.DataObject) -> None:
    """Many rows at once, of several models and sources: each in the state it has by itself."""
    recorded = data.draw(make.source())
    models = st.sampled_from([*make.MODELS, None])
    drawn = [data.draw(make.sample(recorded, gpu_model=data.draw(models))) for _ in range(data.draw(st.integers(1, 9)))]
    stamped = [row | {"at_ms": make.DAY + i, "gpu_uuid": "G"} for i, row in enumerate(drawn)]
    found = judged(drawn, limits)
    rows = make.table(stamped).to_pylist()
    assert [LABELS[code] for code in found.state.tolist()] == [oracle.state_of(row, limits) for row in rows]
    busy = [oracle.busy_of(row)[0] for row in rows]
    made = [None] * len(rows) if found.busy is None else [None if np.isnan(b) else float(b) for b in found.busy]
    assert made == busy
