"""Is the lock that workers of one machine share safe in a folder that is everybody's?"""

from __future__ import annotations

import pytest

from gpuledger.bench import runner
from gpuledger.bench.load import Load
from gpuledger.bench.plan import Bench, Station
from gpuledger.bench.telemetry import Elsewhere


def test_a_link_put_there_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "gpuledger-bench-known.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match=r"gpuledger-bench-known\.lock"):
        Elsewhere("known", "", 1.0, {})
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
