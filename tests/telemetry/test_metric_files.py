"""Files of metric series: an exporter's page, OpenMetrics, a TSDB dump, an answer of Prometheus, Grafana's CSV.

The pages follow dcgm-exporter 4.4, nvidia_gpu_exporter 1.4 and AMD Device Metrics Exporter 1.4; dump.txt, raw.json and
query_range.json were written by promtool and Prometheus 2.42 from samples.om; the CSVs follow Grafana 11's panel
inspector. The expected figures are read from the files by the tests themselves.
"""

import gzip
import json
import re
import time
from pathlib import Path

import pandas as pd
import pytest

import gpuledger
from gpuledger.errors import FileFault
from gpuledger.telemetry.formats import FORMATS, Fit, Head

FIXTURES = Path(__file__).parent / "fixtures"
KINDS = {
    "exporter_page": "metrics", "openmetrics": "metrics", "nvidia_gpu_exporter": "metrics", "amd_exporter": "metrics",
    "tsdb_dump": "metrics", "prometheus_json": "prometheus", "grafana": "grafana",
}  # fmt: skip
OURS = [f for kind in KINDS for f in sorted((FIXTURES / kind).iterdir())]
AT = "2026-01-20T09:00:00Z"


def imported(tmp_path, file, **said):
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest(file, **said)
    return lake.samples().df().sort_values(["gpu_uuid", "at_ms"]).reset_index(drop=True), result


def points(file=FIXTURES / "openmetrics/samples.om"):
    """The points of the OpenMetrics file as a table with one row per device and instant."""
    line = re.compile(r"(\w+)\{(.*)\} (\S+) (\S+)")
    rows = []
    for found in map(line.fullmatch, file.read_text().splitlines()):
        if found:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', found[2]))
            rows.append(
                {**labels, "metric": found[1], "value": float(found[3]), "at_ms": round(float(found[4]) * 1000)}
            )
    table = pd.DataFrame(rows)
    for label in ("namespace", "pod", "container"):
        table[label] = table[label].fillna("")
    wide = table.pivot(index=["UUID", "at_ms", "namespace", "pod", "container"], columns="metric", values="value")
    return wide.reset_index().sort_values(["UUID", "at_ms"]).reset_index(drop=True)


def page(file):
    """The readings of a page by device and metric."""
    found = {}
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", file.read_text(), re.MULTILINE):
        found.setdefault(name, []).append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


