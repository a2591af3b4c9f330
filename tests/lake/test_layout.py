"""Is the lake whole at every moment, whatever is killed?"""

from __future__ import annotations

import contextlib
import json
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
from gpuledger.lake.parts import merge_day, samples_table
from gpuledger.lake.staging import note_moving

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


@pytest.mark.scale
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


def test_a_first_commit_in_between_is_no_lost_manifest(tmp_path, monkeypatch):
    """A reader found no manifest; before it looks around, the first import notes its files and moves one."""
    lake = Lake(tmp_path / "lake")
    place, looked = "day=2026-01-20/part-00000001-abc.parquet", lake._part_files

    def meanwhile():
        folder = lake.store.staging / "work-1"
        folder.mkdir(parents=True)
        note_moving(folder, [place])
        (lake.root / "samples" / place).parent.mkdir(parents=True)
        (lake.root / "samples" / place).touch()
        return looked()

    monkeypatch.setattr(lake, "_part_files", meanwhile)
    monkeypatch.setattr("gpuledger.lake.layout.is_place", lambda name: name == place)
    assert lake.manifest() == Manifest()


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


def part_files(lake: Lake) -> set[str]:
    return {str(f.relative_to(lake.root)) for f in (lake.root / "samples").rglob("*") if not f.is_dir()}


def test_a_lost_manifest_stops_every_writer_and_names_the_way_out(tmp_path):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 2, 30)])
    kept = (lake.root / "manifest.json").read_bytes()
    (lake.root / "manifest.json").unlink()
    before = part_files(lake)
    again = write(tmp_path / "b.parquet", 2, 30, offset=500)
    for attempt in (lambda: import_files(Lake(lake.root), [again]), Lake(lake.root).require, lake.manifest):
        with pytest.raises(LakeError, match=r"manifest\.json is missing") as refused:
            attempt()
        assert "part-*.parquet --lake" in refused.value.hint
    assert part_files(lake) == before
    assert not lake.exists()
    recovered = Lake(tmp_path / "recovered")
    import_files(recovered, sorted(lake.root.glob("samples/*/part-*.parquet")))
    assert rows_of(recovered) == 120
    (lake.root / "manifest.json").write_bytes(kept)
    import_files(lake, [again])
    assert rows_of(lake) == 240


@pytest.mark.parametrize(
    "text", ["{}", '{"version": 1}', '{"version": 1, "next_id": 1}', "[]", "null", '{"version": 0}']
)
def test_a_manifest_that_is_not_whole_is_refused(tmp_path, text):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 1, 5)])
    before = part_files(lake)
    (lake.root / "manifest.json").write_text(text)
    with pytest.raises(LakeError, match="not a manifest"):
        import_files(lake, [tmp_path / "a.parquet"])
    assert part_files(lake) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("day", "2026-13-45"),
        ("day", "../../etc"),
        ("day", "20260120"),
        ("file", "../x.parquet"),
        ("file", "mine.parquet"),
    ],
)
def test_a_manifest_with_an_impossible_part_is_refused(tmp_path, field, value):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 1, 5)])
    manifest = json.loads((lake.root / "manifest.json").read_text())
    manifest["parts"][0][field] = value
    (lake.root / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LakeError, match=r"not a day|not the file of a part"):
        lake.manifest()


def test_an_older_manifest_put_back_never_costs_newer_files(tmp_path):
    """Files the manifest does not name keep their ids and their bytes, through imports, merges and sweeps."""
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 1, 30, days=1)])
    old = (lake.root / "manifest.json").read_bytes()
    import_files(lake, [write(tmp_path / "b.parquet", 1, 30, offset=100, days=1)])
    newest = lake.path(lake.manifest().parts[-1])
    content = newest.read_bytes()
    (lake.root / "manifest.json").write_bytes(old)
    lake = Lake(lake.root)
    import_files(lake, [write(tmp_path / "c.parquet", 1, 30, offset=200, days=1)])
    assert lake.manifest().parts[-1].id == 3
    with lake.locked():
        merge_day(lake, "2026-01-20")
    assert newest.read_bytes() == content
    assert rows_of(lake) == 60


