"""Does a reader see a committed state, whatever is posted, merged and tidied meanwhile, and are its copies few?"""

import os
import subprocess
import sys
import time

import msgspec
import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import InputError
from gpuledger.lake import layout
from gpuledger.lake.layout import Lake
from gpuledger.lake.stores import bucket, cache, lease
from gpuledger.lake.stores.path import StorePath
from gpuledger.ledger import store
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.tidying import Ages, tidy_lake
from gpuledger.units import MS_PER_DAY, day_start_ms
from s3_lakes import Writers, assert_whole, work, write

LIMITS = load_thresholds(None)
ON_BOTH = pytest.mark.parametrize("s3", ["s3_process", "gcs_process"], indirect=True, ids=["s3", "gs"])
AGES = Ages(day_start_ms("2026-02-20"), MS_PER_DAY, MS_PER_DAY)


def samples(books):
    return sum(int(rows["samples"].sum()) for _, rows in books.blocks((), ("samples",), hourly=True))


def keys(lake, folder):
    return {f.name for f in (lake.root / folder).glob("*/*.parquet")}


@ON_BOTH
def test_a_reader_that_has_begun_finishes_after_a_tidy(place, tmp_path, monkeypatch):
    work({"lake": place, "files": [write(tmp_path / "a.parquet")]})
    monkeypatch.setenv("GPULEDGER_CACHE", str(tmp_path / "reader"))  # nothing of the lake is here yet
    lake = Lake(place)
    books, parts = Books(lake, Scope()), lake.manifest().parts
    monkeypatch.setenv("GPULEDGER_CACHE", str(tmp_path / "writer"))
    tidied = tidy_lake(Lake(place), LIMITS, AGES)
    assert (tidied.drop.rows, len(tidied.days_folded)) == (120, 2)
    assert samples(books) == 120
    assert len(lake.paths(parts)) == 2
    assert samples(Books(Lake(place), Scope())) == 120


@ON_BOTH
def test_replaced_files_go_after_a_while(place, tmp_path, monkeypatch):
    lake = Lake(place)
    for i in range(2):
        work({"lake": place, "files": [write(tmp_path / f"{i}.parquet", offset=100 * i)]})
    before = keys(lake, "samples") | keys(lake, "ledger")
    monkeypatch.setattr(layout, "GRACE_S", -10)
    monkeypatch.setattr(store, "GRACE_S", -10)
    work({"lake": place, "files": [write(tmp_path / "2.parquet", offset=200)]})
    work({"lake": place, "files": [write(tmp_path / "3.parquet", offset=300)]})
    named = {p.file for p in lake.manifest().parts} | {r.rpartition("/")[2] for r in lake.manifest().replaced}
    assert keys(lake, "samples") == named
    assert len(keys(lake, "ledger")) == 2 * 6, "tables of older generations stay"
    assert not before & keys(lake, "ledger")
    assert assert_whole(lake) == 480


@ON_BOTH
def test_what_a_killed_writer_left_is_swept_by_age(place, tmp_path, monkeypatch):
    lake = Lake(place)
    work({"lake": place, "files": [write(tmp_path / "a.parquet")]})
    orphan = lake.root / "samples" / "day=2026-01-20" / "part-00000077-0123456789ab.parquet"
    foreign = lake.root / "samples" / "day=2026-01-20" / "notes.txt"
    for file in (orphan, foreign):
        file.write_bytes(b"x")
    work({"lake": place, "files": [write(tmp_path / "b.parquet", offset=100)]})
    assert orphan.exists(), "it may be of a writer at work"
    monkeypatch.setattr(layout, "ORPHAN_S", -10)
    work({"lake": place, "files": [write(tmp_path / "c.parquet", offset=200)]})
    assert not orphan.exists()
    assert foreign.exists()
    assert assert_whole(lake) == 360


def test_a_reader_next_to_a_writer_sees_whole_imports_only(s3, place, tmp_path):
    work({"lake": place, "files": [write(tmp_path / "0.parquet")]})
    files = [str(write(tmp_path / f"{i}.parquet", offset=100 * i)) for i in range(1, 5)]
    writers = Writers(s3.env)
    pid, seen = writers.start(lake=place, files=files, post_each=True), []
    while not seen or seen[-1] < 600:
        seen.append(samples(Books(Lake(place), Scope())))
    assert writers.ended(pid) == 0
    writers.close()
    assert seen == sorted(seen)
    # Each import adds 120 samples; its two days are posted one after the other.
    assert set(seen) <= {60 * n for n in range(2, 11)}


