"""Are times known the same on every way back from a file that leaves out those that are the time observed?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import samples as make
from hypothesis import given, settings
from written import write_samples

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.daily import fold_days
from gpuledger.ledger.day_writer import DAYS
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.posting import post
from gpuledger.ledger.read.columns import Wanted, read_files, read_groups, table_rows
from gpuledger.ledger.store import Ledger
from gpuledger.units import utc_day

DAY_NAME = utc_day(make.DAY)


def minutes(device: str) -> list[dict]:
    return [
        {"at_ms": make.DAY + i * 60_000, "gpu_uuid": device, "gpu_model": make.H200, "gpu_util_ratio": (i % 10) / 10,
         "power_w": 100.0 + i, "engine_ratio": 0.5}
        for i in range(150)
    ]  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path, limits) -> Lake:
    """One device without a gap, one that now and then misses its power."""
    rows = minutes("GPU-a") + [r | ({"power_w": None} if i % 7 == 0 else {}) for i, r in enumerate(minutes("GPU-b"))]
    found = Lake(tmp_path / "lake")
    import_files(found, [write_samples(tmp_path, "f", rows)])
    post_lake(found, limits)
    return found


def files(lake: Lake, table: str = "lines") -> list[str]:
    return Ledger(lake).files(table)


def test_a_file_has_null_where_a_time_known_is_the_time_observed(lake):
    stored = pq.read_table(files(lake)[0], partitioning=None)
    assert stored["util_ms"].null_count == stored["engine_ms"].null_count == stored.num_rows
    assert not stored["power_ms"].null_count
    read = Ledger(lake).read("lines", DAY_NAME)
    assert read.schema.equals(lines.arrow_schema())
    assert read["util_ms"].equals(read["observed_ms"])
    assert sum(read["power_ms"].to_pylist()) < sum(read["observed_ms"].to_pylist())


@pytest.mark.parametrize("read", [read_files, read_groups])
@pytest.mark.parametrize("numbers", [("util_ms", "power_ms", "observed_ms"), ("util_ms", "power_ms")])
@pytest.mark.parametrize("table", ["lines", DAYS])
def test_readers_fill_them_in(lake, read, numbers, table):
    whole = lines.as_now(pq.read_table(files(lake, table)[0], partitioning=None))
    for _, rows in read(files(lake, table), Wanted({}, numbers)):
        assert {n: rows[n].tolist() for n in numbers} == {n: whole[n].to_pylist() for n in numbers}
        assert set(rows) == set(numbers)


def test_files_with_every_number_written_make_the_same_statement(lake):
    """As files were written before."""
    before = efficiency_statement(lake)
    for table in ("lines", DAYS):
        for file in files(lake, table):
            pq.write_table(lines.as_now(pq.read_table(file, partitioning=None)), file)
    assert efficiency_statement(lake) == before


def test_a_column_with_null_in_some_rows_is_filled_row_by_row(tmp_path):
    file = tmp_path / "mixed.parquet"
    pq.write_table(pa.table({"observed_ms": [5, 6, 7], "util_ms": pa.array([None, 2, None], pa.int64())}), file)
    ((_, rows),) = read_files([str(file)], Wanted({}, ("util_ms",)))
    assert rows["util_ms"].tolist() == [5, 2, 7]
    assert rows["util_ms"].dtype == "int64"


@given(make.series(shared=True))
@settings(max_examples=30, deadline=None)
def test_what_is_written_reads_back_to_the_last_digit(limits, samples):
    posted = post(make.table(samples), limits).lines
    for made in (posted, fold_days(posted)):
        assert lines.as_now(lines.as_written(made)).equals(made.cast(lines.arrow_schema()))
        wanted = Wanted({}, lines.names("sum"))
        back, whole = table_rows(lines.as_written(made), wanted), table_rows(made, wanted)
        assert {n: v.tolist() for n, v in back.items()} == {n: v.tolist() for n, v in whole.items()}
