"""Is the hardware recorded beside a run, and do samples recorded elsewhere come home whole?"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from gpuledger.bench.telemetry import Beside, Elsewhere, unpack
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.units import Unknown

REPLAY = f"replay:{Path(__file__).parents[1] / 'data' / 'h200_replay.csv.gz'}"


def test_samples_recorded_elsewhere_come_home(tmp_path):
    run = secrets.token_hex(6)  # the machine knows runs by their names, also those of others
    first = Elsewhere(run, REPLAY, 20.0, {"workload": "bench"})
    second = Elsewhere(run, REPLAY, 20.0, {"workload": "bench"})  # the same machine: recorded once
    other = Elsewhere(f"{run}-other", REPLAY, 20.0, {})
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
    silent = Beside(tmp_path / "a.lake", "", 10.0, {}, of_job=False)
    assert silent.lake == Unknown("telemetry was switched off")
    silent.stop()
    broken = Beside(tmp_path / "b.lake", "replay:nowhere.csv", 10.0, {}, of_job=False)
    assert "nowhere.csv" in broken.lake.why
    assert broken.facts == {}
    broken.stop()
    assert list(tmp_path.iterdir()) == []
