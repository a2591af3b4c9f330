from __future__ import annotations

import csv
import json
import shutil
import subprocess
from decimal import Decimal

import pytest
import yaml

from servers.real_prometheus import PROMTOOL, needs_prometheus


@pytest.fixture
def lake(cli, fleet_lake):
    shutil.copytree(fleet_lake, "gpuledger-data")


def rows_in(text):
    return list(csv.DictReader(text.splitlines()))


def test_focus_rows_add_up_to_the_audit(cli, lake, tmp_path):
    ended = cli("export", "focus", "--price", "2.5", "--out", "focus.csv")
    assert ended.code == 0, ended.err
    rows = rows_in((tmp_path / "focus.csv").read_text())
    told = cli("audit", "--price", "2.5", "--json").json()
    assert sum(Decimal(r["EffectiveCost"]) for r in rows) == Decimal(told["paid_usd"])
    assert sum(Decimal(r["x_WasteCost"]) for r in rows) == Decimal(told["waste_usd"])
    assert f"{len(rows)} rows" in ended.out
    assert "focus.csv" in ended.out


def test_focus_takes_the_filters_of_a_statement(cli, lake):
    every = rows_in(cli("export", "focus", "--price", "2").out)
    space = every[0]["x_Namespace"]
    some = rows_in(cli("export", "focus", "--price", "2", "--namespace", space, "--last", "1d").out)
    assert some
    assert {r["x_Namespace"] for r in some} == {space}
    told = cli("audit", "--price", "2", "--namespace", space, "--last", "1d", "--json").json()
    assert sum(Decimal(r["EffectiveCost"]) for r in some) == Decimal(told["paid_usd"])


def test_focus_as_parquet_and_json_summary(cli, lake, tmp_path):
    told = cli("export", "focus", "--price", "2", "--out", "f.parquet", "--spec", "1.0", "--json").json()
    assert told["effective_usd"] == told["audit_usd"]
    assert told["left_out"] == []
    assert (tmp_path / "f.parquet").stat().st_size > 1000


def test_focus_reports_what_has_no_price(cli, dcgm_csv, tmp_path):
    file = dcgm_csv("f.csv")
    (tmp_path / "f.csv").write_text(file.read_text().replace("NVIDIA A100-SXM4-40GB", "Banana 9000"))
    assert cli("import", "f.csv").code == 0
    ended = cli("export", "focus", "--out", "focus.csv")
    assert ended.code == 0, ended.err
    assert "left out: " in ended.err
    assert "Banana 9000" in ended.err
    assert "next: give their price" in ended.err
    assert rows_in((tmp_path / "focus.csv").read_text()) == []


def test_a_file_that_cannot_be_written_is_an_error(cli, lake, tmp_path):
    (tmp_path / "taken").write_text("")
    ended = cli("export", "focus", "--price", "2", "--out", "taken/focus.csv")
    assert ended.code == 2
    assert "taken" in ended.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("focus", "--out", "focus.xlsx"), "CSV or Parquet"),
        (("focus", "--cloud", "awz"), "did you mean aws"),
        (("focus", "--at", "us-east-1"), "cloud"),
        (("focus", "--carbon", "none.csv"), "none.csv"),
        (("otel", "--endpoint", "localhost:4318"), "not an address"),
        (("otel", "--header", "token"), "NAME=VALUE"),
        (("rules", "--idle-for", "long"), "not a length"),
        (("metrics", "--namespace", "nobody"), "no data matches"),
    ],
)
def test_bad_input_is_named_with_a_next_step(cli, lake, given, words):
    ended = cli("export", *given)
    assert ended.code == 2
    assert words in ended.err
    assert "next: " in ended.err


@needs_prometheus
def test_metrics_are_what_promtool_reads(cli, lake):
    ended = cli("export", "metrics", "--price", "2")
    assert ended.code == 0, ended.err
    found = subprocess.run([PROMTOOL, "check", "metrics"], input=ended.out, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_rules_have_the_budgets_and_limits_that_were_set(cli, tmp_path):
    (tmp_path / "gpuledger.toml").write_text(
        "[budgets]\nresearch = 750\n\n[advice.idle]\nidle_heavy_from_ratio = 0.6\n"
    )
    ended = cli("--settings", "gpuledger.toml", "export", "rules", "--stale", "1h", "--idle-for", "90m")
    assert ended.code == 0, ended.err
    rules = {r["alert"]: r for g in yaml.safe_load(ended.out)["groups"] for r in g["rules"] if "alert" in r}
    assert rules["GpuBudget"]["expr"].partition(" and count_over_time(")[0].endswith("> 750")
    assert rules["GpuIdle"]["expr"].endswith("> 0.6")
    assert rules["GpuIdle"]["for"] == "90m"
    assert rules["GpuledgerNoSamples"]["expr"].endswith("> 3600")


def test_the_dashboard_is_json(cli, tmp_path):
    ended = cli("export", "grafana", "--out", "dash.json")
    assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "dash.json").read_text())["panels"]


@pytest.mark.parametrize("what", ["rules", "grafana"])
def test_json_is_one_object_also_without_a_file(cli, what):
    told = cli("export", what, "--json").json()
    assert told["statement"] == "export"
    assert told["text"]


def test_a_collector_that_is_not_there_is_an_error(cli, lake):
    ended = cli("export", "otel", "--price", "2", "--endpoint", "http://127.0.0.1:9/v1/metrics", "--timeout", "0.3")
    assert ended.code == 2
    assert "did not take the metrics" in ended.err
    assert "Traceback" not in ended.err


def test_energy_is_shown_with_carbon_by_hour(cli, lake, tmp_path):
    hours = [
        f"2026-01-{d}T{h:02d}:00Z,aws:{r},100"
        for d in (20, 21)
        for h in range(24)
        for r in ("us-east-1", "us-west-2", "eu-west-1")
    ]
    (tmp_path / "carbon.csv").write_text("\n".join(("hour,region,g_per_kwh", *hours)))
    told = cli("ask", "energy", "--price", "2", "--cloud", "aws", "--carbon", "carbon.csv", "--json").json()
    assert told["by_hour_pct"] == pytest.approx(100)
    assert told["carbon_kg"]["middle"] == pytest.approx(told["energy_kwh"] * 1.15 * 0.1)
    shown = cli("ask", "energy", "--price", "2", "--cloud", "aws")
    assert shown.code == 0, shown.err
    assert "kWh drawn by the GPUs" in shown.out


def test_energy_without_a_cloud_says_what_is_missing(cli, lake):
    ended = cli("ask", "energy", "--price", "2")
    assert ended.code == 0, ended.err
    assert "--cloud" in ended.out
