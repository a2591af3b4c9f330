"""Are live samples safe in the lake, whatever happens to the recorder?"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.devices.device import Facts
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.errors import LakeError
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import open_part
from gpuledger.ledger.engine import post_lake
from gpuledger.recording.writer import Recorder

START = 1_768_867_200_000
GPU = Facts(0, "GPU-a", "NVIDIA H200")
COLUMNS = ("at_ms", "power_w")
DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"


def stamps(lake: Lake) -> list[int]:
    found: list[int] = []
    for part in lake.manifest().parts:
        with open_part(lake.path(part)) as file:
            found += file.read(columns=["at_ms"])["at_ms"].to_pylist()
    return sorted(found)


def test_rows_are_written_when_they_are_released(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{"host": "h"}])
    recorder.start()
    recorder.take(GPU, COLUMNS, [(START, 1.0)])
    time.sleep(0.1)
    assert not lake.exists()
    recorder.released()
    deadline = time.monotonic() + HUNG_S
    while not lake.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stamps(lake) == [START]
    recorder.take(GPU, COLUMNS, [(START + 100, 2.0)])
    recorder.close()
    assert stamps(lake) == [START, START + 100]
    assert recorder.rows == 2


def test_a_lake_that_cannot_be_written_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{}])

    def full(*_args: object, **_kw: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpuledger.recording.live_parts.write_parquet", full)
    recorder.take(GPU, COLUMNS, [(START, 1.0)])
    error = recorder.flush()
    assert isinstance(error, LakeError)
    assert "disk is full" in recorder.problem
    recorder.take(GPU, COLUMNS, [(START + 100, 1.0)])
    monkeypatch.undo()
    assert recorder.flush() is None
    assert recorder.problem == ""
    recorder.close()
    assert stamps(lake) == [START, START + 100]


def test_rows_that_could_not_be_written_to_the_end_are_an_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    recorder = Recorder(Lake(blocked), lambda _f: [{}])
    recorder.take(GPU, COLUMNS, [(START, 1.0)])
    with pytest.raises(LakeError):
        recorder.close()


def test_memory_is_bounded_and_what_is_dropped_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuledger.recording.writer.MAX_HELD_ROWS", 10)
    recorder = Recorder(Lake(tmp_path), lambda _f: [{}])
    for k in range(4):
        recorder.take(GPU, COLUMNS, [(START + 10 * k + i, 1.0) for i in range(4)])
    assert recorder.rows_dropped == 8
    recorder.close()
    assert recorder.rows == 8


def test_a_device_several_share_has_a_row_for_each(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{"workload": "a"}, {"workload": "b"}])
    recorder.take(GPU, COLUMNS, [(START, 1.0), (START + 100, 1.0)])
    recorder.close()
    assert stamps(lake) == [START, START, START + 100, START + 100]


def test_rows_that_come_with_their_owners_keep_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{"workload": "later"}])
    recorder.take(GPU, COLUMNS, [(START, 1.0)], [{"workload": "a"}, {"workload": "b"}])
    recorder.take(GPU, COLUMNS, [(START + 100, 1.0)])
    recorder.close()
    (part,) = lake.manifest().parts
    with open_part(lake.path(part)) as file:
        rows = file.read(columns=["at_ms", "workload"]).to_pylist()
    assert sorted((r["at_ms"] - START, r["workload"]) for r in rows) == [(0, "a"), (0, "b"), (100, "later")]


def test_the_writer_waits_for_others_at_the_lake_and_the_sampler_does_not(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{}])
    recorder.start()
    with lake.locked():
        recorder.take(GPU, COLUMNS, [(START, 1.0)])
        recorder.released()
        time.sleep(0.1)
        recorder.take(GPU, COLUMNS, [(START + 100, 1.0)])  # would hang if it waited for the writer
    recorder.close()
    assert stamps(lake) == [START, START + 100]


KILLED = """
import os, sys
from gpuledger.recording.record import record
from gpuledger.recording.writer import Recorder
from gpuledger.devices.replay.clock import QuickClock
take, flush, log = Recorder.take, Recorder.flush, os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND)
def say(*words):
    os.write(log, (" ".join(map(str, words)) + "\\n").encode())
