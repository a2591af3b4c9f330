"""Is the hardware recorded during a run, do samples recorded elsewhere come home, is the shared lock safe?"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import pytest

from gpuledger.bench import runner
from gpuledger.bench.load import Load
from gpuledger.bench.plan import Bench, Station
from gpuledger.bench.telemetry import RunRecording, WorkerRecording, unpack
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.units import Unknown

REPLAY = f"replay:{Path(__file__).parents[1] / 'data' / 'h200_replay.csv.gz'}"


def test_samples_recorded_elsewhere_come_home(tmp_path):
    run = secrets.token_hex(6)  # the machine knows runs by their names, also those of others
    first = WorkerRecording(run, REPLAY, 20.0, {"workload": "bench"})
    second = WorkerRecording(run, REPLAY, 20.0, {"workload": "bench"})  # the same machine: recorded once
    other = WorkerRecording(f"{run}-other", REPLAY, 20.0, {})
    time.sleep(0.4)
    assert first.facts["gpus"] == ["NVIDIA H200"]
    assert second.facts == {}
    parts, none, more = first.stop(), second.stop(), other.stop()
    assert none == ()
    home = Lake(tmp_path / "home.lake")
    rows = unpack(home, parts)
    assert rows == sum(p.rows for p in home.manifest().parts)
    assert rows >= 1
    assert unpack(home, more) >= 1
    assert post_lake(home, load_thresholds()).samples > rows
    assert unpack(Lake(tmp_path / "empty.lake"), ()) == 0


def test_without_a_device_the_reason_is_kept(tmp_path):
    silent = RunRecording(tmp_path / "a.lake", "", 10.0, {}, of_job=False)
    assert silent.lake == Unknown("telemetry was switched off")
    silent.stop()
    broken = RunRecording(tmp_path / "b.lake", "replay:nowhere.csv", 10.0, {}, of_job=False)
    assert "nowhere.csv" in broken.lake.why
    assert broken.facts == {}
    broken.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_link_put_there_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "gpuledger-bench-known.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match=r"gpuledger-bench-known\.lock"):
        WorkerRecording("known", "", 1.0, {})
    assert not (tmp_path / "victim").exists()


def test_the_name_of_the_lock_cannot_be_read_off_the_run(tmp_path):
    """All workers of a run share it; nothing that is written or listed holds it."""
    seen = []

    class Crew:
        def start(self, tasks, inbox):
            seen.extend(tasks)
            raise KeyboardInterrupt

        def close(self):
            pass

    stations = tuple(Station(name, {"callable": "a:b"}) for name in "ab")
    bench = Bench("python_callable", stations, Load(requests=1), tmp_path / "r.jsonl", device="")
    runner.run_bench(bench, Crew())
    (name,) = {task.run for task in seen}
    assert len(name) >= 32
    assert name not in (tmp_path / "r.jsonl").read_text()
