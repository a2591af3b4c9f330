"""How near are the points on a recording that set nothing, and is one left out where none can be given?"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from answers import Answer, by_gpuledger
from score import FEW_ROWS, score

from recording import Recording, read_recording

FIFTH = Path(__file__).parents[2] / "benchmarks" / "truth" / "recordings" / "fifth_h200"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return read_recording(FIFTH)


@pytest.fixture(scope="module")
def answers(recording: Recording) -> dict[str, Answer]:
    return by_gpuledger(recording)


def test_points_are_near_and_every_range_holds(recording: Recording, answers: dict[str, Answer]) -> None:
    found = score(recording, answers)
    off = sorted(abs(error) for error in found.errors_pct.values())
    assert len(off) == 22
    assert off[-3] < 10
    assert off[-1] < 18
    assert statistics.median(off) < 4
    assert found.ranges_held == (25, 25)


def test_decoding_for_few_users_has_a_range_and_no_point(recording: Recording, answers: dict[str, Answer]) -> None:
    few = [name for name, facts in recording.facts.items() if facts.get("family") == FEW_ROWS]
    assert len(few) == 3
    for name in few:
        assert answers[name].tflops is None
        assert answers[name].low_tflops < recording.facts[name]["tflop_per_s"] < answers[name].high_tflops
