"""Is a CSV below lines of comments read as if they were not there, however it is cut?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuledger
from gpuledger.errors import FileFault
from gpuledger.telemetry.formats.csv_file import open_csv

HEAD = "timestamp,UUID,modelName,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL\n"
ROWS = [f"2026-01-20T00:0{i}:00Z,GPU-1,NVIDIA A10G,n1,0,{10 * i}\n" for i in range(9)]
COMMENT = st.text("ab,;# \t", max_size=30).map(lambda words: f"#{words}\n")


@given(st.lists(COMMENT, max_size=6), st.integers(1, 5))
def test_leading_comments_change_nothing(tmp_path_factory, comments, parts):
    file = tmp_path_factory.mktemp("csv") / "a.csv"
    file.write_text("".join(comments) + HEAD + "".join(ROWS))
    opened = open_csv(file)
    assert opened.names == HEAD.strip().split(",")
    assert opened.cut is not None
    pieces = [batch for piece in opened.cut(parts) for batch in piece.batches(["DCGM_FI_DEV_GPU_UTIL"], ())]
    assert [v for batch in pieces for v in batch.column(0).to_pylist()] == [str(10 * i) for i in range(9)]


def test_a_csv_with_comments_is_imported_and_its_wrong_rows_keep_their_number(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("# fleet export\n# 2026, by ops\n" + HEAD + "".join(ROWS) + "too,few\n")
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest(file)
    assert (result.rows_added, result.rows_rejected) == (9, 1)
    rejects = next((tmp_path / "lake" / "rejects").glob("*.csv")).read_text()
    assert ",10," in rejects


def test_a_header_that_starts_with_a_hash_stays_one(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("# made by hand\n#" + HEAD + "".join(ROWS))
    assert open_csv(file).names[0] == "#timestamp"


def test_comments_alone_are_not_a_table(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("# one\n# two\n")
    with pytest.raises(FileFault):
        open_csv(file)
