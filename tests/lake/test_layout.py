"""Is the lake whole at every moment, whatever is killed?"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuledger.errors import LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake, Manifest
from gpuledger.lake.parts import merge_day

DAY = 1_768_867_200_000


def write(file: Path, devices: int, n: int, offset: int = 0, days: int = 2) -> Path:
    rows = [
        (DAY + d * 86_400_000 + (offset + i) * 1000, f"GPU-{g}", i / n)
        for d in range(days)
        for g in range(devices)
        for i in range(n)
    ]
    at, uuid, util = zip(*rows, strict=True)
    pq.write_table(pa.table({"at_ms": at, "gpu_uuid": uuid, "gpu_util_ratio": util}), file)
    return file


def rows_of(lake: Lake) -> int:
    return sum(pq.ParquetFile(lake.path(p)).read().num_rows for p in lake.manifest().parts)


def test_a_fault_at_any_write_leaves_the_lake_as_before_or_after(tmp_path, monkeypatch):
    """Every fsync and rename in turn fails; the lake is readable each time and never in between."""
    first, second = write(tmp_path / "a.parquet", 3, 50), write(tmp_path / "b.parquet", 3, 50, offset=100)
    calls = {"n": 0, "fail_at": -1}
    real_fsync, real_replace = os.fsync, Path.replace

    def counted(real):
        def call(*args):
            calls["n"] += 1
            if calls["n"] == calls["fail_at"]:
                raise OSError(5, "Input/output error")
            return real(*args)

        return call

    seen = set()
    for fail_at in range(1, 40):
        lake = Lake(tmp_path / f"lake-{fail_at}")
        import_files(lake, [first])
        calls.update(n=0, fail_at=fail_at)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", counted(real_fsync))
            patch.setattr(Path, "replace", counted(real_replace))
            with contextlib.suppress(LakeError):
                import_files(lake, [second])
        assert rows_of(lake) in (300, 600)
        seen.add(rows_of(lake))
        assert not list((lake.root / "staging").glob("*"))
        if calls["n"] < fail_at:
            break
        import_files(lake, [second])
        assert rows_of(lake) == 600
    assert seen == {300, 600}
    assert fail_at > 5, "the faults never reached the commit"


def test_killed_imports_lose_nothing_committed(tmp_path):
    """A real process is killed with SIGKILL at random moments, again and again."""
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 4, 100)])
    code = (
        "import sys; from gpuledger.lake.importing import import_files; from gpuledger.lake.layout import Lake; "
        "print('go', flush=True); import_files(Lake(sys.argv[1]), sys.argv[2:])"
    )
    chance = random.Random(5)
    for i in range(4):
        file = write(tmp_path / f"k{i}.parquet", 4, 5000, offset=10_000 * (i + 1))
        job = subprocess.Popen([sys.executable, "-c", code, str(lake.root), str(file)], stdout=subprocess.PIPE)
        assert job.stdout is not None
        job.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.25))
        job.send_signal(signal.SIGKILL)
        job.wait()
        job.stdout.close()
        total = rows_of(lake)
        assert (total - 800) % 40_000 == 0
    for i in range(4):
        import_files(lake, [tmp_path / f"k{i}.parquet"])
    assert rows_of(lake) == 800 + 4 * 40_000


def test_four_writers_and_a_reader(tmp_path):
    lake = Lake(tmp_path / "lake")
    files = [write(tmp_path / f"w{i}.parquet", 2, 40, offset=1000 * i) for i in range(4)]
    faults: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                rows_of(lake)
            except Exception as error:  # noqa: BLE001
                faults.append(error)

    def append(file: Path) -> None:
        try:
            import_files(lake, [file])
        except Exception as error:  # noqa: BLE001
            faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=append, args=(f,)) for f in files]
    for w in writers:
        w.start()
    for w in writers:
        w.join()
    stop.set()
    reader.join()
    assert not faults
    assert rows_of(lake) == 4 * 160


def test_merging_a_day_keeps_every_row_and_remembers_the_parts(tmp_path):
    lake = Lake(tmp_path / "lake")
    for i in range(3):
        import_files(lake, [write(tmp_path / f"m{i}.parquet", 2, 30, offset=7 * i * 100, days=1)])
    before = [p.id for p in lake.manifest().parts]
    with lake.locked():
        part = merge_day(lake, "2026-01-20")
    assert part.made_of == tuple(before)
    assert part.rows == 180
    table = pq.ParquetFile(lake.path(part)).read()
    keys = list(zip(table["gpu_uuid"].to_pylist(), table["at_ms"].to_pylist(), strict=True))
    assert keys == sorted(keys)
    assert [f.name for f in (lake.root / "samples" / "day=2026-01-20").iterdir()] == [part.file]


def test_a_newer_manifest_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"version": 99, "parts": []}')
    with pytest.raises(LakeError, match="newer"):
        Lake(tmp_path).manifest()
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(LakeError, match="not a manifest"):
        Lake(tmp_path).manifest()
    assert Lake(tmp_path / "none").manifest() == Manifest()
