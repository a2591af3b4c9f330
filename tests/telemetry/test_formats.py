"""Is a file opened by the same format, whether all formats were asked or only those that can know it?"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuledger.telemetry.formats import FORMATS, PAGE_BYTES, PARQUET_MAGIC, TABLE_MODULES, Fit, Head, head_of


def test_every_format_of_tables_is_among_those_that_are_loaded_for_one():
    modules = {one.score.__module__.rpartition(".")[2] for _, one in FORMATS if one.from_table}
    assert modules | {"parquet_file"} == set(TABLE_MODULES)


# Beginnings of other kinds of files, in what would be Parquet's first pages.
WORDS = [b"\n# HELP ", b"system.gpu.0.gpu,", b'{"metric":', b"\ngpu:0/x (W)/last,", b"\n#Entity ", b"power.draw [W], "]


@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=20), max_size=8), st.sampled_from([".csv", ".parquet", ""]))
@example([], ".jsonl")
def test_only_formats_of_tables_can_know_a_file_that_starts_as_parquet_and_is_not_text(parts, suffix):
    head = Head(Path(f"file{suffix}"), PARQUET_MAGIC + b"\x15\x00" + b"".join(parts))
    assert head.parquet
    assert not head.text
    assert {name for name, one in FORMATS if one.score(head).fit is not Fit.NO} == {"parquet"}


def test_a_packed_file_is_not_parquet():
    assert not Head(Path("x.gz"), PARQUET_MAGIC, zipped=True).parquet


# Text that patterns which go back and forth take long over.
HOSTILE = [
    "a ",
    " ",
    "1",
    "| 1 |",
    "|    ",
    '{"a":',
    "\n",
    "0 1 2 3 4 5 6 7 8 9,",
    "[",
    "\t",
    "GPU ",
    "# gpu ",
    "a=1,",
    ": ",
]
MOST_S = 1.0  # of any format; a usual one takes a millisecond


@pytest.mark.parametrize("text", HOSTILE)
def test_no_format_takes_long_over_any_text(tmp_path, text):
    file = tmp_path / "text"
    file.write_text(text * (PAGE_BYTES // len(text) + 1))
    for name, one in FORMATS:
        head, before = head_of(file), time.process_time()
        one.score(head)
        assert time.process_time() - before < MOST_S, name
