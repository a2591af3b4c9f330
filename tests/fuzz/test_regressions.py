"""Faults that hostile files showed: is each of them refused or read, with a next step?"""

from __future__ import annotations

import gzip
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from targets import ROOT

import gpuledger
from gpuledger.bench.loadgen import DETAIL, TRACE, read_loadgen
from gpuledger.catalog.prices.history_files import read_history
from gpuledger.cost.emissions.hourly import read_hourly
from gpuledger.cost.inventories.kinds import read_stock
from gpuledger.cost.pricing import load_rates, own_file
from gpuledger.cost.teams import load_config
from gpuledger.devices.replay.doors import load_tapes
from gpuledger.errors import FileFault, InputError, LakeError
from gpuledger.lake.jobs.reading import read_jobs
from gpuledger.live.alerts.posting import check_url
from gpuledger.plan.autoscale.demand.reading import read_trace
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.finding import local_name

FIXTURES = ROOT / "tests/telemetry/fixtures"
SAID = {"at": "2026-01-20T00:00:00Z", "host": "n", "gpu_model": "NVIDIA H100 80GB HBM3"}


def changed(tmp_path, fixture, old, new):
    source = FIXTURES / fixture
    data = source.read_bytes()
    assert old in data
    path = tmp_path / source.name
    path.write_bytes(data.replace(old, new, 1))
    return path


def test_a_mask_without_digits_costs_its_row_only(tmp_path):
    head = "timestamp, uuid, power.draw [W], clocks_throttle_reasons.active\n"
    rows = [
        f"2026/01/20 10:00:{s:02d}.000, GPU-1, 300.0 W, {mask}\n" for s, mask in ((0, "0x1"), (1, "0x"), (2, "0x4"))
    ]
    path = tmp_path / "query.csv"
    path.write_text(head + "".join(rows))
    found = gpuledger.read(path, **SAID).found
    assert (found.rows_added, found.rows_rejected) == (2, 1)


@pytest.mark.parametrize("time", ["9" * 19, "1" * 400, "-" + "9" * 30, "1e300", "nan"])
def test_a_time_no_clock_shows_costs_its_line_only(time, tmp_path):
    series = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="n"}'
    path = tmp_path / "page.prom"
    path.write_text(f"{series} 45 1768900000000\n{series} 46 {time}\n")
    found = gpuledger.read(path).found
    assert (found.rows_added, found.rows_rejected) == (1, 1)


@pytest.mark.parametrize("time", [b"1e300", b"NaN", b"99999999999999999999"])
def test_an_answer_with_a_time_no_clock_shows_is_refused(time, tmp_path):
    path = changed(tmp_path, "prometheus_json/raw.json", b"1768899780.250", time)
    with pytest.raises(FileFault, match="not a whole answer"):
        gpuledger.read(path, **SAID)


def test_an_answer_whose_times_change_their_unit_is_read(tmp_path):
    path = changed(tmp_path, "prometheus_json/raw.json", b"1768899780.250", b"1768899780250")
    found = gpuledger.read(path, **SAID).found
    assert (found.rows_added, found.rows_rejected) == (49, 0)  # rows of one time, each with its own metric


