"""Do writers at once, from machines that share nothing but the bucket, lose nothing and double nothing?"""

import shutil
import threading
import time

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake, Part
from gpuledger.lake.stores import lease
from gpuledger.lake.stores.lease import Overtaken
from gpuledger.ledger.engine import post_lake
from s3_lakes import assert_whole, lines_samples, work, write

pytestmark = pytest.mark.parametrize("s3", ["s3_process", "gcs_process"], indirect=True, ids=["s3", "gs"])


@pytest.mark.parametrize("same_machine", [True, False])
def test_two_writers_at_once(place, writers, tmp_path, same_machine):
    """Each imports files of its own and one that both have."""
    both = write(tmp_path / "both.parquet")
    started = []
    for who in range(2):
        own = [write(tmp_path / f"{who}-{i}.parquet", offset=1000 * (1 + 3 * who + i)) for i in range(3)]
        env = {} if same_machine else {"GPULEDGER_CACHE": str(tmp_path / f"machine-{who}")}
        started.append(writers.start(lake=place, files=[*map(str, own), str(both)], env=env))
    assert [writers.ended(pid) for pid in started] == [0, 0]
    lake = Lake(place)
    post_lake(lake, load_thresholds(None))
    assert assert_whole(lake) == 7 * 120
    assert lines_samples(lake) == 7 * 120


def test_a_writer_that_stands_still_is_taken_over_from_and_cannot_commit(place, writers, tmp_path, monkeypatch):
    """It is suspended while it holds the lease; a writer of another machine goes on in its place."""
    late = write(tmp_path / "late.parquet", offset=100)
    monkeypatch.setattr(lease.Lease, "_renew", lambda _self: None)
    stopped = Lake(place)
    with stopped.locked(), stopped.staging() as folder:
        assert not stopped.manifest().parts
        elsewhere = {"GPULEDGER_CACHE": str(tmp_path / "elsewhere")}
        order = {"lake": place, "files": [str(write(tmp_path / "a.parquet"))], "lost_s": 0.5, "env": elsewhere}
        assert writers.ended(writers.start(**order)) == 0
        staged = folder / "late.parquet"
        shutil.copy(late, staged)
        with pytest.raises(Overtaken) as error:  # it wakes up and believes that it may still write
            stopped.commit([(staged, Part(0, "2026-01-20", "", 60, 0, 1, "GPU-0", "GPU-1"))])
    assert error.value.hint == "run the same command again"
    assert assert_whole(Lake(place)) == 120


def test_a_writer_waits_for_one_that_works(place, tmp_path, monkeypatch):
    """A lease that is kept up is not taken, however long its holder works."""
    monkeypatch.setattr(lease, "LOST_S", 1.0)
    monkeypatch.setattr(lease, "RENEW_S", 0.1)
    import_files(Lake(place), [write(tmp_path / "a.parquet")])
    order = []

    def second():
        # Another machine: its copies are elsewhere, so no lock file is shared.
        store = Lake(place).store
        store.copies = tmp_path / "elsewhere"
        with store.locked():
            order.append("second")

    with Lake(place).locked():
        other = threading.Thread(target=second)
        other.start()
        time.sleep(2.5)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_importing_again_adds_nothing(place, tmp_path):
    file = write(tmp_path / "a.parquet")
    for _ in range(2):
        work({"lake": place, "files": [file]})
    assert assert_whole(Lake(place)) == 120


def test_a_lost_manifest_is_not_built_over(place, tmp_path):
    lake, file = Lake(place), write(tmp_path / "a.parquet")
    work({"lake": place, "files": [file]})
    (lake.root / "manifest.json").unlink()
    with pytest.raises(LakeError, match=r"manifest\.json is missing"):
        import_files(Lake(place), [file])
