"""How near are the points on recorded work, and is one omitted where none can be given?"""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from answers import Answer, by_gpuledger, tracks
from front_door import ask, gpuledger, take_in
from score import FEW_ROWS, score

from recording import Recording, read_recording, write_telemetry

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "truth" / "recordings"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return read_recording(RECORDINGS / "fifth_h200")


@pytest.fixture(scope="module")
def answers(recording: Recording) -> dict[str, Answer]:
    return by_gpuledger(recording)


ROUNDS = ("heldout_h200", "third_h200", "fourth_h200", "fifth_h200", "sixth_h200", "seventh_h200", "eighth_h200")


@pytest.mark.parametrize("name", ROUNDS)
def test_points_are_near_and_every_range_holds(name: str) -> None:
    recording = read_recording(RECORDINGS / name)
    answers = by_gpuledger(recording)
    found = score(recording, answers)
    off = sorted(abs(error) for error in found.errors_pct.values())
    assert len(off) > 15
    assert off[-1] < 13
    assert statistics.median(off) < 3
    assert found.ranges_missed == ()
    for workload, answer in answers.items():
        if (true := recording.facts[workload].get("tflop_per_s")) is not None:
            assert answer.told_low_tflops <= true <= answer.told_high_tflops, workload


def test_decoding_for_few_users_has_a_range_and_no_point(recording: Recording, answers: dict[str, Answer]) -> None:
    few = [name for name, facts in recording.facts.items() if facts.get("family") == FEW_ROWS]
    assert len(few) == 3
    for name in few:
        assert answers[name].tflops is None
        assert answers[name].low_tflops < recording.facts[name]["tflop_per_s"] < answers[name].high_tflops


def test_no_dollar_figure_rests_on_a_point_that_is_not_given(recording: Recording, tmp_path: Path) -> None:
    only = {"decode_w5120_b2": recording.facts["decode_w5120_b2"]}
    write_telemetry(tmp_path / "t.csv", tracks(replace(recording, facts=only), labels=True))
    take_in(tmp_path / "lake", tmp_path / "t.csv")
    audit = ask("audit", "--lake", str(tmp_path / "lake"), "--price", "1")
    assert (audit["work"]["middle_usd"], audit["work"]["exaflop"]) == (None, None)
    assert float(audit["work"]["low_usd"]) < float(audit["work"]["high_usd"])
    analysis = ask("analyze", "--lake", str(tmp_path / "lake"))
    assert analysis["rfu_counters_pct"] is None
    assert analysis["capacity"]["fleet"]["realized_counters_tflops"]["middle"] is None


def test_points_are_the_same_after_hours_are_folded_into_a_day(recording: Recording, tmp_path: Path) -> None:
    """Rows of two models, every other one an hour later, in a day long past."""
    midnight = 1_700_006_400.0  # 2023-11-15
    names = ("falcon_bf16", "gptneo_fp16")
    rows = {
        name: sorted(
            ({**row, "t": midnight + 7200 + number * 0.1 + 3600 * (number % 2)} for number, row in enumerate(found)),
            key=lambda row: row["t"],
        )
        for name, found in ((name, recording.rows[name]) for name in names)
    }
    moved = replace(recording, facts={name: recording.facts[name] for name in names}, rows=rows)
    write_telemetry(tmp_path / "t.csv", tracks(moved, labels=True))
    lake = str(tmp_path / "lake")
    take_in(tmp_path / "lake", tmp_path / "t.csv")
    before = ask("analyze", "--lake", lake)
    gpuledger("tidy", "--lake", lake, "--fold-older-than", "1d", "--keep-samples")
    after = ask("analyze", "--lake", lake)
    points = [[gpu["means"]["rfu_counters_pct"] for gpu in found["per_gpu"]] for found in (before, after)]
    assert len(points[0]) == 2
    assert points[0] == points[1]
    assert before["rfu_counters_pct"] == after["rfu_counters_pct"]


MISSING = (
    ("sm_occupancy",), ("sm_active",), ("dram_active",), ("gr_engine_active",), ("sm_clock_mhz",), ("throttle",),
    ("tensor_active", "hmma_tensor_active", "imma_tensor_active", "dfma_tensor_active"),
    ("sm_active", "sm_occupancy", "fp64_active", "fp32_active", "fp16_active"),
)  # fmt: skip


@pytest.mark.parametrize("columns", MISSING, ids="+".join)
@pytest.mark.parametrize("name", ["fourth_h200", "sixth_h200"])
def test_without_a_counter_points_are_near_or_omitted_and_ranges_hold(name: str, columns: tuple[str, ...]) -> None:
    less = read_recording(RECORDINGS / name).without(columns)
    answers = by_gpuledger(less)
    found = score(less, answers, may_decline=True)
    assert [n for n, error in found.errors_pct.items() if abs(error) > 15] == []
    assert found.ranges_missed == ()
    for workload, answer in answers.items():
        if (true := less.facts[workload].get("tflop_per_s")) is not None:
            assert answer.told_low_tflops <= true <= answer.told_high_tflops, workload