@pytest.mark.parametrize("file", OURS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_one_kind_claims_each_file(file):
    fits = {name: one.score(Head(file, file.read_bytes()[:4096])).fit for name, one in FORMATS}
    best = max(fits.values())
    assert best is Fit.SURE
    assert [name for name, fit in fits.items() if fit is best] == [KINDS[file.parent.name]]


@pytest.mark.parametrize(
    "file",
    ["openmetrics/samples.om", "tsdb_dump/dump.txt", "prometheus_json/raw.json", "grafana/joined.csv",
     "grafana/series_to_rows.csv", "grafana/table.csv", "grafana/frames.csv"],
)  # fmt: skip
def test_the_same_points_give_the_same_rows(tmp_path, file):
    rows, result = imported(tmp_path, FIXTURES / file)
    wanted = points()
    assert result.rows_rejected == 0
    assert rows["at_ms"].tolist() == wanted["at_ms"].tolist()
    assert rows["gpu_uuid"].tolist() == wanted["UUID"].tolist()
    for label in ("namespace", "pod", "container"):
        assert rows[label].astype(object).fillna("").tolist() == wanted[label].tolist()
    assert rows["gpu_util_ratio"].tolist() == (wanted["DCGM_FI_DEV_GPU_UTIL"] / 100).tolist()
    assert rows["power_w"].tolist() == wanted["DCGM_FI_DEV_POWER_USAGE"].tolist()
    assert rows["fb_used_bytes"].tolist() == (wanted["DCGM_FI_DEV_FB_USED"] * 2**20).tolist()
    tensor = wanted["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"].astype("float32")
    assert rows["tensor_ratio"].tolist() == tensor.tolist()
    assert set(rows["gpu_model"]) == {"NVIDIA H100 80GB HBM3"}
    assert set(rows["host"]) == {"gpu-node-7"}


def test_a_statement_can_be_made_of_them(tmp_path):
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(FIXTURES / "openmetrics/samples.om")
    assert lake.analyze().to_dict()["statement"]


def test_times_of_grafana_without_a_zone_are_read_in_the_zone_given(tmp_path):
    rows, result = imported(tmp_path, FIXTURES / "grafana/series_to_rows.csv", tz="Europe/Berlin")
    assert rows["at_ms"].tolist() == (points()["at_ms"] - 3_600_000).tolist()
    assert [one.what for one in result.stated] == ["zone Europe/Berlin"]


def test_a_page_of_dcgm_exporter_needs_its_time_only(tmp_path):
    file = FIXTURES / "exporter_page/page.prom"
    _, unsaid = imported(tmp_path / "a", file)
    assert [one.option for one in unsaid.stated] == ["--at TIME"]
    rows, _ = imported(tmp_path, file, at=AT)
    said = page(file)
    assert rows["power_w"].tolist() == [v for _, v in said["DCGM_FI_DEV_POWER_USAGE"]]
    assert rows["energy_mj"].tolist() == [v for _, v in said["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]]
    assert rows["fb_free_bytes"].tolist() == [v * 2**20 for _, v in said["DCGM_FI_DEV_FB_FREE"]]
    assert rows["pod"].astype(object).where(rows["pod"].notna(), None).tolist() == [
        "llm-train-0",
        None,
        "chat-6c9d-x2x9p",
    ]
    assert pd.isna(rows["gpu_util_ratio"][2])
    assert rows["gpu_instance_id"][2] == "2"
    assert rows["slice_ratio"][2] == pytest.approx(3 / 7)
    assert rows["gpu_index"].tolist() == ["0", "1", "2"]
    assert set(rows["at_ms"]) == {1_768_899_600_000}


def test_a_page_of_nvidia_gpu_exporter(tmp_path):
    file = FIXTURES / "nvidia_gpu_exporter/page.prom"
    rows, _ = imported(tmp_path, file, at=AT, host="node-3")
    said = {name: [v for _, v in found] for name, found in page(file).items()}
    assert rows["gpu_uuid"].tolist() == ["GPU-" + labels["uuid"] for labels, _ in page(file)["nvidia_smi_gpu_info"]]
    assert set(rows["gpu_model"]) == {"NVIDIA H100 80GB HBM3"}
    assert rows["gpu_index"].tolist() == ["0", "1"]
    assert rows["gpu_util_ratio"].tolist() == said["nvidia_smi_utilization_gpu_ratio"]
    assert rows["power_w"].tolist() == said["nvidia_smi_power_draw_watts"]
    assert rows["fb_used_bytes"].tolist() == said["nvidia_smi_memory_used_bytes"]
    assert rows["sm_clock_mhz"].tolist() == [v / 1e6 for v in said["nvidia_smi_clocks_current_sm_clock_hz"]]
    assert rows["energy_mj"].tolist() == [v * 1000 for v in said["nvidia_smi_energy_joules_total"]]
    assert rows["throttle_bits"].tolist() == said["nvidia_smi_clocks_event_reasons_active"]


def test_a_page_of_amds_exporter(tmp_path):
    file = FIXTURES / "amd_exporter/page.prom"
    rows, _ = imported(tmp_path, file, at=AT)
    said = {name: [v for _, v in found] for name, found in page(file).items()}
    assert rows["gpu_uuid"].tolist() == [labels["gpu_uuid"] for labels, _ in page(file)["gpu_gfx_activity"]]
    assert set(rows["gpu_model"]) == {"AMD Instinct MI300X OAM"}
    assert set(rows["host"]) == {"amd-node-2"}
    assert rows["gpu_util_ratio"].tolist() == [v / 100 for v in said["gpu_gfx_activity"]]
    assert rows["power_w"].tolist() == said["gpu_package_power"]
    assert rows["fb_used_bytes"].tolist() == [v * 2**20 for v in said["gpu_used_vram"]]
    assert rows["energy_mj"].tolist() == [v / 1000 for v in said["gpu_energy_consumed"]]
    assert rows["sm_clock_mhz"].tolist() == [2100, 132]  # the first of its system clocks
    assert rows["mem_clock_mhz"].tolist() == [900, 900]
    assert rows["run_id"].astype(object).where(rows["run_id"].notna(), None).tolist() == ["4711", None]
    assert rows["gpu_instance_id"].isna().all()


def test_gzipped_text_is_read_the_same(tmp_path):
    plain, _ = imported(tmp_path / "a", FIXTURES / "tsdb_dump/dump.txt")
    packed = tmp_path / "dump.gz"
    packed.write_bytes(gzip.compress((FIXTURES / "tsdb_dump/dump.txt").read_bytes()))
    again, _ = imported(tmp_path / "b", packed)
    pd.testing.assert_frame_equal(plain, again)


def test_a_wrong_line_costs_itself_only_and_has_its_number(tmp_path):
    lines = (FIXTURES / "openmetrics/samples.om").read_text().splitlines()
    lines.insert(5, 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} fast 1768899600.25')
    lines.insert(9, "<html>")
    file = tmp_path / "page"
    file.write_text("\n".join(lines))
    rows, result = imported(tmp_path, file)
    assert len(rows) == len(points())
    assert result.rows_rejected == 2
    rejects = pd.read_csv(result.rejects_file)
    assert sorted(rejects["row"]) == [6, 10]


def test_metrics_of_other_exporters_are_passed_over(tmp_path):
    text = (FIXTURES / "openmetrics/samples.om").read_text()
    file = tmp_path / "page"
    file.write_text(
        '# TYPE node_load1 gauge\nnode_load1 0.5 1768899600\nrpc_total{a="b c"} 5 1768899600 # {x="y"} 1\n' + text
    )
    rows, result = imported(tmp_path, file)
    assert len(rows) == len(points())
    assert result.rows_rejected == 0


def test_counters_of_openmetrics_and_what_it_adds_to_them(tmp_path):
    labels = '{gpu="0",UUID="GPU-1",modelName="NVIDIA L4",Hostname="h1"}'
    file = tmp_path / "om.txt"
    file.write_text(
        f"# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
        f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total{labels} 1000.0 1768900000.0 # {{trace="a}} b"}} 0.67\n'
        f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total{labels} 7.5e+03 1768900015.5 # {{trace="c"}} 0.6 1768900015.0\n'
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_created{labels} 1768000000.0\n"
        "# EOF\n"
    )
    found, result = imported(tmp_path, file)
    assert found["energy_mj"].tolist() == [1000, 7500]
    assert found["at_ms"].tolist() == [1768900000000, 1768900015500]
    assert result.rows_rejected == 0


def test_names_in_quotes_as_prometheus_3_writes_them(tmp_path):
    file = tmp_path / "dump.txt"
    file.write_text(
        '{"k8s.pod.label \\"x\\""="y, }", UUID="GPU-1", __name__="DCGM_FI_DEV_GPU_UTIL", gpu="0"} 45 1768900000000\n'
        '{"DCGM_FI_DEV_POWER_USAGE", "k8s.pod"="y", UUID="GPU-1", gpu="0"} 30.5 1768900000000\n'
    )
    found, result = imported(tmp_path, file, gpu_model="NVIDIA L4")
    assert found[["gpu_util_ratio", "power_w"]].values.tolist() == [[0.45, 30.5]]
    assert result.rows_rejected == 0


def test_a_page_without_gpus_is_refused_with_the_exporters_that_are_known(tmp_path):
    file = tmp_path / "page"
    file.write_text("# TYPE node_load1 gauge\nnode_load1 0.5\n")
    with pytest.raises(FileFault, match=r"(?s)node_load1.*dcgm-exporter"):
        imported(tmp_path, file, at=AT)


def test_two_pages_without_times_in_one_file_are_refused(tmp_path):
    file = tmp_path / "page"
    file.write_text((FIXTURES / "exporter_page/page.prom").read_text() * 2)
    with pytest.raises(FileFault, match=r"(?s)several pages.*--at"):
        imported(tmp_path, file, at=AT)


def test_one_reading_with_two_values_is_left_out_and_noted(tmp_path):
    text = (FIXTURES / "openmetrics/samples.om").read_text()
    line = next(x for x in text.splitlines() if x.startswith("DCGM_FI_DEV_POWER_USAGE"))
    file = tmp_path / "page"
    head, _, at = line.rpartition(" ")
    file.write_text(text + f"{head.rpartition(' ')[0]} 1 {at}\n")
    rows, result = imported(tmp_path, file)
    assert rows["power_w"].isna().sum() == 1
    assert any("twice with different values" in note for note in result.notes)


def test_a_series_that_ended_owns_nothing_from_its_stale_marker_on(tmp_path):
    """promtool dumps the markers of Prometheus as NaN, at the instant at which the GPU's next series starts."""
    gpu = '__name__="DCGM_FI_DEV_GPU_UTIL", UUID="GPU-1", modelName="NVIDIA H200", Hostname="n1", gpu="0"'
    ours, theirs = (f'{{{gpu}, namespace="{name}", pod="{name}-0"}}' for name in ("speech", "vision"))
    lines = [f"{ours} 50 1768899600000", f"{ours} NaN 1768899615000", f"{theirs} 60 1768899615000"]
    file = tmp_path / "dump.txt"
    file.write_text("\n".join([*lines, f"{theirs} 61 1768899630000"]) + "\n")
    rows, _ = imported(tmp_path, file)
    assert list(zip(rows["at_ms"] - 1768899600000, rows["pod"], strict=True)) == [
        (0, "speech-0"), (15000, "vision-0"), (30000, "vision-0"),
    ]  # fmt: skip


def test_a_time_that_has_not_come_is_noted_and_a_far_one_refused(tmp_path):
    text, file = (FIXTURES / "openmetrics/samples.om").read_text(), tmp_path / "page"
    first = min(map(int, re.findall(r" (17688\d{5})", text)))
    file.write_text(re.sub(r" (17688\d{5})", lambda at: f" {int(at[1]) - first + int(time.time()) + 1_800}", text))
    _, result = imported(tmp_path, file)
    assert any("later than now" in note for note in result.notes)
    file.write_text(text.replace(" 17688", " 27688"))
    with pytest.raises(FileFault, match="all its rows are later than now"):
        imported(tmp_path / "far", file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"status": "error", "errorType": "timeout", "error": "query timed out"}, "query timed out"),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}, "scalar"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "no metric"),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "x"]]}]}},
            "pairs",
        ),
    ],
)
def test_an_answer_that_is_no_use_is_refused_with_a_next_step(tmp_path, content, words):
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(content))
    with pytest.raises(FileFault, match=words) as caught:
        imported(tmp_path, file)
    assert caught.value.hint


