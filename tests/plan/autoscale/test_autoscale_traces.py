"""Is a trace read as it was meant, and refused in words where it cannot be?"""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.errors import FileFault, GpuledgerError, UnknownName
from gpuledger.plan.autoscale.demand.reading import read_trace


@pytest.fixture
def write(tmp_path):
    def make(text: str, name: str = "trace.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def test_requests_with_tokens(write):
    head = "TIMESTAMP,ContextTokens,GeneratedTokens"
    rows = ("2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:25:46.6805900,396,56")
    trace = read_trace(write("\n".join((head, *rows))))
    assert trace.at_s.tolist() == [0.0, 600.0]
    assert trace.generated.tolist() == [44, 56]
    assert (trace.length_s, trace.requests, trace.mean_tokens) == pytest.approx((600.0, 2.0, 50.0))
    assert any("GeneratedTokens: generated tokens" in words for words in trace.read_as)


@pytest.mark.parametrize(
    ("header", "values", "rates"),
    [
        ("timestamp,req_per_s", ("0,2", "60,4"), [2, 4]),
        ("time,rpm", ("0,120", "60,240"), [2, 4]),
        ("Window Start,requests", ("0,120", "60,240"), [2, 4]),
        ("minute;QPS", ("2026-01-01T00:00;2", "2026-01-01T00:01;4"), [2, 4]),
        ("ts,rate", ("1767225600000,2", "1767225660000,4"), [2, 4]),
        ("timestamp,requests_per_hour", ("2026-01-01T00:00:00+02:00,7200", "2026-01-01T00:01:00+02:00,14400"), [2, 4]),
        ("time_ms,rps", ("0,2", "60000,4"), [2, 4]),
    ],
    ids=["per second", "per minute", "count of a step", "semicolons", "epoch ms", "zones, per hour", "relative ms"],
)
def test_rates_in_many_forms(write, header, values, rates):
    trace = read_trace(write("\n".join((header, *values)) + "\n"))
    assert trace.rates_per_s == pytest.approx(rates)
    assert trace.step_s == pytest.approx(60.0)
    assert trace.at_s is None


def test_line_ends_marks_and_quotes_of_other_tools(write):
    text = '\ufeff"Time","Requests per second"\r\n2026-03-01 00:00:00,2\r\n2026-03-01 00:01:00,4\r\n\r\n'
    assert read_trace(write(text)).rates_per_s.tolist() == [2, 4]


def test_clocks(write):
    dated = read_trace(write("timestamp,rps\n2026-01-01T00:00:00+02:00,1\n2026-01-01T00:01:00+02:00,1\n"))
    assert (dated.dated, dated.clock_s[0]) == (True, 1767218400.0)
    assert not read_trace(write("window_start_s,rps\n0,1\n60,1\n")).dated


def test_compressed_and_parquet_files_read_the_same(tmp_path, write):
    text = "timestamp,rps\n2026-01-01 00:00:00,1\n2026-01-01 00:01:00,3\n"
    plain = read_trace(write(text))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    times = pa.array([1767225600000, 1767225660000], pa.timestamp("ms"))
    pq.write_table(pa.table({"timestamp": times, "rps": [1.0, 3.0]}), tmp_path / "t.parquet")
    for name in ("t.csv.gz", "t.parquet"):
        other = read_trace(tmp_path / name)
        assert np.array_equal(other.rates_per_s, plain.rates_per_s)
        assert np.array_equal(other.clock_s, plain.clock_s)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0.001, 90.0), st.integers(0, 4000)), min_size=5, max_size=80))
def test_requests_are_counted_and_read_the_same_from_text_and_from_numbers(tmp_path, rows):
    at, tokens = np.cumsum([gap for gap, _ in rows]), [n for _, n in rows]
    text = "".join(f"{float(t)!r},{n}\n" for t, n in zip(at, tokens, strict=True))
    (tmp_path / "r.csv").write_text(f"arrival_s,generated_tokens\n{text}")
    pq.write_table(pa.table({"arrival_s": at, "generated_tokens": tokens}), tmp_path / "r.parquet")
    plain, typed = (read_trace(tmp_path / name) for name in ("r.csv", "r.parquet"))
    for trace in (plain, typed):
        assert trace.requests == len(rows)  # exactly: their number decides how a trace is replayed
    assert np.array_equal(plain.at_s, typed.at_s)
    assert np.array_equal(plain.generated, typed.generated)


