"""From a file to the named GPU: import, statement, terminal, JSON, files, Python."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.report.documents import document_of
from gpuledger.units import MS_PER_HOUR, utc

START_MS, STEP_MS, GPUS, SCRAPES = 1_768_867_200_000, 600_000, 6, 48 * 6
SLOW, FROM_H = 4, 30


def write_fleet(path):
    """Six GPUs of one job; the clock of one falls by a fifth after 30 hours."""
    chance = np.random.default_rng(1)
    clock = 1500 * (1 + chance.normal(0, 0.01, (SCRAPES, GPUS)))
    clock[FROM_H * 6 :, SLOW] *= 0.8
    at = np.repeat(START_MS + STEP_MS * np.arange(SCRAPES), GPUS)
    gpu = np.tile(np.arange(GPUS), SCRAPES)
    table = {
        "SCRAPETIME": pa.array(at, pa.timestamp("ms", "UTC")),
        "UUID": [f"GPU-{i:08d}-aaaa" for i in gpu], "HOSTNAME": [f"node-{i // 4}" for i in gpu],
        "MODELNAME": ["NVIDIA A10G"] * len(gpu), "NAMESPACE": ["ml"] * len(gpu), "POD": [f"train-{i}" for i in gpu],
        "DCGM_FI_DEV_GPU_UTIL": np.full(len(gpu), 95), "DCGM_FI_DEV_POWER_USAGE": np.full(len(gpu), 120.0),
        "DCGM_FI_DEV_SM_CLOCK": np.rint(clock.reshape(-1)).astype(int),
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": np.full(len(gpu), 0.9),
    }  # fmt: skip
    pq.write_table(pa.table(table), path)
    return path


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("anomalies")
    made = gpuledger.open(folder / "lake")
    made.ingest(write_fleet(folder / "fleet.parquet"))
    return made


@pytest.fixture
def run(cli, lake):
    return lambda *more: cli("anomalies", "--lake", lake.lake.root, *more)


def test_the_slow_gpu_is_named_with_its_hour_and_dollars(run):
    found = run("--json", "--price", "1").json()
    assert found["statement"] == "anomalies"
    (one,) = found["findings"]
    assert (one["gpu_uuid"], one["kind"], one["work"]) == (f"GPU-{SLOW:08d}-aaaa", "clock", "ml/train")
    assert abs(one["since_ms"] - START_MS - FROM_H * MS_PER_HOUR) <= MS_PER_HOUR
    assert one["slowdown"]["middle_pct"] == pytest.approx(20, abs=1)
    assert float(one["usd_per_month"]["middle_usd"]) == pytest.approx(0.2 * 720, rel=0.05)
    assert {e["signal"] for e in one["evidence"]} == {"clock", "work"}
    assert found["by_peers"] == GPUS


def test_less_than_a_day_has_no_dollars_per_month(run):
    found = run("--json", "--price", "1", "--last", "23h").json()
    (one,) = found["findings"]
    assert one["slowdown"]["middle_pct"] > 5
    assert one["usd_per_month"] is None
    assert found["usd_per_month"] is None
    assert "seen for 23 h only; a month needs 24 h or more" in {n["why"] for n in found["not_known"]}
    assert "per month" not in run("--price", "1", "--last", "23h").out


def test_the_terminal_shows_what_and_what_next(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    short, full = run("--price", "1"), run("--price", "1", "--full")
    assert short.code == full.code == 0
    assert "1 of 6 GPUs degrading" in short.out
    assert "nvidia-smi" in short.out
    assert re.search(r"1,(19|20)\d MHz, peers 1,(49|50)\d MHz", full.out)
    assert max(map(len, short.out.splitlines())) <= 80


def test_files_and_a_table(run, tmp_path):
    assert run("--out", "out", "-q").code == 0
    assert (tmp_path / "out" / "anomalies.html").is_file()
    assert run("--out", "one.csv", "-q").code == 0
    (head, row) = (tmp_path / "one.csv").read_text().splitlines()
    assert head.startswith("gpu,")
    assert f"GPU-{SLOW:08d}-aaaa" in row


def test_a_window_before_the_fault_has_no_finding(run):
    until = f"{utc(START_MS + FROM_H * MS_PER_HOUR):%Y-%m-%dT%H:%M}"
    assert run("--json", "--until", until).json()["findings"] == []


def test_bad_input_ends_with_words(run, cli):
    assert run("--namespace", "mll").code == 2
    ended = cli("anomalies", "--lake", "none")
    assert ended.code == 2
    assert "next:" in ended.err


def test_python_gives_the_same(lake):
    answer = lake.anomalies(prices=1)
    assert [f.kind for f in answer.statement.findings] == ["clock"]
    assert document_of(answer.statement).headline.startswith("1 of 6 GPUs degrading")
