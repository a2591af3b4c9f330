"""Are LoadGen's logs read as they are written, faults and all?"""

from __future__ import annotations

import json

import pytest

from gpuledger.errors import FileFault, InputError
from gpuledger.scaling.loadgen import DETAIL, SUMMARY, TRACE, read_loadgen, write_loadgen
from gpuledger.scaling.results import read_run


def mllog(key, value, *, error=False):
    meta = {"is_error": error, "is_warning": False, "file": "loadgen.cc", "line_no": 1, "pid": 1, "tid": 1}
    entry = {"key": key, "value": value, "time_ms": 1.0, "namespace": "mlperf::logging", "event_type": "POINT_IN_TIME"}
    return f":::MLLOG {json.dumps({**entry, 'metadata': meta})}"


def trace(samples):
    rows = [
        '{"traceEvents":[',
        '{"name":"LogDetail","ph":"X","pid":1,"tid":2,"ts":1.0,"dur":9.0,"args":{"key":""x""}},',
    ]
    for number, start, end in samples:
        rows.append(
            f'{{"name":"Sample","cat":"default","ph":"b","id":{number},"pid":1,"tid":2,"ts":{start},"args":{{}}}},'
        )
        if end is not None:
            rows.append(f'{{"name":"Sample","cat":"default","ph":"e","id":{number},"pid":1,"tid":2,"ts":{end}}},')
    return "\n".join([*rows, '{"name":"LastTrace"}', "],", '"displayTimeUnit":"ns"', "}"])


@pytest.fixture
def folder(tmp_path):
    detail = [
        mllog("loadgen_version", "4.0 @ "), mllog("test_datetime", "2024-06-26T17:13:21Z"), mllog("sut_name", "PySUT"),
        mllog("effective_scenario", "SingleStream"), mllog("result_query_count", 4),
        mllog("result_validity", "INVALID"), mllog("error_runtime", "a query failed", error=True), ":::MLLOG {broken",
    ]  # fmt: skip
    (tmp_path / DETAIL).write_text("\n".join(detail))
    (tmp_path / SUMMARY).write_text("SUT name : PySUT\nScenario : SingleStream\nMean latency (ns) : 1293061\n")
    samples = [(0, 1_000_000.0, 1_500_000.0), (1, 1_500_000.0, 1_900_000.5), (2, 2_000_000.0, None)]
    (tmp_path / TRACE).write_text(trace(samples))
    return tmp_path


def test_samples_become_requests(folder, tmp_path):
    log = read_loadgen(folder, gpu="NVIDIA H100 80GB HBM3")
    out = write_loadgen(log, tmp_path / "out.jsonl")
    run = read_run(out)
    assert run.names == ("PySUT",)
    assert [r.latency_s for r in run.requests if r.ok] == pytest.approx([0.5, 0.4000005])
    assert [r.start_s for r in run.requests if r.ok] == pytest.approx([0, 0.5])
    assert [r.request for r in run.requests if r.lost] == [2]
    assert dict(run.planned) == {"PySUT": 4}
    assert run.wall_s == pytest.approx(0.9000005)
    assert run.more["reported"]["result_query_count"] == 4
    assert run.nodes["PySUT"].gpus == 1
    assert any("INVALID" in p for p in run.problems["PySUT"])
    assert not run.faults


def test_without_a_trace_the_next_step_is_said(folder):
    (folder / TRACE).unlink()
    with pytest.raises(InputError, match="no sample has its time") as error:
        read_loadgen(folder)
    assert "enable_trace" in error.value.hint


def test_a_folder_of_something_else(tmp_path):
    with pytest.raises(FileFault, match="neither"):
        read_loadgen(tmp_path)
    with pytest.raises(FileFault, match="no folder"):
        read_loadgen(tmp_path / "nowhere")


def test_the_summary_alone_names_the_scenario(folder):
    (folder / DETAIL).unlink()
    log = read_loadgen(folder, node="n")
    assert log.header["load"]["scenario"] == "SingleStream"
    assert log.header["reported"] == {"Mean latency (ns)": "1293061"}