@pytest.mark.parametrize(("column", "bad"), [("generated_tokens", -1.0), ("generated_tokens", np.inf),
                                             ("arrival_s", np.nan)])  # fmt: skip
def test_impossible_numbers_of_a_parquet_file_are_named_by_row(tmp_path, column, bad):
    cells = {"arrival_s": [0.0, 1.0, 2.0], "generated_tokens": [5.0, 5.0, 5.0]}
    cells[column][1] = bad
    pq.write_table(pa.table(cells), tmp_path / "r.parquet")
    with pytest.raises(FileFault, match=f"row 3, {column}"):
        read_trace(tmp_path / "r.parquet")


def test_one_of_several_series(write):
    path = write("model,window_start_s,req_per_s\na,0,1\na,60,2\nb,0,5\nb,60,6\n")
    assert read_trace(path, series="B").rates_per_s.tolist() == [5, 6]
    with pytest.raises(FileFault, match="2 series") as several:
        read_trace(path)
    assert "a, b" in several.value.hint
    with pytest.raises(UnknownName):
        read_trace(path, series="c")


GAPPED = "timestamp,rps\n0,1\n60,2\n240,5\n300,\n360,7\n"


def test_gaps_are_refused_skipped_or_held(write):
    path = write(GAPPED)
    with pytest.raises(FileFault, match="3 steps of 60 s without a rate, the first at 120 s") as gaps:
        read_trace(path)
    assert "gaps=skip" in gaps.value.hint
    held, cut = read_trace(path, gaps="hold"), read_trace(path, gaps="skip")
    assert held.rates_per_s.tolist() == [1, 2, 2, 2, 5, 5, 7]
    assert cut.rates_per_s.tolist() == [1, 2, 5, 7]
    assert cut.clock_s.tolist() == [0, 60, 240, 360]
    assert held.notes
    assert cut.notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("timestamp,rps\n", "empty"),
        ("timestamp,rps\n0,1\n", "one row"),
        ("timestamp,rps\n0,1\n60,-2\n", "row 3, rps: -2"),
        ("timestamp,rps\n0,1\n60,inf\n", "row 3, rps: inf"),
        ("timestamp,rps\n0,1\n60,many\n", "row 3, rps: 'many' is not a number"),
        ("timestamp,rps\n0,1\n60,nan\n", "gaps"),
        ("timestamp,rps\n60,1\n0,2\n", "row 3 is earlier"),
        ("timestamp,rps\n60,1\n60,2\n", "row 3 has the time of the row before"),
        ("timestamp,rps\n0,1\n60,2\n90,2\n150,1\n210,1\n", "row 4 is not a whole number of steps"),
        ("timestamp,rps\n0,0\n60,0\n", "no requests"),
        ("timestamp\n5\n5\n", "same time"),
        ("timestamp\n9\n5\n", "row 3 is earlier"),
        ("timestamp\nsoon\nlater\n", "row 2, timestamp: 'soon' is not a time"),
        ("timestamp\n2026-01-01\n\n2026-13-01\n", "is not a time"),
        ("when it was,how many\n1,2\n", "no column with times"),
        ("timestamp,generated_tokens\n0,5\n9,\n", "row 3, generated_tokens: no value"),
        ("timestamp,rps\n0,1,7\n60,2,3\n", "not a table"),
        ("timestamp,load\n0,1\n60,2\n120,3\n", "rows come every 60 s, as rates do"),
    ],
)
def test_what_cannot_be_a_trace_is_refused_with_a_next_step(write, text, words):
    with pytest.raises(GpuledgerError) as refused:
        read_trace(write(text))
    assert words in refused.value.message
    assert refused.value.hint


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(GpuledgerError) as refused:
            read_trace(path)
        assert str(path) in refused.value.message
