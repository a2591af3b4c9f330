"""Does a file of results say what was written, whatever happened to it?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_runs import lines, run_of

from gpuledger.bench.records import NO_END, NOT_GIVEN, Node, Request
from gpuledger.bench.results import ResultWriter, parse_results, read_results, read_run
from gpuledger.errors import FileFault
from gpuledger.units import Unknown

HEADER = {"planned": {"a": 2, "b": 1}, "nodes": {"a": {"gpu": "NVIDIA A30", "gpus": 2, "rack": 7}}, "baseline": None}
# Told reasons come back; the usual silence has its own words.
unknown = st.sampled_from([Unknown(NOT_GIVEN), Unknown("the answer was not streamed")])
measured = st.just(0.0) | st.floats(1e-9, 1e6)  # no clock shows less than a nanosecond
seconds = measured | unknown
counts = st.integers(0, 2**40) | unknown
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
extra = st.dictionaries(words.map("x_{}".format), st.none() | st.booleans() | st.integers(-5, 5) | words, max_size=3)


@st.composite
def requests(draw):
    ttft, latency = draw(seconds), draw(seconds)
    if not isinstance(ttft, Unknown) and not isinstance(latency, Unknown):
        ttft, latency = sorted((ttft, latency))
    return Request(
        node=draw(words.filter(bool)), request=draw(st.integers() | words), ok=draw(st.booleans()),
        start_s=draw(seconds), ttft_s=ttft, latency_s=latency, input_tokens=draw(counts), output_tokens=draw(counts),
        error=draw(words), warmup=draw(st.booleans()), lost=draw(st.booleans()), batch=draw(counts), more=draw(extra),
    )  # fmt: skip


several = st.lists(requests(), max_size=6, unique_by=lambda r: (r.node, r.request))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(several, measured, st.booleans())
def test_what_is_written_is_read(tmp_path, made, wall_s, ends):
    file = tmp_path / "r.jsonl"
    file.unlink(missing_ok=True)
    with ResultWriter(file, {**HEADER, "colour": "red"}) as out:
        for request in made:
            out.write(request)
        if ends:
            out.finish(wall_s, client={"bottleneck": False}, problems={"a": ["slow"]})
    run = read_run(file)
    assert list(run.requests) == made
    assert run.planned == {"a": 2, "b": 1}
    assert run.nodes == {"a": Node("NVIDIA A30", 2, {"rack": 7})}
    assert run.more["colour"] == "red"
    assert run.ended is ends
    assert run.wall_s == (wall_s if ends else Unknown(NO_END))
    if ends:
        assert run.client == {"bottleneck": False}
        assert run.problems == {"a": ("slow",)}
        assert json.loads(file.read_bytes().split(b"\n")[0])["wall_s"] == wall_s


@settings(max_examples=40, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=4, unique_by=lambda r: (r.node, r.request)), st.data())
def test_a_cut_costs_the_last_line_only(tmp_path_factory, made, data):
    file = tmp_path_factory.mktemp("cut") / "r.jsonl"
    with ResultWriter(file, HEADER) as out:
        for request in made:
            out.write(request)
    raw = file.read_bytes()
    start = raw.index(b"\n") + 1
    cut = data.draw(st.integers(start, len(raw)))
    (run,) = parse_results(raw[:cut], "r")
    whole = raw[start:cut].count(b"\n")
    # A line is whole even without its line break.
    assert list(run.requests)[:whole] == made[:whole]
    assert len(run.requests) <= whole + 1
    if raw[cut - 1 : cut] not in (b"\n", b"}"):
        assert "cut short" in run.faults[-1 - len([f for f in run.faults if "not planned" in f.why])].why


def line(**fields):
    return json.dumps({"v": 1, "kind": "request", "node": "a", "request": 0, "ok": True, **fields})


def test_lines_that_cannot_be_used_are_named_with_their_node():
    raw = "\n".join(
        [
            json.dumps({"v": 1, "kind": "run", **HEADER}),
            line(request=0, latency_s=1.5),
            line(request=1, v=2),
            line(request=2, node="b", v=None),
            "{broken",
            line(request=3, kind="surprise"),
            line(request=4, ok="yes"),
            line(request=0, latency_s=9.0),
            line(request=5, latency_s=-1),
            line(request=6, ttft_s=3, latency_s=2),
            line(request=7, output_tokens=1.5),
            "[]",
            "",
        ]
    )
    (run,) = parse_results(raw.encode(), "r")
    assert [(f.line, f.node) for f in run.faults] == [
        (3, "a"), (4, "b"), (5, ""), (6, "a"), (7, "a"), (8, "a"), (9, "a"), (10, "a"), (11, "a"), (12, ""),
            (1, "a"),  # more requests than the header planned
    ]  # fmt: skip
    whys = [f.why for f in run.faults]
    assert whys[0] == "version 2 is newer than this gpuledger reads (1)"
    assert "no version" in whys[1]
    assert "not JSON" in whys[2]
    assert "has a line already" in whys[5]
    assert [r.request for r in run.requests] == [0, 5, 6, 7]
    assert run.requests[0].latency_s == 1.5
    assert "below 0" in run.requests[1].latency_s.why
    assert run.requests[2].latency_s == 2.0
    assert "cannot be above" in run.requests[2].ttft_s.why


def test_the_format_of_the_page_is_read():
    """The two kinds of line with nothing but the fields everybody has."""
    header = {"v": 1, "kind": "run", "planned": {"a": 1}, "nodes": {"a": {"gpu": "NVIDIA A30", "gpus": 1}}}
    asked = {"v": 1, "kind": "request", "node": "a", "request": 0, "start_s": 0.0, "ttft_s": 0.1, "latency_s": 1.1,
             "input_tokens": 5, "output_tokens": 11, "ok": True, "error": None}  # fmt: skip
    (run,) = parse_results(
        "\n".join(map(json.dumps, [{**header, "baseline": "one.jsonl", "wall_s": 2.5}, asked])).encode(), "r"
    )
    assert run.wall_s == 2.5
    assert run.ended
    assert run.baseline == "one.jsonl"
    assert run.faults == ()
    assert run.requests[0].end_s == 1.1
    assert run.requests[0].per_token_s == pytest.approx(0.1)


def test_runs_behind_one_another_and_a_run_without_a_header():
    first, second = {"v": 1, "kind": "run", **HEADER}, {"v": 1, "kind": "run", **HEADER, "wall_s": 3}
    raw = "\n".join([json.dumps(first), line(), json.dumps(second), line(request=9), ""]).encode()
    runs = parse_results(raw, "r")
    assert [[r.request for r in run.requests] for run in runs] == [[0], [9]]
    assert runs[1].wall_s == 3.0
    (alone,) = parse_results(line().encode(), "r")
    assert isinstance(alone.planned, Unknown)
    assert alone.names == ("a",)
    assert "no usable header" in alone.faults[0].why


def test_files_that_are_no_results(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text("hello\nworld\n")
    with pytest.raises(FileFault, match="no line of it can be used: line 1: not JSON"):
        read_results(file)
    file.write_text("")
    with pytest.raises(FileFault, match="empty"):
        read_results(file)
    with pytest.raises(FileFault, match="no such file"):
        read_results(tmp_path / "none.jsonl")
    with pytest.raises(FileFault, match="exists already"):
        ResultWriter(file, HEADER)
    with ResultWriter(tmp_path / "a.jsonl", HEADER) as out:
        out.append(b'{"v":1,"kind":"run"}\n')
    with pytest.raises(FileFault, match="holds 2 runs"):
        read_run(tmp_path / "a.jsonl")


KILLED = """
import os, signal, sys
from gpuledger.bench.records import Request
from gpuledger.bench.results import ResultWriter
out = ResultWriter(sys.argv[1], {"planned": {"a": 9}, "nodes": {}, "baseline": None})
for i in range(5):
    out.write(Request("a", i, True, latency_s=1.0))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_loses_nothing_it_wrote(tmp_path: Path):
    file = tmp_path / "r.jsonl"
    assert subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False).returncode == -9
    run = read_run(file)
    assert [r.request for r in run.requests] == [0, 1, 2, 3, 4]
    assert not run.ended
    assert run.wall_s == Unknown(NO_END)


def test_starts_by_the_clock_on_the_wall_are_counted_from_the_first():
    """Taken as seconds from the start, 10 answers in 5 s would be none a second."""
    rows = lines({"a": [0.5] * 10})
    by_clock = [rows[0], *({**r, "start_s": r["start_s"] + 1_763_000_000} for r in rows[1:])]
    run = run_of(by_clock)
    assert [r.start_s for r in run.requests] == pytest.approx([r["start_s"] for r in rows[1:]], abs=1e-6)
    assert any("instants of a clock" in f.why for f in run.faults)
    assert not run_of(rows).faults


@pytest.mark.parametrize(("field", "value"), [("latency_s", 1e300), ("ttft_s", 1e12), ("start_s", 1.763e12)])
def test_seconds_beyond_any_run_are_not_known(field, value):
    rows = lines({"a": [0.5] * 3})
    run = run_of([rows[0], {**rows[1], field: value}, *rows[2:]])
    assert isinstance(getattr(run.requests[0], field), Unknown)
    assert any(field in f.why for f in run.faults)
