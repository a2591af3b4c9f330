"""Are the figures on the page about the meter those of the file beside it, and do they agree with each other?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "results"


@pytest.fixture(scope="module")
def page():
    return " ".join((FOLDER / "meter_h200.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def found():
    return json.loads((FOLDER / "meter_h200.json").read_text(encoding="utf-8"))


def test_how_it_was_made(page, found):
    made = found["made_with"]
    for word in ("command", "date", "gpu", "driver", "torch"):
        assert made[word] in page
    assert f"{found['job']['parameters']:,} parameters" in page
    assert f"{found['meter']['steps']} steps, {found['meter']['timed_steps']} of them timed" in page


def test_hfu_and_counters(page, found):
    counters = found["counters"]
    assert f"| {found['meter_tflops']:.1f} TFLOPS |" in page
    told = f"{counters['tflops']:.1f} TFLOPS ({counters['low_tflops']:.1f} to {counters['high_tflops']:.1f})"
    assert told in page
    assert f"{counters['samples']} samples in {counters['seconds']:.1f} s" in page
    assert f"| off {found['off_pct']:.1f} % | {found['bar_pct']:.0f} % |" in page
    assert f"| MFU | {found['mfu_pct']:.1f} % |" in page
    assert f"| HFU | {found['hfu_pct']:.1f} % |" in page
    assert found["meter"]["denominator"] in page
    assert f"MFU is {found['meter']['mfu_of_measured_pct']:.1f} %" in page
    assert f"{found['statement']['counted_tflops']:.1f} TFLOPS, evidence `counted`" in page
    assert f"the {3600 * found['statement']['covered_h']:.1f} s of the run" in page
    down, up = (counters[k] / counters["tflops"] - 1 for k in ("low_tflops", "high_tflops"))
    assert f"{-100 * down:.0f} % down and {100 * up:.0f} % up" in page


def test_the_figures_agree_with_each_other(found):
    assert found["off_pct"] == pytest.approx(100 * (found["meter_tflops"] / found["counters_tflops"] - 1))
    assert found["within_bar"] is (abs(found["off_pct"]) <= found["bar_pct"])
    peak = float(re.search(r"([\d.]+) TFLOPS", found["meter"]["denominator"])[1])
    assert found["hfu_pct"] == pytest.approx(100 * found["meter_tflops"] / peak, rel=1e-4)
    work, step_s = found["meter"]["work"], found["meter"]["step_ms"] / 1000
    assert found["meter_tflops"] == pytest.approx(work["hardware_flop"] / step_s / 1e12)
    assert sum(found["meter"]["phases_ms"].values()) == pytest.approx(found["meter"]["step_ms"])


def test_why_hfu_is_below_mfu_by_pencil(page, found):
    """Two products of 2,048 x 2,048 x 64 for each of 16 layers, 4 sequences and 32 heads."""
    work = found["meter"]["work"]
    attention = 16 * 4 * 32 * 2 * 2 * 2048 * 2048 * 64
    weights = work["forward_flop"] - attention
    assert work["model_flop"] == 3 * (weights + attention)
    assert work["hardware_flop"] == 3 * weights + 3.5 * attention / 2
    tera = [f"{flop / 1e12:.2f}" for flop in (weights, attention, work["hardware_flop"], work["model_flop"])]
    assert f"3 x {tera[0]} + 3.5 x {tera[1]} / 2 = {tera[2]} TFLOP" in page
    assert f"{tera[3]} TFLOP per step" in page


@pytest.mark.parametrize(("name", "shown"), [("overhead", True), ("overhead_short_steps", False)])
def test_overhead(page, found, name, shown):
    row = found[name]
    told = f"{row['overhead_pct']:.2f} % ({row['low_pct']:.2f} to {row['high_pct']:.2f})"
    cells = (row["fours"], f"{row['step_ms']:.1f} ms", told, f"{row['host_cost_pct']:.2f} %", f"{row['bar_pct']} %")
    assert f"{row['steps_a_block']} steps per block | {' | '.join(str(c) for c in cells)} |" in page
    # The page says so; a later run that shows otherwise must change the words too.
    assert row["interval_within_bar"] is shown
    assert row["host_cost_pct"] < row["bar_pct"]


def test_what_steps_of_each_kind_cost(page, found):
    cost, kinds = found["meter_cost"], found["overhead_short_steps"]["steps_by_kind"]
    assert f"takes {cost['timed_step_us']:.0f} us" in page
    assert f"is watched {cost['untimed_step_us']:.0f}, one that is left alone {cost['resting_step_us']:.0f}." in page
    assert f"left alone in {kinds['resting']:,} of {sum(kinds.values()):,} steps" in page


def test_a_middle_at_the_bar_is_said_with_the_digit_that_decides(page, found):
    row = found["overhead_short_steps"]
    assert row["bar_pct"] < row["overhead_pct"] < 1.01 * row["bar_pct"]
    assert not row["within_bar"]
    assert f"is at the bar, by a hair above it: {row['overhead_pct']:.3f} %" in page


def test_the_runs_before_are_kept_and_told_as_they_were(page, found):
    before = found["before"]
    first = before["first"]
    assert f"were off by {first['off_pct']:.1f} and {before['off_pct']:.1f} %" in page
    for run in (before, first):
        assert run["off_pct"] == pytest.approx(100 * (run["meter_tflops"] / run["counters_tflops"] - 1))
        assert run["made_with"]["date"] == found["made_with"]["date"]
        assert run["made_with"]["command"].startswith("python benchmarks/hfu_on_gpu.py")
    row = before["overhead_short_steps"]
    told = f"{row['overhead_pct']:.2f} % ({row['low_pct']:.2f} to {row['high_pct']:.2f})"
    assert f"slower by {told}, {row['host_cost_pct']:.2f} % by the host's time" in page
    # "The intervals overlap": a later run that shows the change must change the words too.
    assert row["low_pct"] < found["overhead_short_steps"]["high_pct"]
    row = first["overhead_short_steps"]
    told = f"{row['overhead_pct']:.1f} % ({row['low_pct']:.1f} to {row['high_pct']:.1f})"
    assert f"{row['pairs']} pairs of longer blocks with geometric means, gave {told}" in page