def test_a_truncated_answer_is_refused(tmp_path):
    file = tmp_path / "answer.json"
    file.write_bytes((FIXTURES / "prometheus_json/raw.json").read_bytes()[:-200])
    with pytest.raises(FileFault, match=r"(?s)not a whole answer.*cut off"):
        imported(tmp_path, file)


def test_an_export_of_victoriametrics_has_the_same_rows(tmp_path):
    answer = json.loads((FIXTURES / "prometheus_json/raw.json").read_text())
    lines = [
        {
            "metric": one["metric"],
            "values": [float(value) for _, value in one["values"]],
            "timestamps": [round(at * 1000) for at, _ in one["values"]],
        }
        for one in answer["data"]["result"]
    ]
    silent = {"values": [None, "NaN"], "timestamps": lines[0]["timestamps"][:2]}
    other = {"metric": {"__name__": "node_load1", "job": "node"}} | silent
    file = tmp_path / "export.jsonl"
    file.write_text(
        "\n".join(json.dumps(line) for line in [*lines, other]) + '\n{"metric": {"a": "b"}, "values": [1]}\n'
    )
    found, result = imported(tmp_path / "export", file)
    wanted, _ = imported(tmp_path / "answer", FIXTURES / "prometheus_json/raw.json")
    pd.testing.assert_frame_equal(found, wanted)
    assert result.rejects == {"wrong_number_of_cells": 1}