def test_sweeping_follows_no_links_and_leaves_foreign_files(tmp_path):
    lake, elsewhere = Lake(tmp_path / "lake"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    for i in range(2):
        import_files(lake, [write(tmp_path / f"{i}.parquet", 1, 30, offset=100 * i, days=1)])
    day = lake.root / "samples" / "day=2026-01-20"
    mine = [elsewhere / "part-00000009.parquet", day / "notes.parquet", day / "part-00000077.parquet"]
    for file in mine:
        file.write_text("not of the lake")
    (lake.root / "samples" / "day=2026-01-21").symlink_to(elsewhere)
    with lake.locked():
        merge_day(lake, "2026-01-20")
        lake.sweep()
    assert [f.read_text() for f in mine] == ["not of the lake"] * 3
    assert rows_of(lake) == 60


def test_what_killed_work_left_is_cleared_and_running_work_is_not(tmp_path):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 1, 30, days=1)])
    code = (
        "import os, sys; from gpuledger.lake.layout import Lake; from gpuledger.lake.importing import import_files\n"
        "Lake._write = lambda self, manifest: os._exit(9)\n"
        "import_files(Lake(sys.argv[1]), sys.argv[2:])"
    )
    late = write(tmp_path / "b.parquet", 1, 30, offset=100, days=1)
    killed = subprocess.run([sys.executable, "-c", code, str(lake.root), str(late)], check=False)
    assert killed.returncode == 9
    day = lake.root / "samples" / "day=2026-01-20"
    assert len(list(day.iterdir())) == 2, "the commit was cut off after its file was moved"
    assert list((lake.root / "staging").iterdir())
    foreign = lake.root / "staging" / "mine"
    foreign.mkdir()
    with lake.staging() as running:
        (running / "half.parquet").write_text("work in progress")
        import_files(lake, [late])
        assert (running / "half.parquet").exists()
    assert {p.name for p in (lake.root / "staging").iterdir()} == {"mine"}
    assert {p.name for p in day.iterdir()} == {p.file for p in lake.manifest().parts}
    assert rows_of(lake) == 60


def test_a_first_import_killed_at_its_commit_is_not_a_lost_manifest(tmp_path):
    code = (
        "import os, sys; from gpuledger.lake.layout import Lake; from gpuledger.lake.importing import import_files\n"
        "Lake._write = lambda self, manifest: os._exit(9)\n"
        "import_files(Lake(sys.argv[1]), sys.argv[2:])"
    )
    lake, file = Lake(tmp_path / "lake"), write(tmp_path / "a.parquet", 1, 30, days=1)
    assert subprocess.run([sys.executable, "-c", code, str(lake.root), str(file)], check=False).returncode == 9
    assert part_files(lake)
    assert lake.manifest() == Manifest()
    import_files(lake, [file])
    assert part_files(lake) == {str(lake.path(p).relative_to(lake.root)) for p in lake.manifest().parts}
    assert rows_of(lake) == 30


def test_files_replaced_before_a_kill_are_deleted_later(tmp_path, monkeypatch):
    lake = Lake(tmp_path / "lake")
    for i in range(2):
        import_files(lake, [write(tmp_path / f"{i}.parquet", 1, 30, offset=100 * i, days=1)])
    with monkeypatch.context() as patch, lake.locked():
        patch.setattr(Lake, "sweep", lambda self: None)
        merge_day(lake, "2026-01-20")
    assert len(part_files(lake)) == 3
    import_files(lake, [write(tmp_path / "c.parquet", 1, 30, offset=900, days=1)])
    assert part_files(lake) == {str(lake.path(p).relative_to(lake.root)) for p in lake.manifest().parts}


def killed_at_its_commit(lake: Lake, file: Path) -> None:
    code = (
        "import os, sys; from gpuledger.lake.layout import Lake; from gpuledger.lake.importing import import_files\n"
        "Lake._write = lambda self, manifest: os._exit(9)\n"
        "import_files(Lake(sys.argv[1]), sys.argv[2:])"
    )
    assert subprocess.run([sys.executable, "-c", code, str(lake.root), str(file)], check=False).returncode == 9