@pytest.mark.parametrize("wrong", [b"\xc9", b"[" * 100_000])
def test_an_answer_that_is_not_json_inside_is_refused(wrong, tmp_path):
    path = changed(tmp_path, "prometheus_json/raw.json", b'"metric":{', b'"metric":{"x":"' + wrong + b'",')
    if wrong == b"\xc9":
        with pytest.raises(FileFault, match="not a whole answer"):
            gpuledger.read(path, **SAID)
    deep = changed(tmp_path, "prometheus_json/raw.json", b'"values":', b'"values":' + b"[" * 100_000)
    with pytest.raises(FileFault):
        gpuledger.read(deep, **SAID)


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.date32()])
def test_an_instant_beyond_pythons_is_shown_as_its_number(kind, tmp_path):
    width = pa.int32() if kind == pa.date32() else pa.int64()
    at = pa.array([2**31 - 1] if kind == pa.date32() else [2**62 // 1000], width).view(kind)
    table = pa.table({"timestamp": at, "UUID": ["GPU-1"], "DCGM_FI_DEV_GPU_UTIL": [5], "DCGM_FI_DEV_GPU_TEMP": at})
    path = tmp_path / "far.parquet"
    pq.write_table(table, path)
    assert explain(path).columns
    with pytest.raises(FileFault):
        gpuledger.read(path)


def test_a_job_table_that_cannot_be_unpacked_is_refused(tmp_path):
    path = tmp_path / "jobs.csv.zst"
    path.write_bytes(pa.compress(b"a" * 1000, "zstd", asbytes=True)[:10] + b"\xff" * 20)
    with pytest.raises(FileFault, match="unpacked"):
        read_jobs(path, "UTC")


@pytest.mark.parametrize("cut", [5, 60])
def test_a_recording_cut_short_is_refused(cut, tmp_path):
    path = tmp_path / "r.csv.gz"
    path.write_bytes(gzip.compress(b"t,power_w\n" * 100)[:-cut] + b"\xff" * cut)
    with pytest.raises(FileFault, match=r"unpacked|not a recording"):
        load_tapes(path)


def test_spot_prices_with_a_field_missing_or_a_cell_too_long(tmp_path):
    seed = json.loads((ROOT / "fuzz/seeds/spot/aws.json").read_text())
    for name in ("Timestamp", "ProductDescription", "SpotPrice", "AvailabilityZone"):
        rows = [dict(row) for row in seed["SpotPriceHistory"]]
        del rows[1][name]
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"SpotPriceHistory": rows}))
        if name in ("ProductDescription", "SpotPrice"):  # not Linux; no offer at that time
            read_history(path)
        else:
            with pytest.raises(FileFault, match="row 3"):
                read_history(path)
    path = tmp_path / "long.csv"
    path.write_text(f"time,instance,zone,price\n2026-01-10,{'a' * 200_000},z,1\n")
    with pytest.raises(FileFault, match="cannot be read as CSV"):
        read_history(path)


def test_a_carbon_table_with_a_cell_too_long(tmp_path):
    path = tmp_path / "long.csv"
    for text in (f"hour,region,g_per_kwh\n2026-01-10T00:00Z,{'a' * 200_000},1\n", f"hour,{'a' * 200_000}\n"):
        path.write_text(text)
        with pytest.raises(FileFault, match="cannot be read as CSV"):
            read_hourly(path)


@pytest.mark.parametrize(
    ("field", "value"), [("gpu", "h100"), ("usd_per_h", "x"), ("usd_per_h", "NaN"), ("as_of", "2026"), ("count", 0)]
)
def test_stored_rates_that_were_tampered_with(field, value, tmp_path):
    stored = json.loads((ROOT / "fuzz/seeds/lake/prices/yours.json").read_text())
    stored["rates"][0][field] = value
    file = own_file(tmp_path)
    file.parent.mkdir()
    file.write_text(json.dumps(stored))
    with pytest.raises(LakeError, match="rate 1: ") as caught:
        load_rates(tmp_path)
    assert "prices update" in caught.value.hint


@pytest.fixture(scope="module")
def posted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("posted") / "lake"
    lake = gpuledger.open(folder)
    lake.ingest(ROOT / "fuzz/seeds/csv/plain.csv")
    lake.lines()
    return folder


@pytest.fixture
def lake(posted, tmp_path):
    shutil.copytree(posted, tmp_path / "lake")
    return gpuledger.open(tmp_path / "lake")


@pytest.mark.parametrize("day", ["../../etc", "/etc", "2026-01-20/..", ""])
def test_a_ledger_whose_days_lead_elsewhere_is_refused(lake, day):
    file = lake.lake.ledger_dir / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["days"][0]["day"] = day
    file.write_text(json.dumps(manifest))
    with pytest.raises(LakeError, match="is not a day"):
        lake.lines()


@pytest.mark.parametrize("file", ["../../../etc/passwd", "part-1.parquet", "part-00000001.parquet/../x"])
def test_a_lake_whose_parts_lead_elsewhere_is_refused(lake, file):
    manifest = json.loads((lake.lake.root / "manifest.json").read_text())
    manifest["parts"][0]["file"] = file
    (lake.lake.root / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LakeError, match="is not the file of a part"):
        lake.samples()


@pytest.mark.parametrize("wrong", [b"\xc9", b"[" * 100_000])
@pytest.mark.parametrize("name", ["manifest.json", "ledger/manifest.json"])
def test_a_manifest_that_is_not_json_inside_is_refused(lake, name, wrong):
    file = lake.lake.root / name
    file.write_bytes(file.read_bytes().replace(b'"2026', b'"' + wrong, 1))
    with pytest.raises(LakeError):
        lake.analyze()