def told_take(self, facts, columns, rows, owners):
    say("offered", *(row[0] for row in rows))
    take(self, facts, columns, rows, owners)
    say("taken", *(row[0] for row in rows))
def told_flush(self):
    say("begins")
    error = flush(self)
    say("flushed" if error is None else error)
Recorder.take, Recorder.flush = told_take, told_flush
with record(sys.argv[1], device="replay:" + sys.argv[2], clock=QuickClock(100.0)):
    sys.stdin.read()
"""


def test_a_recorder_killed_mid_run_leaves_a_lake_that_can_be_read_and_posted(tmp_path: Path) -> None:
    lake, log = Lake(tmp_path / "lake"), tmp_path / "log"
    log.touch()
    command = [sys.executable, "-c", KILLED, str(lake.root), str(DATA), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + HUNG_S
            while log.read_text().count("flushed") < 4 and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    told = [line.split() for line in log.read_text().splitlines()]
    assert sum(words == ["flushed"] for words in told) >= 4
    offered = [int(stamp) for kind, *row in told if kind == "offered" for stamp in row]
    last_flush = max(i for i, words in enumerate(told) if words == ["flushed"])
    begun = max(i for i, words in enumerate(told[:last_flush]) if words == ["begins"])
    safe = [int(stamp) for kind, *row in told[:begun] if kind == "taken" for stamp in row]
    # Nothing in between is missing, and what was there when the last flush began is all in the lake.
    at = stamps(lake)
    assert at == offered[: len(at)]
    assert len(at) >= len(safe) > 100
    assert len(at) == sum(p.rows for p in lake.manifest().parts)
    result = post_lake(lake, load_thresholds())
    assert result.samples == len(at)


def test_two_recorders_at_one_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path)

    def work(name: str) -> None:
        recorder = Recorder(lake, lambda _f: [{"run_id": name}])
        for k in range(20):
            recorder.take(Facts(0, f"GPU-{name}", None), COLUMNS, [(START + 10 * k, 1.0)])
            recorder.flush()
        recorder.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in "abc"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(stamps(lake)) == 60
    assert len(lake.manifest().parts) == 3


def test_parts_that_cannot_be_merged_at_the_end_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{}])
    for k in range(2):
        recorder.take(GPU, COLUMNS, [(START + 100 * k, 1.0)])
        assert recorder.flush() is None

    def full(*_args: object, **_kw: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpuledger.recording.live_parts.write_parquet", full)
    recorder.close()
    assert "could not merge small parts" in recorder.problem
    assert stamps(lake) == [START, START + 100]
    assert not (tmp_path / "staging").exists()


def test_rows_that_are_in_the_lake_are_not_written_again_when_only_the_sync_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    recorder = Recorder(lake, lambda _f: [{}])
    recorder.take(GPU, COLUMNS, [(START, 1.0)])

    def unsynced(folder: Path) -> None:
        if folder == lake.root:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("gpuledger.lake.layout.sync", unsynced)
    recorder.flush()
    monkeypatch.undo()
    recorder.take(GPU, COLUMNS, [(START + 100, 1.0)])
    recorder.close()
    assert stamps(lake) == [START, START + 100]


def test_a_recording_clears_up_after_one_that_was_killed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    left = tmp_path / "staging" / "work-killed"
    left.mkdir(parents=True)
    for name in ("in-use", "half.parquet"):
        (left / name).write_text("")
    recorder = Recorder(lake, lambda _f: [{}])
    recorder.take(GPU, COLUMNS, [(START, 1.0)])
    recorder.close()
    assert not (tmp_path / "staging").exists()
    assert stamps(lake) == [START]