@pytest.mark.scale
@pytest.mark.parametrize("step", ["gpuledger.lake.layout.Lake._delete", "gpuledger.lake.staging._remove"])
def test_clearing_up_after_a_kill_may_be_killed_itself(tmp_path, monkeypatch, step):
    lake, file = Lake(tmp_path / "lake"), write(tmp_path / "a.parquet", 1, 30, days=1)
    killed_at_its_commit(lake, file)

    def killed(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, lake.locked():
        patch.setattr(step, killed)
        with pytest.raises(KeyboardInterrupt):
            lake.sweep()
    import_files(Lake(lake.root), [file])
    assert part_files(lake) == {str(lake.path(p).relative_to(lake.root)) for p in lake.manifest().parts}
    assert rows_of(lake) == 30


def test_the_lock_of_a_work_folder_goes_last(tmp_path, monkeypatch):
    real, gone = os.unlink, []
    monkeypatch.setattr(os, "unlink", lambda path, **more: (gone.append(os.fspath(path)), real(path, **more))[1])
    with Lake(tmp_path).staging() as folder:
        for name in ("0.parquet", "z.parquet"):
            (folder / name).write_text("rows")
    assert [Path(name).name for name in gone if "." not in Path(name).name] == ["in-use"] == [Path(gone[-1]).name]
    assert len(gone) == 3


def test_a_failed_first_import_takes_nothing_of_another_one_away(tmp_path):
    lake = Lake(tmp_path / "lake")
    bad = tmp_path / "bad.parquet"
    bad.write_text("not telemetry")
    with pytest.raises(Exception, match=r"bad\.parquet"):
        import_files(lake, [bad])
    assert not lake.root.exists()
    fresh = Lake(tmp_path / "lake")
    with fresh.staging() as working:
        (working / "half.parquet").write_text("work in progress")
        fresh.store.undo_new()
        assert (working / "half.parquet").exists()
    import_files(fresh, [write(tmp_path / "a.parquet", 1, 30, days=1)])
    fresh.store.undo_new()
    assert rows_of(fresh) == 30


def test_a_lock_taken_away_while_others_wait_for_it_still_admits_one_at_a_time(tmp_path):
    lake, inside, most = Lake(tmp_path / "lake"), [], []

    def work() -> None:
        with Lake(lake.root).locked():
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    with lake.locked():
        waiting = [threading.Thread(target=work) for _ in range(3)]
        for one in waiting:
            one.start()
        time.sleep(0.05)
        (lake.root / "lock").unlink()
        lake.root.rmdir()
    late = threading.Thread(target=work)
    late.start()
    for one in (*waiting, late):
        one.join()
    assert most == [1] * 4


def test_what_killed_writers_left_of_small_files_is_cleared(tmp_path):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 1, 30, days=1)])
    (lake.root / "runs").mkdir()
    left = [
        lake.root / ".manifest.json.7.8",
        lake.root / "runs" / ".old.json.7.8",
        lake.root / "runs" / ".new.json.7.8",
    ]
    for file in left:
        file.write_text("{")
    os.utime(left[1], (time.time() - 7200,) * 2)
    with lake.locked():
        lake.sweep()
    assert [file.exists() for file in left] == [False, False, True]


@pytest.mark.parametrize("merges", [1, 3])
def test_samples_read_while_their_parts_are_merged_are_of_one_state(tmp_path, monkeypatch, merges):
    """Before the first part is read, all of them are merged and deleted: once, or each time without the lock."""
    lake, left, real = Lake(tmp_path / "lake"), [merges], pq.read_table
    for i in range(2):
        import_files(lake, [write(tmp_path / f"{i}.parquet", 1, 30, offset=100 * i, days=1)])

    def merged_first(path, **options):
        if left[0]:
            left[0] -= 1
            import_files(lake, [write(tmp_path / "more.parquet", 1, 10, offset=1000 * (1 + left[0]), days=1)])
            with lake.locked():
                merge_day(lake, "2026-01-20")
        return real(path, **options)

    monkeypatch.setattr(pq, "read_table", merged_first)
    assert samples_table(lake).num_rows == 60 + 10 * merges


def test_a_part_that_is_really_gone_is_reported(tmp_path):
    lake = Lake(tmp_path / "lake")
    import_files(lake, [write(tmp_path / "a.parquet", 1, 30, days=1)])
    lake.path(lake.manifest().parts[0]).unlink()
    with pytest.raises(LakeError, match="names this part but it is missing"):
        samples_table(lake)
