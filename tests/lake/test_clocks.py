"""Can a host whose clock is ahead get samples into the lake, or move the window of everyone's statements?"""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuledger
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import FileFault, LakeError
from gpuledger.lake import importing
from gpuledger.lake.clocks import SKEW_MS
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.doubts import doubts
from gpuledger.ledger.read.window import newest_ms, scope_of
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms

YEAR_MS = 365 * MS_PER_DAY
MIN_MS = 60_000


def now_ms():
    return time.time_ns() // 1_000_000


def file_of(file, *devices):
    """A file of samples: (GPU, host, times)."""
    rows = [(t, gpu, host, 0.5, 200.0, "NVIDIA A10G", "ml") for gpu, host, times in devices for t in times]
    names = ("at_ms", "gpu_uuid", "host", "gpu_util_ratio", "power_w", "gpu_model", "namespace")
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), file)
    return file


def fleet(file, end_ms, days=3, gpus=4):
    times = range(end_ms - days * MS_PER_DAY, end_ms, 10 * MIN_MS)
    return file_of(file, *((f"GPU-{g}", "node-1", times) for g in range(gpus)))


def as_before(monkeypatch):
    """Import as a gpuledger did that took any time for good."""
    monkeypatch.setattr(importing, "latest_ms", lambda: 0)
    monkeypatch.setattr(importing, "check_store_clock", lambda *_: None)


def test_rows_ahead_of_now_are_rejected_and_their_host_is_named(tmp_path):
    end, lake = now_ms(), Lake(tmp_path / "lake")
    late = ("GPU-9", "node-9", [end - MIN_MS, end + YEAR_MS, end + YEAR_MS + 1])
    done = import_files(lake, [file_of(tmp_path / "a.parquet", ("GPU-1", "node-1", [end - MIN_MS, end]), late)])
    assert (done.rows_added, done.rows_rejected, done.rejects) == (3, 2, {"later_than_now": 2})
    assert "GPU-9 of node-9" in done.examples["later_than_now"]
    (note,) = done.notes
    assert "2 rows rejected" in note
    assert "GPU-9 of node-9" in note
    assert "GPU-1" not in note
    assert "clock" in note
    assert newest_ms(lake) <= now_ms()


@given(st.lists(st.integers(-400 * MS_PER_DAY, 400 * MS_PER_DAY), min_size=1, max_size=30, unique=True))
@settings(max_examples=15)
def test_a_row_is_rejected_when_it_is_over_an_hour_ahead(tmp_path_factory, offsets):
    folder, start = tmp_path_factory.mktemp("a"), now_ms()
    offsets = [0, *(o for o in offsets if o and abs(o - SKEW_MS) > MIN_MS)]
    done = import_files(
        Lake(folder / "lake"), [file_of(folder / "a.parquet", ("GPU-1", "n", [start + o for o in offsets]))]
    )
    assert done.rows_added == sum(o <= SKEW_MS for o in offsets)
    assert done.rejects.get("later_than_now", 0) == sum(o > SKEW_MS for o in offsets)


def test_a_file_of_times_to_come_is_refused_with_the_next_step(tmp_path):
    lake, file = Lake(tmp_path / "lake"), tmp_path / "a.parquet"
    file_of(file, ("GPU-9", "node-9", [now_ms() + YEAR_MS]))
    with pytest.raises(FileFault, match="later than now") as found:
        import_files(lake, [file])
    assert "node-9" in found.value.hint
    assert "--tz" in found.value.hint
    assert not lake.root.exists()


def test_a_machine_ahead_of_the_storage_of_the_lake_imports_nothing(tmp_path, monkeypatch):
    """Its own clock calls the samples good; the clock that dates files does not."""
    clock = time.time_ns
    import_files(Lake(tmp_path / "lake"), [fleet(tmp_path / "a.parquet", now_ms() - MS_PER_DAY)])
    before = Lake(tmp_path / "lake").manifest()
    monkeypatch.setattr(time, "time_ns", lambda: clock() + YEAR_MS * 1_000_000)
    with pytest.raises(LakeError, match="365 days ahead of the clock of the lake's storage"):
        import_files(Lake(tmp_path / "lake"), [fleet(tmp_path / "b.parquet", now_ms())])
    assert Lake(tmp_path / "lake").manifest() == before


def test_statements_leave_out_what_an_older_version_took(tmp_path, monkeypatch):
    end, plain, spoiled = now_ms() // MS_PER_HOUR * MS_PER_HOUR, tmp_path / "plain", tmp_path / "spoiled"
    good = fleet(tmp_path / "a.parquet", end)
    ahead = file_of(tmp_path / "b.parquet", ("GPU-9", "node-9", [end + YEAR_MS + i * 1000 for i in range(3)]))
    import_files(Lake(plain), [good])
    as_before(monkeypatch)
    import_files(Lake(spoiled), [good, ahead])
    for window in ({"last": "2d"}, {}):
        first, second = (gpuledger.open(root).audit(price=2, **window).statement for root in (plain, spoiled))
        assert second.cost.dollars == first.cost.dollars
        assert second.cost.gpus == 4
        added = set(second.assumptions) - set(first.assumptions)
        assert any("later than now" in words and "GPU-9" in words for words in added)
    assert newest_ms(Lake(spoiled)) == newest_ms(Lake(plain))


def test_few_gpus_after_days_without_samples_are_reported(tmp_path):
    """A clock that was ahead, but not of now: nothing is left out, since a fleet may also have shrunk."""
    lake, end = Lake(tmp_path / "lake"), day_start_ms("2026-03-10")
    late = file_of(tmp_path / "b.parquet", ("GPU-9", "node-9", [end + 60 * MS_PER_DAY + i * 1000 for i in range(3)]))
    import_files(lake, [fleet(tmp_path / "a.parquet", end), late])
    post_lake(lake, load_thresholds())
    (words,) = doubts(lake)
    assert "2026-05-09" in words
    assert "1 GPU," in words
    assert "4 GPUs" in words
    assert "2026-03-10" in words
    assert doubts(lake, scope_of(lake, until="2026-03-10")) == ()
    assert scope_of(lake, last="1d").until_ms is None


def test_a_fleet_that_pauses_or_shrinks_day_by_day_is_not_reported(tmp_path):
    lake, end = Lake(tmp_path / "lake"), day_start_ms("2026-03-10")
    files = [
        fleet(tmp_path / "a.parquet", end),
        fleet(tmp_path / "b.parquet", end + 20 * MS_PER_DAY, gpus=3),
        fleet(tmp_path / "c.parquet", end + 21 * MS_PER_DAY, days=1, gpus=1),
    ]
    import_files(lake, files)
    post_lake(lake, load_thresholds())
    assert doubts(lake) == ()
    assert scope_of(lake).until_ms is None