def test_answers_one_per_line_are_read_together(tmp_path):
    answer = json.loads((FIXTURES / "prometheus_json/raw.json").read_text())
    lines = [{**answer, "data": {**answer["data"], "result": [one]}} for one in answer["data"]["result"]]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    rows, _ = imported(tmp_path, file)
    assert len(rows) == len(points())


def test_formatted_values_of_grafana_are_refused_with_the_switch_to_flip(tmp_path):
    file = tmp_path / "panel.csv"
    file.write_text('"Time","DCGM_FI_DEV_POWER_USAGE{UUID=""GPU-1""}"\r\n2026-01-20 09:00:00,642 W\r\n')
    with pytest.raises(FileFault, match=r"(?s)642 W.*Formatted data"):
        imported(tmp_path, file)


def test_series_of_grafana_that_do_not_name_their_metric_are_refused(tmp_path):
    file = tmp_path / "panel.csv"
    file.write_text('"Time","{UUID=""GPU-1"", gpu=""0""}"\r\n1768899600000,642\r\n')
    with pytest.raises(FileFault, match=r"(?s)which metric.*Verbose"):
        imported(tmp_path, file)


@pytest.mark.parametrize(("metric", "time"), [("metric", "timestamp"), ("__name__", "ts"), ("metric_name", "time")])
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_table_with_one_row_per_metric(tmp_path, metric, time, separator):
    rows = [[metric, "UUID", time, "modelName", "Hostname", "gpu", "pod", "namespace", "Value"]]
    for second in range(3):
        for name, value in (("DCGM_FI_DEV_GPU_UTIL", 50 + second), ("DCGM_FI_DEV_FB_USED", 1000 + second)):
            at = f"2026-01-20T08:00:0{second}Z"
            rows.append([name, "GPU-1", at, "NVIDIA H200", "n1", "0", "p-0", "ml", str(value)])
    file = tmp_path / "long.csv"
    file.write_text("\n".join(separator.join(row) for row in rows) + "\n")
    found, result = imported(tmp_path, file)
    assert found["gpu_util_ratio"].tolist() == [0.5, 0.51, 0.52]
    assert found["fb_used_bytes"].tolist() == [m << 20 for m in (1000, 1001, 1002)]
    assert {*zip(found["pod"], found["namespace"], found["host"], strict=True)} == {("p-0", "ml", "n1")}
    assert result.rows_rejected == 0


