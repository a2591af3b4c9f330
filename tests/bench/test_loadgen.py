"""Are LoadGen's logs read as they are written, faults and all?"""

from __future__ import annotations

import json

import pytest

from gpuledger.bench.loadgen import ACCURACY, DETAIL, SUMMARY, TRACE, read_loadgen, write_loadgen
from gpuledger.bench.results import read_run
from gpuledger.errors import FileFault, InputError


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
    with pytest.raises(FileFault, match="not a folder"):
        read_loadgen(tmp_path / "nowhere")


def test_the_summary_alone_names_the_scenario(folder):
    (folder / DETAIL).unlink()
    log = read_loadgen(folder, node="n")
    assert log.header["load"]["scenario"] == "SingleStream"
    assert log.header["reported"] == {"Mean latency (ns)": "1293061"}


def test_a_language_model_under_the_newest_layout(tmp_path):
    """As LoadGen 4 and 5 write it: pid before id, no tid; tokens as events, their number in the accuracy log."""
    detail = [
        mllog("effective_scenario", "MultiStream"), mllog("effective_samples_per_query", 2),
        mllog("result_query_count", 2), mllog("result_validity", "VALID"),
        mllog("result_first_token_99.00_percentile_latency_ns", 200_000_000),
    ]  # fmt: skip
    (tmp_path / DETAIL).write_text("\n".join(detail))

    def span(name, number, start, end):
        head = f'{{"name":"{name}","cat":"default","ph":'
        return [
            f'{head}"b","pid":7,"id":{number},"ts":{start},"args":{{"sample_seq":{number},"query_seq":0}}}},',
            f'{head}"e", "pid":7,"id":{number},"ts":{end}}},',
        ]

    rows = ['{"traceEvents":[', *span("Token", 0, "1000.000", "201000.000"), *span("Sample", 0, "1000.000", "2e6")]
    rows += [*span("Sample", 1, "1000.000", "1001000.000"), *span("Sample", 2, "2000000.000", "2500000.000")]
    (tmp_path / TRACE).write_text("\n".join([*rows, '{"name":"LastTrace"}', "]}"]))
    kept = '{ "seq_id" : 0, "qsl_idx" : 4, "data" : "0A0B", "token_count" : 32 }'
    old = '{ "seq_id" : 1, "qsl_idx" : 5, "data" : "0A" }'  # as versions before 4 wrote it
    # With first tokens measured (LogAccuracy in LoadGen's logging.cc) theirs stand before the count.
    first_kept = '{ "seq_id" : 2, "qsl_idx" : 6, "data" : "0A0B", "token_data" : "0A", "token_count" : 9 }'
    (tmp_path / ACCURACY).write_text(f"[\n{kept},\n{old},\n{first_kept}\n]\n")
    log = read_loadgen(tmp_path, node="n")
    first, second, third = log.requests
    assert first.ttft_s == pytest.approx(0.2)
    assert first.latency_s == pytest.approx(1.999)
    assert first.output_tokens == 32
    assert "accuracy log" in second.output_tokens.why
    assert second.latency_s == pytest.approx(1.0)
    assert "first token" in third.ttft_s.why
    assert third.output_tokens == 9
    assert log.header["planned"] == {"n": 4}  # two queries of two samples; one of them never came back
