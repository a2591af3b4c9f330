from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest

RATES = (
    "cloud,instance,gpu,count,region,purchase,usd_per_h,price_scope,as_of,note\n"
    "aws,p5.48xlarge,h100-sxm,8,,on-demand,20.00,instance,2026-10-01,negotiated\n"
)


def test_the_lowest_price_of_p5_is_shown_for_a_gpu_and_for_the_instance(cli):
    ended = cli("prices", "--instance", "p5.48xlarge", "--purchase", "on-demand")
    assert ended.code == 0
    assert re.search(r"6\.880\s+55\.04\*", ended.out)
    found = cli("prices", "--instance", "p5.48xlarge", "--purchase", "on-demand", "--json").json()["rows"][0]
    assert (found["usd_per_gpu_h"], found["usd_per_instance_h"], found["gpus"]) == ("6.88", "55.04", 8)
    assert found["as_of"] == "2026-08-22"
    assert found["age_days"] >= 85


def test_an_accelerator_without_a_host_price_says_why(cli):
    found = cli("prices", "--gpu", "T4", "--cloud", "gcp", "--json").json()
    assert (found["v"], found["statement"]) == (1, "prices")
    assert found["rows"][0]["usd_per_gpu_h"] is None
    assert any(n["figure"] == "rows[].usd_per_gpu_h" and "host" in n["why"] for n in found["not_known"])
    assert "host" in cli("prices", "--gpu", "T4", "--cloud", "gcp").out


def test_what_is_not_sold_on_spot_is_said_so(cli):
    """The list gives 0 for spot on every row of vast, and runpod the on-demand price again: neither is an offer."""
    for cloud in ("vast", "runpod"):
        ended = cli("prices", "--cloud", cloud, "--purchase", "spot")
        assert "No spot offer: " in ended.out
        assert "next: leave --purchase out" in ended.out
    assert cli("prices", "--cloud", "vast", "--purchase", "spot", "--json").json()["none_why"]
    assert "No on-demand offer" in cli("prices", "--instance", "p5e.48xlarge", "--purchase", "on-demand").out


def test_nothing_wider_than_the_terminal(cli):
    for args in (["--limit", "5"], ["--sort", "tflops", "--min-memory", "80"], ["--gpu", "h100-sxm", "--count", "8"]):
        table = cli("prices", *args).out.split("\n\n")[1]
        assert max(map(len, table.splitlines())) <= 100
        assert "Listed" in table


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize(("order", "head"), [("gpu", "$/GPU-h"), ("tflops", "$/TFLOPS"), ("gb", "$/GB")])
def test_what_it_is_sorted_by_and_how_old_it_is_are_on_the_screen(cli, monkeypatch, columns, order, head):
    monkeypatch.setenv("COLUMNS", str(columns))
    args = ("prices", "--sort", order, "--limit", "40")
    table = cli(*args).out.split("\n\n")[1]
    assert max(map(len, table.splitlines())) <= columns
    assert head in table
    assert "Listed" in table
    rows = cli(*args, "--json").json()["rows"]
    places = {"gpu": 3}.get(order, 5)
    for row in rows:
        assert f" {Decimal(row[f'usd_per_{order}_h']):.{places}f}" in table
        assert f"{row['age_days']} d{' !' if row['stale'] else ''}" in table


def test_prices_without_a_filter_says_what_it_leaves_out(cli):
    ended = cli("prices")
    assert ended.code == 0
    assert "not GPUs: GAUDI2" in ended.out
    assert len(cli("prices", "--json", "--limit", "7").json()["rows"]) == 7


def test_compare_shows_spread_and_what_spot_saves(cli):
    ended = cli("prices", "compare", "--gpu", "h100-sxm")
    assert ended.code == 0
    assert "Claimed: 60 to 70 %" in ended.out
    told = cli("prices", "compare", "--gpu", "h100-sxm", "--json").json()
    (one,) = told["gpus"]
    assert f"{one['saving']['p50_pct']:.0f} %" in ended.out
    assert one["on_demand"]["offers"] > 100
    assert "A10G" in cli("prices", "compare").out
    assert "No price matches" in cli("prices", "compare", "--gpu", "h20-96gb").out


def test_rates_of_your_own_are_stored_used_listed_and_removed(cli, tmp_path):
    (tmp_path / "rates.csv").write_text(RATES, encoding="utf-8")
    stored = cli("prices", "update", "rates.csv", "--json").json()
    assert stored["rates"][0]["usd_per_gpu_h"] == "2.5"
    assert (tmp_path / "gpuledger-data" / "prices" / "yours.json").is_file()
    ended = cli("prices", "--gpu", "h100-sxm", "--count", "8")
    assert "aws (yours)" in ended.out
    assert "replaced by your own rates" in ended.out
    assert "negotiated" in cli("prices", "update", "--list").out
    assert cli("prices", "update", "--remove", "--json").json()["removed"] is True
    assert "yours" not in cli("prices", "--gpu", "h100-sxm", "--count", "8").out
    assert "No rates of your own" in cli("prices", "update", "--list").out


def test_a_rate_that_looks_like_the_price_of_an_instance_is_asked_about(cli, tmp_path):
    (tmp_path / "r.csv").write_text(RATES.replace("20.00,instance", "55.04,gpu"), encoding="utf-8")
    ended = cli("prices", "update", "r.csv")
    assert ended.code == 0
    assert "check: p5.48xlarge: $55.04 per GPU-hour" in ended.out


def test_a_broken_file_is_exit_2_and_changes_nothing(cli, tmp_path):
    (tmp_path / "good.csv").write_text(RATES, encoding="utf-8")
    cli("prices", "update", "good.csv")
    before = (tmp_path / "gpuledger-data" / "prices" / "yours.json").read_bytes()
    (tmp_path / "bad.csv").write_text(RATES.replace("20.00", "-3"), encoding="utf-8")
    ended = cli("prices", "update", "bad.csv")
    assert ended.code == 2
    assert "bad.csv: row 2, usd_per_h: found '-3'" in ended.err
    assert "next: give a price above 0" in ended.err
    assert (tmp_path / "gpuledger-data" / "prices" / "yours.json").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--gpu", "h1000"], "h1000"),
        (["--max-price", "cheap"], "cheap"),
        (["--max-price", "nan"], "nan"),
        (["--count", "0"], "0 GPUs"),
        (["--min-memory", "nan"], "--min-memory nan"),
        (["--gpu", "l4", "compare"], "options before"),
        (["update"], "FILE, --list or --remove"),
        (["update", "x.csv", "--remove"], "FILE, --list or --remove"),
        (["update", "x.csv"], "no such file"),
        (["look"], "look"),
    ],
)
def test_bad_input_is_exit_2_with_a_next_step(cli, args, told):
    ended = cli("prices", *args)
    assert ended.code == 2
    assert told in ended.err
    assert "next:" in ended.err
    assert "Traceback" not in ended.err


def test_the_audit_prices_by_your_rates(cli, tmp_path, fleet_parquet):
    assert cli("import", fleet_parquet).code == 0
    model = cli("audit", "--json").json()["prices"][0]["gpu_model"]
    rate = {"gpu": model, "usd_per_h": 2.0, "price_scope": "gpu", "as_of": "2026-01-01"}
    (tmp_path / "r.json").write_text(json.dumps([rate]), encoding="utf-8")
    assert cli("prices", "update", "r.json").code == 0
    told = cli("audit", "--json").json()
    mine = [p for p in told["prices"] if p["basis"] == "yours"]
    assert [p["usd_per_h"] for p in mine] == ["2"]
    assert any("rates of your own" in words for words in told["assumptions"])
