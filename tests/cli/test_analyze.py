"""Does analyze post, state, filter and write what it says?"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.window import scope_of
from gpuledger.ledger.store import Ledger
from gpuledger.report.charts import chart_names
from gpuledger.units import MS_PER_HOUR, day_start_ms


@pytest.fixture
def lake(cli, fleet_lake):
    """Two days, 2026-01-20 and 21, a sample each ten minutes of three GPUs."""
    shutil.copytree(fleet_lake, "lake")
    return Lake("lake")


def analyze(cli, *args):
    ended = cli("analyze", "--lake", "lake", "--json", *args)
    assert ended.code == 0, ended.err
    return ended.json()


def test_the_statement_as_json(cli, lake):
    said = analyze(cli)
    assert (said["samples"], said["gpus"]) == (3 * 288, 3)
    assert said["files"] == {}
    assert said["rfu_power_pct"] == pytest.approx(100 * said["pif"])
    assert said["efficiency_gap_pp"] == pytest.approx(said["gpu_util_pct"] - said["rfu_power_pct"])
    assert sum(said["active"]["classes_pct"].values()) == pytest.approx(100)


def test_every_figure_on_the_screen_is_in_the_json(cli, lake, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said, out = analyze(cli), " ".join(cli("analyze", "--lake", "lake", "--full").out.split())
    for text in (
        f"GPU utilization {said['gpu_util_pct']:.1f} %",
        f"RFU by counters {said['rfu_counters_pct']:.1f} %",
        f"Efficiency gap {said['efficiency_gap_pp']:.1f} pp",
        f"Bottlenecked {said['bottlenecked_pct_of_active']:.1f} %",
        *(row["name"].removeprefix("NVIDIA ") for row in said["by_model"] + said["by_namespace"]),
    ):
        assert text in out
    for name, share in said["active"]["classes_pct"].items():
        assert f"{name.capitalize()} {share:.1f} %" in out
    for row in said["roi"]:
        assert f"{row['target_rfu_pct']:.1f} % {row['equivalent_gpus']:.1f}" in out


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_the_terminal(cli, lake, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = cli("analyze", "--lake", "lake").out.splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines), "a figure was cut off"


@pytest.mark.parametrize("command", ["analyze", "audit"])
def test_posting_happens_once(cli, fleet_parquet, command):
    assert cli("import", fleet_parquet, "--lake", "lake").code == 0
    ledger = Ledger(Lake("lake"))
    assert not ledger.manifest().days
    assert cli(command, "--lake", "lake", "--json").code == 0
    before = ledger.manifest()
    assert [d.day for d in before.days] == ["2026-01-20", "2026-01-21"]
    assert cli(command, "--lake", "lake", "--json").code == 0
    assert ledger.manifest() == before


def test_files(cli, lake):
    said = analyze(cli, "--out", "report")
    wanted = {
        "report.html", "report.md", "report.json", "gpu_summary.csv", "bottlenecked_gpus.csv", "hourly_fleet.csv",
    }  # fmt: skip
    assert wanted <= set(said["files"])
    assert sum(name.endswith(".png") for name in said["files"]) == len(chart_names("efficiency")) > 0
    for path in said["files"].values():
        assert Path(path).stat().st_size > 0
    assert {k: v for k, v in said.items() if k != "files"} == json.loads(Path("report/report.json").read_text())
    rows = list(csv.DictReader(Path("report/gpu_summary.csv").read_text().splitlines()))
    assert {r["gpu_uuid"] for r in rows} == {g["gpu_uuid"] for g in said["per_gpu"]}
    assert len(list(csv.DictReader(Path("report/hourly_fleet.csv").read_text().splitlines()))) == 48


def test_the_window(cli, lake):
    one_day = 3 * 144
    assert analyze(cli, "--since", "2026-01-21")["samples"] == one_day
    assert analyze(cli, "--until", "2026-01-21T00:00Z")["samples"] == one_day
    assert analyze(cli, "--last", "1d")["samples"] == one_day
    assert analyze(cli, "--last", "6h", "--until", "2026-01-20T12:00")["samples"] == one_day // 4
    assert analyze(cli, "--since", "2026-01-20T10:00+02:00", "--until", "2026-01-20T09:00")["samples"] == 3 * 6


def test_last_counts_from_the_end_of_the_newest_sample(cli, lake):
    # The newest of ten minutes each begins at 23:50, so three hours begin at 21:00.
    assert scope_of(lake, last="3h").since_ms == day_start_ms("2026-01-22") - 3 * MS_PER_HOUR
    said = analyze(cli, "--last", "3h")
    assert said["end_ms"] - said["start_ms"] == 3 * MS_PER_HOUR


def test_filters(cli, lake):
    said = analyze(cli)
    for kind, rows in (("namespace", said["by_namespace"]), ("cluster", said["capacity"]["by_cluster"])):
        parts = [analyze(cli, f"--{kind}", row["name"])["samples"] for row in rows]
        assert sum(parts) == said["samples"]
        assert all(p > 0 for p in parts)
    both = [arg for row in said["by_namespace"] for arg in ("--namespace", row["name"])]
    assert analyze(cli, *both)["samples"] == said["samples"]


def test_achievable(cli, lake):
    fleet = {
        a: analyze(cli, "--achievable", a)["capacity"]["fleet"]["achievable_tflops"] for a in ("published", "peak")
    }
    assert fleet["published"] != fleet["peak"]


def test_thresholds(cli, lake, tmp_path):
    (tmp_path / "own.toml").write_text("[targets]\nroi_rfu_ratios = [0.95]\n")
    assert [r["target_rfu_pct"] for r in analyze(cli, "--thresholds", "own.toml")["roi"]] == [95.0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--namespace", "nobody"], "ml-"),
        (["--since", "2030-01-01"], "2026-01-20"),
        (["--since", "2026-01-21", "--until", "2026-01-20"], "swap"),
        (["--since", "2026-01-21", "--last", "1d"], "one of them"),
        (["--since", "tomorrow"], "2026-01-20T08:30"),
        (["--thresholds", "missing.toml"], "missing.toml"),
        (["--achievable", "best"], "known: measured, peak, published"),
    ],
)
def test_bad_wishes(cli, lake, args, words):
    ended = cli("analyze", "--lake", "lake", *args)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert "next: " in ended.err


def test_bad_thresholds_name_file_and_field(cli, lake, tmp_path):
    (tmp_path / "own.toml").write_text("[classes]\nefficient_pif_from_ratio = 7\n")
    ended = cli("analyze", "--lake", "lake", "--thresholds", "own.toml")
    assert ended.code == 2
    assert "own.toml" in ended.err
    assert "efficient_pif_from_ratio" in ended.err


def test_no_lake_says_what_to_do(cli):
    ended = cli("analyze")
    assert ended.code == 2
    assert "gpuledger import FILE" in ended.err
    assert "gpuledger demo" in ended.err


def test_out_cannot_be_written(cli, lake, tmp_path):
    (tmp_path / "taken").write_text("mine")
    ended = cli("analyze", "--lake", "lake", "--out", "taken")
    assert (ended.code, ended.out) == (2, "")
    assert "taken" in ended.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_unknown_model_is_not_known_on_the_screen(cli, fleet_csv, tmp_path):
    text = fleet_csv.read_text()
    model = text.splitlines()[1].split(",")[6]
    (tmp_path / "f.csv").write_text(text.replace(model, "Frobnicator 9000"))
    assert cli("import", "f.csv", "--lake", "lake").code == 0
    said = analyze(cli)
    rows = [row for row in said["by_model"] if row["name"] == "Frobnicator 9000"]
    assert rows[0]["means"]["pif"] is None
    assert "Frobnicator 9000" in json.dumps(said["not_known"])
    out = cli("analyze", "--lake", "lake", "--full").out
    assert "unknown" in out
    assert "nan" not in out.lower().split()
