"""Are the FLOPs that pipe activity proves those that ran?"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.physics.pipes import Realized, State, pipe_facts, pipe_worths, precision_name, realized
from gpuledger.units import Unknown

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "h200_windows.json").read_text(encoding="utf-8"))
ROWS = {f"{part}/{name}": row for part in ("h200_truth", "own") for name, row in RECORDED[part].items()}
IN_REACH = {name: row for name, row in ROWS.items() if "beyond" not in row}
MATRIX = {"bf16", "fp16", "tf32", "fp32", "fp64"}
PIPES = ("hmma", "imma", "dfma", "fp64", "fp32", "fp16")


@pytest.fixture(scope="module")
def h200() -> Gpu:
    return get_gpu("NVIDIA H200")


def flops(gpu: Gpu, activity: dict[str, float], precision: str | None = None, **state: Any) -> Realized:
    found = realized(gpu, activity, precision, State(**state))
    assert isinstance(found, Realized)
    return found


def test_by_hand(h200: Gpu) -> None:
    """Half of the time at 1500 MHz: 0.5 x 1500e6 x 132 SMs x 4096 FLOP = 405.5 TFLOP/s, at 0.91 of it: 369.0."""
    capped = flops(h200, {"tensor": 750.0}, "bf16", capped_ratio=1.0)
    assert capped.tflops == pytest.approx(369.0, rel=1e-3)
    assert flops(h200, {"tensor": 750.0}, "bf16", capped_ratio=0.0).tflops == pytest.approx(405.5 * 0.965, rel=1e-3)
    # Nobody says whether clocks were held down: the architecture's middle.
    assert flops(h200, {"tensor": 750.0}, "bf16").tflops == pytest.approx(405.5 * 0.95, rel=1e-3)
    # 1000 MHz on the fp32 pipe: 1000e6 x 132 x 256 = 33.8; adds alone would be half of it.
    vector = flops(h200, {"fp32": 1000.0}, "fp32")
    assert vector.tflops == pytest.approx(33.79, rel=1e-3)
    assert vector.low_tflops < 33.79 / 2 < 33.79 < vector.high_tflops


def test_where_the_range_of_an_untold_precision_begins(h200: Gpu) -> None:
    """1000 MHz of a saturated pipe in tf32: 1000e6 x 132 x 2048 = 270.3 TFLOP/s; fp8 is four times that."""
    busy = {"capped_ratio": 1.0, "saturation_ratio": 0.9}
    slim = flops(h200, {"tensor": 1000.0}, slots_ratio=0.145, **busy)
    full = flops(h200, {"tensor": 1000.0}, slots_ratio=0.18, **busy)
    assert slim.low_tflops == pytest.approx(270.3 * 0.93, rel=1e-3)
    assert full.low_tflops == pytest.approx(270.3 * 0.84, rel=1e-3)
    for found in (slim, full):
        assert found.high_tflops == pytest.approx(4 * found.low_tflops)
        assert found.low_tflops < 2 * 270.3 * 0.91 < found.high_tflops
    # Told, the slots do not matter; not recorded, the clocks decide.
    told = [flops(h200, {"tensor": 1000.0}, "tf32", slots_ratio=s, **busy).tflops for s in (0.145, 0.18, None)]
    assert told == pytest.approx([270.3 * 0.91] * 3, rel=1e-3)
    assert flops(h200, {"tensor": 1000.0}, **busy).low_tflops == pytest.approx(270.3 * 0.9055, rel=1e-3)


def test_products_of_few_rows_are_worth_half(h200: Gpu) -> None:
    """Decoding: memory busy, slots slim, the pipe seldom active. 100e6 x 132 x 4096 x 0.47 = 25.4."""
    thin = {"saturation_ratio": 0.2, "slots_ratio": 0.14}
    decoding = flops(h200, {"tensor": 100.0}, "bf16", dram_ratio=0.5, **thin)
    assert decoding.tflops == pytest.approx(25.41, rel=1e-3)
    assert any("few rows" in note for note in decoding.notes)
    for other in (
        {"dram_ratio": 0.1},
        {"dram_ratio": 0.5, "slots_ratio": 0.3},
        {"dram_ratio": 0.5, "slots_ratio": None},
    ):
        assert flops(h200, {"tensor": 100.0}, "bf16", **{**thin, **other}).tflops > 1.9 * decoding.tflops


def row_flops(gpu: Gpu, row: dict[str, Any], precision: str | None) -> Realized:
    return flops(gpu, row["activity_mhz"], precision, **row["state"])


def test_errors_of_matrix_and_language_model_rows(h200: Gpu) -> None:
    errors = {
        name: row_flops(h200, row, row["precision"]).tflops / row["true_tflops"] - 1
        for name, row in IN_REACH.items()
        if precision_name(row.get("precision")) in MATRIX
        and "family" not in row
        and row["true_tflops"] > 5
        # An add counts as two FLOPs on the vector pipe: those rows are in their range, not near its middle.
        and not name.startswith(("own/vector_add", "own/vector_max"))
    }
    assert len(errors) > 40
    assert max(map(abs, errors.values())) < 0.15, max(errors, key=lambda n: abs(errors[n]))
    assert statistics.median(map(abs, errors.values())) < 0.04
    shipped = [abs(e) for name, e in errors.items() if name.startswith("h200_truth/")]
    assert len(shipped) == 9
    assert max(shipped) < 0.08
    assert statistics.median(shipped) < 0.02


@pytest.mark.parametrize("name", IN_REACH)
def test_the_range_without_a_label_contains_the_truth(h200: Gpu, name: str) -> None:
    row = IN_REACH[name]
    found = row_flops(h200, row, None)
    assert found.low_tflops <= row["true_tflops"] <= found.high_tflops
    assert found.high_tflops <= 4 * found.low_tflops * (1 + 1e-9)


def test_rows_out_of_reach_are_still_out_of_reach(h200: Gpu) -> None:
    """A row marked so that came into reach should be marked no longer."""
    for name, row in ROWS.items():
        if "beyond" in row:
            told, untold = row_flops(h200, row, row.get("precision")), row_flops(h200, row, None)
            near = row["true_tflops"] and abs(told.tflops / row["true_tflops"] - 1) < 0.15
            assert not (near and untold.low_tflops <= row["true_tflops"] <= untold.high_tflops), name


def test_housekeeping_is_no_work(h200: Gpu) -> None:
    for name in ("memcopy", "spin_one_block", "idle", "idle_holding_memory"):
        found = row_flops(h200, ROWS[f"h200_truth/{name}"], None)
        assert (found.tflops, found.low_tflops, found.high_tflops) == (0, 0, 0)


def test_fp32_on_the_tensor_pipe_is_three_products_unless_it_fills_the_pipe(h200: Gpu) -> None:
    emulated = flops(h200, {"tensor": 100.0}, "fp32", saturation_ratio=0.4)
    tf32 = flops(h200, {"tensor": 100.0}, "tf32", saturation_ratio=0.4)
    assert emulated.tflops < tf32.tflops / 3
    assert any("three tf32" in note for note in emulated.notes)
    # Emulation cannot fill the pipe: a program that says fp32 and does runs tf32.
    full = flops(h200, {"tensor": 100.0}, "fp32", saturation_ratio=0.9)
    assert full.tflops == flops(h200, {"tensor": 100.0}, "tf32", saturation_ratio=0.9).tflops


def test_kinds_of_tensor_work_replace_the_whole_only_together(h200: Gpu) -> None:
    apart = {"hmma": 0.0, "imma": 0.0, "dfma": 1000.0}
    assert flops(h200, {"tensor": 1000.0, **apart}).tflops == flops(h200, apart).tflops
    assert flops(h200, {"tensor": 1000.0, "dfma": 500.0}).tflops == flops(h200, {"tensor": 1000.0}).tflops
    # A label that names the pipe tells what the whole was.
    assert flops(h200, {"tensor": 1000.0}, "fp64").tflops == pytest.approx(flops(h200, apart).tflops)
    assert flops(h200, {"tensor": 1000.0}, "int8").tflops == pytest.approx(0.75 * 8192 * 132 * 1e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("label", "name"), [("torch.bfloat16", "bf16"), (" Half ", "fp16"), ("fp8", "fp8"), ("", None), (None, None)]
)
def test_spellings(label: str | None, name: str | None) -> None:
    assert precision_name(label) == name


def test_what_cannot_be_told(h200: Gpu) -> None:
    assert isinstance(realized(h200, {}), Unknown)
    assert isinstance(realized(msgspec.structs.replace(h200, sm_count=None), {"tensor": 1.0}), Unknown)
    worths = pipe_worths(get_gpu("a100-sxm4-40gb"), "fp8", State(0.5, 0.9))
    assert not isinstance(worths, Unknown)
    assert any("Ampere" in n for n in worths.notes)
    assert any("'fp8'" in n for n in worths.notes)
    no_vector = flops(
        msgspec.structs.replace(h200, fp32_flop_per_clk_sm=None), {"fp32": 100.0, "tensor": 100.0}, "bf16"
    )
    assert any("fp32 pipe is not rated" in n for n in no_vector.notes)


activities = st.dictionaries(st.sampled_from(PIPES), st.floats(0, 1980), min_size=1)
states = st.builds(State, st.none() | st.floats(0, 1), st.none() | st.floats(0, 1))
labels = st.sampled_from([None, "tf32", "bf16", "fp16", "fp8", "fp32", "fp64", "int8", "nonsense"])


@given(activities, labels, states)
def test_laws(activity: dict[str, float], label: str | None, state: State) -> None:
    """Low, middle and high are in order; without a label the range is never wider than four; twice the activity is
    twice the work."""
    gpu = get_gpu("NVIDIA H200")
    found, twice = (
        realized(gpu, activity, label, state),
        realized(gpu, {k: 2 * v for k, v in activity.items()}, label, state),
    )
    assert isinstance(found, Realized)
    assert isinstance(twice, Realized)
    assert 0 <= found.low_tflops <= found.tflops <= found.high_tflops
    assert twice.tflops == pytest.approx(2 * found.tflops)
    if label is None:
        assert found.high_tflops <= pipe_facts().spread * found.low_tflops * (1 + 1e-9)
