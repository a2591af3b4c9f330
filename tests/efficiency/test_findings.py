"""Do the sentences carry the figures, in order of weight?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_HOUR

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]


def test_the_demo_in_four_to_eight_sentences(demo_fleet: tuple[Lake, Path]) -> None:
    found = efficiency_statement(demo_fleet[0])
    assert 4 <= len(found.findings) <= 8
    assert all(text.endswith(".") and any(c.isdigit() for c in text) for text in found.findings)
    assert f"{found.fleet.gpu_util_pct:.1f} % utilization" in found.findings[0]
    share = found.active.bottlenecked_pct_of_active
    assert found.findings[1].startswith(f"{share:.0f} % of busy time did little work")
    assert f"{len(found.bottlenecked_gpus)} of 50 GPUs" in found.findings[1]
    assert found.findings[2].startswith("Storage seems to hold up")
    assert any(f"{found.roi[0].equivalent_gpus:.1f} GPUs without buying" in text for text in found.findings)


def test_idle_comes_first_where_it_is_most(state: State, line: Line) -> None:
    rows = [line(h, "GPU-a", util=0.0, pif=0.1, idle_held_ms=MS_PER_HOUR) for h in range(30)]
    rows += [line(h, "GPU-b", util=0.9, pif=0.5, bottleneck_ms=MS_PER_HOUR) for h in range(2)]
    start = rows[0]["hour_ms"]
    quiet = [
        {"gpu_uuid": "GPU-a", "gpu_instance_id": None, "start_ms": start, "end_ms": start + 30 * MS_PER_HOUR,
         "kind": "idle_held"},
    ]  # fmt: skip
    found = state(*rows, quiet=quiet).findings
    assert found[1].startswith("94 % of GPU time was idle: 30 GPU-hours, all of it holding memory; 1 GPU stood still")


@pytest.mark.parametrize(
    ("idle_ms", "held_ms", "words"),
    [
        (300_000, 300_000, "5 GPU-minutes, all of it holding memory"),
        (300_000, 60_000, "5 GPU-minutes, 1 GPU-minute of it holding memory"),
        (5_400_000, 0, "1.5 GPU-hours."),
        (20_000, 0, "less than a GPU-minute."),
    ],
)
def test_a_short_recording_counts_idle_time_in_minutes(
    state: State, line: Line, idle_ms: int, held_ms: int, words: str
) -> None:
    quiet = {"util": 0.0, "pif": 0.1, "idle_held_ms": held_ms, "idle_ms": idle_ms - held_ms, "observed_ms": idle_ms}
    (found,) = [text for text in state(line(0, **quiet)).findings if "of GPU time was idle" in text]
    assert found.startswith(f"100 % of GPU time was idle: {words}")


@pytest.mark.parametrize(("pif", "worth"), [(0.4999, None), (0.4, "is worth 0.2 GPUs")])
def test_a_target_next_door_is_not_worth_0_gpus(state: State, line: Line, pif: float, worth: str | None) -> None:
    found = state(line(0, util=0.95, pif=pif))
    assert not any("worth 0.0 GPUs" in text for text in found.findings)
    assert any(worth in text for text in found.findings) if worth else found.roi[0].equivalent_gpus < 0.05


def test_a_good_fleet_is_told_so(state: State, line: Line) -> None:
    found = state(line(0, util=0.95, pif=0.9)).findings
    assert any(text.startswith("Hardly any busy time") for text in found)
    assert not any("idle" in text for text in found)


@pytest.mark.parametrize("step", [0.0, 0.3])
def test_the_trend_is_told_as_step_or_slope(state: State, line: Line, step: float) -> None:
    wiggle = [0.01, -0.01, 0.02, -0.02, 0.0]
    rows = [line(h, util=0.9, pif=0.9 - step * (h >= 30) - wiggle[h % 5] / 2) for h in range(60)]
    text = " ".join(state(*rows).findings)
    if step:
        assert "RFU changed at 2026-01-21 06:00 UTC: 90.0 before, 60.0 after." in text
    else:
        assert "RFU shows no trend" in text


def test_a_wide_gap_without_a_bottleneck_is_named(state: State, line: Line) -> None:
    found = state(line(0, util=0.95, pif=0.65)).findings
    assert any(text.startswith("1 GPU claims over 25 points") for text in found)


def test_figures_of_different_gpus_are_not_set_against_each_other(state: State, line: Line) -> None:
    both = state(line(0, util=0.9, pif=0.6)).findings[0]
    assert "90.0 % utilization; it drew 60.0 % of its power limit, a gap of 30.0 points" in both
    apart = state(line(0, util=0.9, pif=0.6), line(0, gpu="GPU-blind", util=0.1)).findings[0]
    assert apart.startswith("2 GPUs reported 50.0 % utilization; 1 GPU drew 60.0 % of its power limit")
    assert "where both are known (1 GPU) the gap is 30.0 points" in apart
