"""Is a file opened by the same source, whether all sources were asked or only those that can know it?"""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from gpuledger.telemetry.sources import PARQUET_MAGIC, SOURCES, TABLE_MODULES, Fit, Head, TableSource


def test_every_source_of_tables_is_among_those_that_are_loaded_for_one():
    modules = {type(source).__module__.rpartition(".")[2] for _, source in SOURCES if isinstance(source, TableSource)}
    assert modules | {"parquet_file"} == set(TABLE_MODULES)


# Beginnings of other kinds of files, in what would be Parquet's first pages.
WORDS = [b"\n# HELP ", b"system.gpu.0.gpu,", b'{"metric":', b"\ngpu:0/x (W)/last,", b"\n#Entity ", b"power.draw [W], "]


@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=20), max_size=8), st.sampled_from([".csv", ".parquet", ""]))
@example([], ".jsonl")
def test_only_sources_of_tables_can_know_a_file_that_starts_as_parquet_and_is_not_text(parts, suffix):
    head = Head(Path(f"file{suffix}"), PARQUET_MAGIC + b"\x15\x00" + b"".join(parts))
    assert head.parquet
    assert not head.text
    assert {name for name, source in SOURCES if source.fits(head) is not Fit.NO} == {"parquet"}


def test_a_packed_file_is_not_parquet():
    assert not Head(Path("x.gz"), PARQUET_MAGIC, zipped=True).parquet
