"""Does the capacity planner answer on the command line, in JSON, in files and from Python, and refuse in words?"""

from __future__ import annotations

import json
import math
import shutil
from decimal import Decimal

import pytest

import gpuledger
from gpuledger.errors import InputError


@pytest.fixture
def lake(cli, fleet_lake):
    shutil.copytree(fleet_lake, "gpuledger-data")
    return "gpuledger-data"


@pytest.fixture
def demand(tmp_path):
    rows = [
        f"2026-01-{5 + h // 24:02d}T{h % 24:02d}:00,{name},{n + 3 * math.sin(h / 24 * 2 * math.pi):.3f}"
        for h in range(5 * 24)
        for name, n in (("east", 20), ("west", 9))
    ]
    file = tmp_path / "demand.csv"
    file.write_text("\n".join(["time,cluster,gpus", *rows]))
    return file


def test_a_plan_of_a_lake_on_screen_in_json_and_in_files(cli, lake, tmp_path):
    ended = cli("plan", "capacity", "--lake", lake, "--price", "3", "--weeks", "4", "--budget", "5000", "--out", "plan")
    assert ended.code == 0, ended.err
    assert max(len(line) for line in ended.out.splitlines()) <= 100
    told = json.loads((tmp_path / "plan" / "capacity.json").read_text())
    assert told["headline"].split(".")[0] in ended.out
    assert {p["name"] for p in told["pools"]} <= set(ended.out.split())
    assert told["gpus_now"] == sum(p["gpus_now"] for p in told["pools"])
    for pool in told["pools"]:
        assert pool["needs"]["working"]["middle"] <= pool["needs"]["held"]["middle"]
    assert {m["verdict"] for m in told["spending"]} <= {"over", "within", "uncertain"}
    assert any(r["kind"] == "namespace" for r in told["rightsize"])
    assert "do not add the two" in (tmp_path / "plan" / "capacity.md").read_text()
    page = (tmp_path / "plan" / "capacity.html").read_text()
    drawn = {p.stem.split("-")[0] for p in (tmp_path / "plan" / "charts").iterdir()}
    assert {"capacity_forecast", "capacity_months", "capacity_rightsize"} <= drawn
    assert "GPUs needed by month" in page


def test_by_namespace_and_one_namespace_only(cli, lake):
    told = cli("plan", "capacity", "--by", "namespace", "--weeks", "1", "--json").json()
    names = {p["name"] for p in told["pools"]}
    assert names == {r["name"] for r in told["rightsize"] if r["kind"] == "namespace"}
    one = min(names)
    alone = cli("plan", "capacity", "--by", "namespace", "--namespace", one, "--weeks", "1", "--json").json()
    assert [p["name"] for p in alone["pools"]] == [one]
    assert alone["pools"][0]["demand_now"]["held"] == next(
        p["demand_now"]["held"] for p in told["pools"] if p["name"] == one
    )


def test_a_plan_of_a_table_with_market_prices_and_capacity(cli, demand):
    ended = cli("plan", "capacity", "--demand", demand, "--capacity", "east=20", "--capacity", "west=40",
                "--gpu", "h100-sxm5-80gb", "--json")  # fmt: skip
    told = ended.json()
    pools = {p["name"]: p for p in told["pools"]}
    assert pools["east"]["needs"]["demand"]["middle"] == math.ceil(22.9 / 0.9)
    assert pools["west"]["runs_out"]["expected"] is None
    assert told["investment"]["short"]["middle"] == 6
    assert told["prices_dated"][:2] == "20"
    assert "demand.csv" in told["notes"][0]


def test_spending_says_for_whom_it_is_at_80_columns(cli, demand):
    ended = cli("plan", "capacity", "--demand", demand, "--capacity", "east=20", "--capacity", "west=9", "--price", "2",
                "--budget", "9000", "--budget", "west=500", "--weeks", "2", "--full")  # fmt: skip
    table = ended.out.split("Spending by month")[1]
    assert "For" in table.splitlines()[1].split()
    assert {"all", "west"} <= set(table.split())


@pytest.mark.parametrize(
    "given",
    [
        {"price": 2.5, "capacity": {"east": 30, "west": 40}, "budget": 60000},
        {"price": Decimal("2.50"), "capacity": ["east=30", "west=40"], "budget": {"all GPUs": 60000}},
    ],
)
def test_numbers_may_be_numbers_from_python(demand, given):
    found = gpuledger.plan.capacity(demand=demand, weeks=2, **given).statement
    assert found.gpus_now == 70
    assert found.pools[0].usd_per_gpu_h.middle_usd == Decimal("2.5")
    assert {m.budget_usd is not None for m in found.spending} == {True}
    with pytest.raises(InputError, match="capacity"):
        gpuledger.plan.capacity(demand=demand, capacity=True)


def test_the_same_from_python(demand):
    answer = gpuledger.plan.capacity(demand=demand, weeks=2, capacity="east=30", price="2")
    assert answer.statement.weeks == 2
    assert answer.statement.pools[0].name == "east"
    assert answer.statement.gpus_now is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--weeks", "0"), "--weeks 0"),
        (("--cover", "120"), "--cover 120"),
        (("--target", "nan"), "not a number"),
        (("--growth", "900"), "--growth 900"),
        (("--budget", "lots"), "lots"),
        (("--budget", "-5"), "-5"),
        (("--capacity", "nowhere=4"), "nowhere"),
        (("--capacity", "1.5"), "not a number of GPUs"),
        (("--price", "2,50"), "2,50"),
        (("--buy", "-1"), "--buy -1"),
        (("--gpu", "h1000"), "h1000"),
        (("--lake", "x"), "--lake x cannot be used here"),
        (("--column", "clustr"), "did you mean cluster"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(cli, demand, options, words):
    ended = cli("plan", "capacity", "--demand", demand, *options)
    assert ended.code == 2
    assert words in ended.err
    assert "next:" in ended.err


def test_a_lake_that_is_not_there_or_too_short_is_refused(cli, fleet_csv):
    assert cli("plan", "capacity").code == 2
    assert cli("import", fleet_csv).code == 0
    ended = cli("plan", "capacity")
    assert ended.code == 2
    assert "a forecast needs 2 days" in ended.err
    assert "--per-gpu 3.0 cannot be used here" in cli("plan", "capacity", "--per-gpu", "3").err