@pytest.mark.parametrize("keep", [0, 10, 200, -9])
def test_a_part_cut_short_is_named(lake, keep):
    (part,) = lake.lake.root.glob("samples/*/*.parquet")
    part.write_bytes(part.read_bytes()[:keep])
    with pytest.raises(LakeError, match=part.name):
        lake.samples()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bucket/logs/a.csv", "a.csv"),
        ("bucket/..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("bucket/%2e%2e", "file"),
        ("bucket/..", "file"),
        ("bucket/..%5C..%5Cx.csv", "x.csv"),
        ("", "file"),
        ("bucket/a%00b.csv", "ab.csv"),
    ],
)
def test_the_copy_of_an_object_stays_in_its_folder(path, name):
    assert local_name(path) == name


def test_the_copy_of_an_object_has_a_name_a_disk_takes():
    assert local_name(f"bucket/{'é' * 500}.csv").endswith(".csv")
    assert len(local_name(f"bucket/{'é' * 500}.csv").encode()) <= 200


@pytest.mark.parametrize("kind", ["sinfo.txt", "scontrol.txt", "nodes.json"])
def test_a_number_of_gpus_of_thousands_of_digits_is_unknown(kind, tmp_path):
    text = (ROOT / "fuzz/seeds/bills" / kind).read_text()
    digits = "8" * 5000
    long = text.replace("gpu:h100:8", f"gpu:h100:{digits}").replace('gpu": "8"', f'gpu": "{digits}"')
    assert long != text
    path = tmp_path / kind
    path.write_text(long)
    assert all(node.gpus is None for node in read_stock([path]).found[0].nodes if node.name == "node-1")


@pytest.mark.parametrize("cell", ["gres/gpu=" + "9" * 5000, "gres/gpu:h100=" + "9" * 5000])
def test_a_job_with_a_number_of_gpus_of_thousands_of_digits_is_rejected(cell, tmp_path):
    text = (ROOT / "fuzz/seeds/jobs/sacct.txt").read_text()
    path = tmp_path / "sacct.txt"
    path.write_text(text.replace("cpu=8,gres/gpu:h100=4", cell))
    assert len(read_jobs(path, "UTC").rejected) == 1


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (TRACE, '"ts":9.5', '"ts":1e400'),
        (TRACE, '"id":1,', f'"id":{"1" * 5000},'),
        (DETAIL, '"value": 4', '"value": 1e999'),
        (DETAIL, '"value": 4', f'"value": {"4" * 400}'),
    ],
)
def test_a_loadgen_log_with_a_number_no_clock_shows_loses_that_event_only(file, old, new, tmp_path):
    for name in (DETAIL, TRACE):
        shutil.copyfile(ROOT / "fuzz/seeds/loadgen" / name, tmp_path / name)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    assert read_loadgen(tmp_path).requests[0].ok


def test_a_trace_with_a_column_twice_is_refused(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("timestamp,timestamp,req_per_s\n2026-01-20 10:00:00,2026-01-20 10:00:00,5\n")
    with pytest.raises(FileFault, match="two columns are called 'timestamp'"):
        read_trace(path)


def test_a_time_at_the_edge_of_a_float_warns_of_nothing(tmp_path):
    at = pa.array([float("inf"), float("nan"), 1e300, 1768867200.0])
    path = tmp_path / "edge.parquet"
    pq.write_table(pa.table({"timestamp": at, "UUID": ["GPU-1"] * 4, "DCGM_FI_DEV_GPU_UTIL": [5] * 4}), path)
    assert gpuledger.read(path).found.rows_added == 1


def test_an_address_with_a_broken_bracket_is_refused():
    with pytest.raises(InputError, match="not an http address"):
        check_url("https://[example.org/hook")


def test_a_window_too_short_for_its_time_and_deep_json_are_lines_that_cannot_be_read(tmp_path):
    deep = tmp_path / "events.jsonl"
    deep.write_text("[" * 100_000 + "\n")
    with pytest.raises(InputError):
        gpuledger.read(deep, **SAID)
    window = tmp_path / "windows.csv"
    window.write_text("start_time,window_name,elapsed_time,gpu0_energy\n1e18,step,0.5,100.0\n")
    with pytest.raises(InputError):
        gpuledger.read(window, **SAID)


def test_a_result_with_a_number_beyond_any_float_is_a_line_that_cannot_be_used(tmp_path):
    results = tmp_path / "results.jsonl"
    results.write_bytes(b'{"v": 1, "kind": "end", "memory_used_bytes": ' + b"9" * 400 + b"}\n")
    with pytest.raises(FileFault, match="300 digits"):
        gpuledger.scaling.judge(results)


def test_a_key_of_thousands_of_parts_is_named_without_its_value(tmp_path):
    teams = tmp_path / "teams.toml"
    teams.write_text(".".join(["a"] * 20_000) + " = 1\n")
    with pytest.raises(InputError, match="too deep to show"):
        load_config(teams)
