"""A job of known parts costs what its parts cost: through import, audit and tidy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from schedules import Part, Schedule, compare, due_of, judge, load_schedules, pool_of, splice, stamped, tracks_of

SCHEDULES = {schedule.name: schedule for schedule in load_schedules()}


@pytest.fixture(scope="module")
def judged(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return judge(list(SCHEDULES.values()), pool_of([recorded]), tmp_path_factory.mktemp("schedules"))


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_bucket_is_the_sum_of_the_parts(judged: dict[str, Any], name: str) -> None:
    buckets = judged["schedules"][name]["buckets"]
    far = {b: (round(f["whole_pct"], 2), round(f["parts_pct"], 2)) for b, f in buckets.items() if not f["near"]}
    assert not far, "percent of the time: (the whole, the sum of its parts)"


def test_the_audit_is_the_same_to_the_last_digit_after_folding(judged: dict[str, Any]) -> None:
    assert not judged["folding_changes"]


def test_there_are_the_schedules_that_are_promised() -> None:
    assert SCHEDULES["gemm_copy"].parts == (Part("bf16_gemm_8192", 2.0), Part("memcopy", 2.0)) * 10
    assert [part.seconds for part in SCHEDULES["five_blocks"].parts] == [8.0] * 5
    drawn = [schedule for name, schedule in SCHEDULES.items() if name.startswith("random_")]
    assert len(drawn) == 12
    assert all(2 <= len(s.parts) <= 8 and all(0.5 <= p.seconds <= 60 for p in s.parts) for s in drawn)


def test_rows_are_the_recorded_ones_with_new_times(recorded: Path) -> None:
    pool = pool_of([recorded])
    parts = (Part("memcopy", 1.0), Part("idle_holding_memory", 0.5), Part("memcopy", 6.0))
    spliced = splice(parts, pool)
    copies = [row for name, row in spliced if name == "memcopy"]
    again = [pool["memcopy"][i % len(pool["memcopy"])] for i in range(70)]
    assert copies == again, "a workload goes on where it stopped, and starts again at its end"
    at_times = stamped(copies)
    assert [round(b["t"] - a["t"], 6) for a, b in pairwise(at_times)] == [0.1] * 69
    changed = {"t", "energy_j"}
    assert [{k: v for k, v in r.items() if k not in changed} for r in at_times] == [
        {k: v for k, v in r.items() if k not in changed} for r in copies
    ]
    gained = at_times[-1]["energy_j"] - at_times[0]["energy_j"]
    assert gained == pytest.approx(sum(r["power_w"] for r in copies[1:]) * 0.1)


def test_whole_and_parts_hold_the_same_rows(recorded: Path) -> None:
    whole, alone = tracks_of(Schedule("x", "", SCHEDULES["five_blocks"].parts), pool_of([recorded]))
    assert len(alone) == 5
    assert len(whole.rows) == sum(len(track.rows) for track in alone) == 400


def test_a_bucket_is_near_within_a_tenth_or_two_points() -> None:
    whole, parts = (
        {"productive": 0.5, "idle": 0.2, "stalled": 0.3},
        {"productive": 0.455, "idle": 0.185, "stalled": 0.26},
    )
    near = {bucket: one["near"] for bucket, one in compare(whole, parts).items()}
    assert near == {"productive": True, "idle": True, "stalled": False}


def test_a_short_pause_between_two_parts_is_a_wait_of_the_whole() -> None:
    """Alone a pause is idle-held; between two pieces of work less than 30 s apart it is underused time. In hours."""
    work, pause = Part("memcopy", 36.0), Part("idle_holding_memory", 18.0)
    alone = [{"productive": 72 / 3600, "idle_held": 0.0}, {"productive": 0.0, "idle_held": 18 / 3600}]
    due = due_of(Schedule("x", "", (work, pause, work)), alone)
    assert due == pytest.approx({"productive": 0.02, "idle_held": 0.0, "underused": 0.005, "idle": 0.0})
    # At an end of the schedule nothing follows it, and from 30 s on it is idle.
    assert due_of(Schedule("x", "", (work, work, pause)), alone)["idle_held"] == pytest.approx(0.005)
    long = Schedule("x", "", (work, Part("idle_holding_memory", 30.0), work))
    assert due_of(long, [alone[0], {"idle_held": 30 / 3600}])["underused"] == 0