def test_a_matrix_of_grafana_is_refused(tmp_path):
    file = tmp_path / "panel.csv"
    file.write_text('"Time\\UUID","GPU-1","GPU-2"\r\n1768899600000,642,1\r\n')
    with pytest.raises(FileFault, match=r"(?s)which metric and which GPU.*matrix"):
        imported(tmp_path, file)


def test_a_table_of_dcgm_columns_stays_plain_csv(tmp_path):
    first = b"Time,UUID,DCGM_FI_DEV_GPU_UTIL\n2026-01-20T09:00:00Z,GPU-1,5\n"
    fits = {name: one.score(Head(tmp_path / "x.csv", first)).fit for name, one in FORMATS}
    assert [name for name, fit in fits.items() if fit is not Fit.NO] == ["csv"]


def test_a_partial_answer_is_refused_and_a_warning_told(tmp_path):
    series = {
        "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "Hostname": "n1", "modelName": "NVIDIA H100"},
        "values": [[1768867200, "50"], [1768867230, "60"]],
    }
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer | {"isPartial": True}))
    with pytest.raises(FileFault, match="partial"):
        gpuledger.open(tmp_path / "lake").ingest(file)
    file.write_text(json.dumps(answer | {"warnings": ["store x is unavailable"]}))
    done = gpuledger.open(tmp_path / "lake").ingest(file)
    assert done.rows_added == 2
    assert any("store x is unavailable" in note for note in done.notes)


GRAFANA = '"Time","{__name__=""DCGM_FI_DEV_GPU_UTIL"", UUID=""GPU-1""}"\n'


def test_a_wrong_time_of_grafana_is_named_as_its_column(tmp_path):
    file = tmp_path / "panel.csv"
    file.write_text(GRAFANA + "yesterday,50\n2026-01-20 08:00:00,50\n")
    _, result = imported(tmp_path, file, gpu_model="NVIDIA H200")
    assert result.rejects == {"wrong_time": 1}
    assert "Time = 'yesterday'" in result.examples["wrong_time"]


@pytest.mark.parametrize("at", ["3/2/2026, 9:00:00 AM", "02.03.2026 09:00:00", "02/03/2026 09:00:00"])
def test_times_as_a_browser_shows_them_are_refused_with_the_switch_to_flip(tmp_path, at):
    file = tmp_path / "panel.csv"
    file.write_text(GRAFANA + f'"{at}",50\n"{at}",51\n')
    with pytest.raises(FileFault, match="as a browser shows them") as raised:
        imported(tmp_path, file, gpu_model="NVIDIA H200")
    assert "Formatted data" in raised.value.hint


def test_a_stray_line_break_in_a_cell_of_grafana_is_named_by_its_line(tmp_path):
    file = tmp_path / "panel.csv"
    file.write_bytes((GRAFANA + "2026-01-20 08:00:00,50\n2026-01-20 08:01:00,5\r0\n").encode())
    with pytest.raises(FileFault, match="line 3 cannot be cut into cells"):
        imported(tmp_path, file, gpu_model="NVIDIA H200")
