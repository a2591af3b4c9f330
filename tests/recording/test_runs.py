"""Do the notes of recordings come back, and do broken ones say so?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuledger.devices.clock import ClockStep
from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.recording.runs import DeviceNotes, RunNotes, claim, read_runs, write_notes


def notes(run_id: str, started_ms: int = 1000, **more: object) -> RunNotes:
    return RunNotes(run_id=run_id, state="done", started_ms=started_ms, hz=10.0, slow_s=1.0, flush_s=2.0, **more)


def test_notes_come_back_oldest_first(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    late, early = notes("b", 5000, ended_ms=9000), notes("a/b c", 1000, clock_steps=(ClockStep(5, -2.0),))
    for n in (late, early):
        write_notes(claim(lake, n.run_id), n)
    assert read_runs(lake) == [early, late]
    assert late.seconds == 4.0
    assert sorted(f.name for f in (tmp_path / "runs").iterdir()) == ["a_b_c.json", "b.json"]


def test_recordings_of_one_run_each_have_a_file(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert [claim(lake, "4711").name for _ in range(3)] == ["4711.json", "4711-2.json", "4711-3.json"]
    assert read_runs(lake) == []  # claimed only


def test_broken_and_newer_notes_are_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    file = claim(lake, "x")
    file.write_text("{")
    with pytest.raises(LakeError, match=r"x\.json"):
        read_runs(lake)
    write_notes(file, notes("x"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    with pytest.raises(LakeError, match="newer"):
        read_runs(lake)


def test_a_lake_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GpuledgerError):
        claim(Lake(tmp_path / "file"), "x")


def test_what_the_user_should_hear() -> None:
    device = DeviceNotes("GPU-a", "GPU-a", None, None, None, owned=False, lost_at_ms=5, lost_why="NVML: GPU is lost")
    said = notes(
        "x", devices=(device,), skipped_ticks=3, ticks=97, clock_steps=(ClockStep(1, 3600.0),), rows_dropped=2
    ).words()
    text = "\n".join(said)
    for words in ("GPU is lost", "no owner", "3 of 100 ticks", "+3600 s", "2 rows were lost"):
        assert words in text
    assert notes("y").words() == []
