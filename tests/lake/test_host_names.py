"""Are rows that give one UUID several hosts taken as one GPU only where they are of one?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.errors import InputError
from gpuledger.lake import host_names, importing, pieces
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.straight import post_files

START_MS = 1_768_896_000_000  # 2026-01-20T08:00Z
STEP_MS = 15_000
GIB_IN_MIB = 1024
Row = tuple[int, str, int]


def rows_of(
    host: str, used_mib: Callable[[int], int], *, first: int = 0, rows: int = 240, later_ms: int = 0
) -> list[Row]:
    """Samples of one host: instant, host, used memory by number of the sample."""
    return [(START_MS + n * STEP_MS + later_ms, host, used_mib(n)) for n in range(first, first + rows)]


def written(file: Path, rows: Iterable[Row], instance: str | None = None) -> Path:
    """The rows of one GPU, or of one slice of it, as an exporter's table; a row group for every 50."""
    at, hosts, used = zip(*sorted(rows), strict=True)
    table = pa.table({
        "timestamp": pa.array(at, pa.timestamp("ms", "UTC")),
        "UUID": ["GPU-1"] * len(at),
        "modelName": ["NVIDIA H100 80GB HBM3"] * len(at),
        "Hostname": hosts,
        "DCGM_FI_DEV_GPU_UTIL": [90] * len(at),
        "DCGM_FI_DEV_FB_USED": used,
    })  # fmt: skip
    if instance is not None:
        table = table.append_column("GPU_I_ID", pa.array([instance] * len(at)))
    pq.write_table(table, file, row_group_size=50)
    return file


def full(_n: int) -> int:
    return 40_000


def empty(_n: int) -> int:
    return 0


@pytest.mark.parametrize("instance", [None, "7"])
@pytest.mark.parametrize("later_ms", [0, 3_000])
@pytest.mark.parametrize("processes", [1, 2])
def test_two_gpus_with_one_uuid_are_refused_whole(
    tmp_path: Path, later_ms: int, processes: int, instance: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 100)
    file = written(tmp_path / "both.parquet", rows_of("n1", full) + rows_of("n2", empty, later_ms=later_ms), instance)
    lake, books = Lake(tmp_path / "lake"), Lake(tmp_path / "books")
    with pytest.raises(InputError, match=r"n1 \(39.1 GiB in use\) and n2 \(0.0 GiB in use\)") as refused:
        import_files(lake, [file], processes=processes)
    assert "two GPUs with one UUID" in refused.value.message
    assert "one GPU whose host has two names" in refused.value.message
    assert "UUID of its own" in refused.value.hint
    assert not lake.exists()
    with pytest.raises(InputError, match="two GPUs with one UUID"):
        post_files(books, [file], load_thresholds(), processes=processes)


@pytest.mark.parametrize("by_day", [True, False])
def test_the_import_that_would_join_them_adds_nothing(
    tmp_path: Path, by_day: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_day:
        monkeypatch.setattr(importing, "grouped", lambda *_given: None)
    one = written(tmp_path / "n1.parquet", rows_of("n1", full))
    other = written(tmp_path / "n2.parquet", rows_of("n2", empty, later_ms=3_000))
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(one)
    before = lake.samples().arrow()
    with pytest.raises(InputError, match="two GPUs with one UUID"):
        lake.ingest(other)
    assert lake.samples().arrow().equals(before)
    assert lake.ingest(one).rows_duplicate == len(before)


def test_a_few_rows_at_a_time_are_counted_with_the_rest_of_their_day(tmp_path: Path) -> None:
    """Each import alone has too few rows to show two GPUs."""
    lake = Lake(tmp_path / "lake")
    import_files(lake, [written(tmp_path / "n1.parquet", rows_of("n1", full, rows=60))])
    added = 0
    with pytest.raises(InputError, match="two GPUs with one UUID"):  # noqa: PT012
        for first in range(0, 60, 4):
            some = rows_of("n2", empty, first=first, rows=4, later_ms=3_000)
            import_files(lake, [written(tmp_path / f"{first}.parquet", some)])
            added += 4
    assert 0 < added <= 20
    assert samples_table(lake).num_rows == 60 + added


def jobs(n: int) -> int:
    return 70_000 * (n // 12 % 2)


HONEST = {
    "renamed between two jobs": rows_of("n1", full, rows=120) + rows_of("n2", empty, first=120),
    "with its domain": rows_of("n1", full) + rows_of("n1.example.com", full, later_ms=1_000),
    "two scrapers": rows_of("n1", full) + rows_of("scraper-2", full, later_ms=1),
    "two scrapers, jobs come and go": rows_of("n1", jobs) + rows_of("n2", jobs, later_ms=7_000),
    "two scrapers, memory never the same twice": rows_of("n1", lambda n: 9_000 * (n % 7))
    + rows_of("n2", lambda n: 9_000 * (n * 3 % 8), later_ms=7_000),
    "1 GiB apart": rows_of("n1", full) + rows_of("n2", lambda _n: 40_000 + GIB_IN_MIB, later_ms=3_000),
    "too few rows": rows_of("n1", full, rows=10) + rows_of("n2", empty, rows=10, later_ms=3_000),
}


@pytest.mark.parametrize("rows", HONEST.values(), ids=HONEST)
def test_one_gpu_under_two_host_names_stays_one(tmp_path: Path, rows: list[Row]) -> None:
    file = written(tmp_path / "one.parquet", rows)
    lake = Lake(tmp_path / "lake")
    assert import_files(lake, [file]).rows_added == len(rows)
    post_lake(lake, load_thresholds())
    assert post_files(Lake(tmp_path / "books"), [file], load_thresholds()).rows_rejected == 0


def test_rows_without_a_host_or_memory_show_nothing(tmp_path: Path) -> None:
    """A scraper that names no host is not a second host, whatever it reads."""
    unnamed = [(at, "", used) for at, _, used in rows_of("", empty, later_ms=3_000)]
    file = written(tmp_path / "one.parquet", rows_of("n1", full) + unnamed)
    assert import_files(Lake(tmp_path / "lake"), [file]).rows_added == 480


def test_a_lake_of_before_is_refused_at_its_next_posting(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    both = rows_of("n1", full) + rows_of("n2", empty, later_ms=3_000)
    with pytest.MonkeyPatch.context() as patch:  # as a version did that looked at no host names
        patch.setattr(importing, "refuse_two", lambda _found: None)
        import_files(lake, [written(tmp_path / "both.parquet", both)])
    with pytest.raises(InputError, match="two GPUs with one UUID") as refused:
        post_lake(lake, load_thresholds())
    assert "new lake" in refused.value.hint


def test_only_rows_whose_host_changes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fleets have many hosts and devices with one each: their rows are not sorted again."""

    def none(*_args: object) -> None:
        raise AssertionError("looked at memory")

    monkeypatch.setattr(host_names, "_counted", none)
    table = pa.table({
        "at_ms": [0, 1, 0, 1],
        "gpu_uuid": pa.array(["GPU-1", "GPU-1", "GPU-2", "GPU-2"]).dictionary_encode(),
        "host": pa.array(["n1", "n1", "n2", "n2"]).dictionary_encode(),
        "fb_used_bytes": [1, 2, 3, 4],
    })  # fmt: skip
    assert host_names.neighbors_of(table) == {}