def test_copies_stay_within_their_bound(place, tmp_path, monkeypatch):
    lake = Lake(place)
    work({"lake": place, "files": [write(tmp_path / "a.parquet")]})
    copies = list((lake.store.copies).rglob("*.parquet"))
    assert copies
    monkeypatch.setenv("GPULEDGER_CACHE_SIZE", "0")
    cache.trim(lake.store.copies)
    assert all(f.exists() for f in copies), "a statement may be reading them"
    old = time.time() - 7200
    for file in copies:
        os.utime(file, (old, old))
    kept = sum(f.stat().st_size for f in copies) - 1
    monkeypatch.setenv("GPULEDGER_CACHE_SIZE", f"{kept}B")
    cache.trim(lake.store.copies)
    assert len([f for f in copies if f.exists()]) == len(copies) - 1
    monkeypatch.setenv("GPULEDGER_CACHE_SIZE", "0K")
    cache.trim(lake.store.copies)
    assert not any(f.exists() for f in copies)
    assert assert_whole(Lake(place)) == 120
    assert Ledger(lake).read("lines", "2026-01-20").num_rows


@pytest.mark.parametrize("text", ["much", "-1", "3 XB"])
def test_a_bound_that_is_not_a_size(monkeypatch, text):
    monkeypatch.setenv("GPULEDGER_CACHE_SIZE", text)
    with pytest.raises(InputError, match="is not a size"):
        cache.most_bytes()


@ON_BOTH
def test_small_files_of_a_bucket_read_as_paths_do(place):
    file = StorePath(place) / "counted" / "a.json"
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()
    with pytest.raises(FileNotFoundError):
        file.unlink()
    file.write_bytes(b"{}")
    before = file.stat()
    file.write_bytes(b"[]")
    assert (file.read_bytes(), file.stat().st_size) == (b"[]", 2)
    assert file.stat().st_mtime_ns != before.st_mtime_ns
    with pytest.raises(FileExistsError):
        file.touch(exist_ok=False)
    (file.parent / "b.csv").write_bytes(b"x")
    assert [f.name for f in file.parent.glob("*.json")] == ["a.json"]
    assert [f.name for f in StorePath(place).glob("*")] == ["counted"]
    file.unlink()
    assert not file.exists()


def test_local_lakes_do_not_load_the_library(tmp_path):
    code = (
        "import sys, gpuledger; books = gpuledger.open(sys.argv[1]); books.ingest(sys.argv[2]); books.lines();"
        "sys.exit('obstore' in sys.modules or 'gpuledger.lake.stores.remote' in sys.modules)"
    )
    given = [sys.executable, "-c", code, str(tmp_path / "lake"), str(write(tmp_path / "a.parquet"))]
    assert (
        subprocess.run(given, check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}).returncode == 0
    )


@ON_BOTH
def test_a_file_larger_than_a_request_arrives_whole(place, tmp_path, monkeypatch):
    monkeypatch.setattr(bucket, "_PIECE", 1 << 20)
    lake, content = Lake(place), os.urandom((6 << 20) + 17)
    (tmp_path / "large").write_bytes(content)
    target = lake.root / "samples" / "large.parquet"
    lake.store.add([(tmp_path / "large", target)])
    monkeypatch.setenv("GPULEDGER_CACHE", str(tmp_path / "reader"))
    assert Lake(place).store.local([target])[0].read_bytes() == content


@ON_BOTH
def test_a_turn_whose_answer_was_lost_is_not_taken_for_another_writer(s3, place):
    """The server is away from the moment it carried out the renewal until after the client has given up."""
    lock = Lake(place).store
    lock._make(lock.copies)
    held = lease.Lease(lock.bucket, lock.address.key, "me")
    held._take()
    held._tried.add("earlier")
    arrived = msgspec.json.encode(lease.Holding(holder="me", turn=2, nonce="earlier"))
    assert lock.bucket.swap(f"{lock.address.key}/lock.json", arrived, held._mark)
    assert held._swap()
    other = msgspec.json.encode(lease.Holding(holder="you", turn=3, nonce="other"))
    lock.bucket.write(f"{lock.address.key}/lock.json", other)
    assert not held._swap()
